//! Sub-tables of exact values that only group ids link (SLPPA).

mod division_rows;
mod learn;
mod requirement;
mod schema;
pub mod slppa;
mod sub_tables;
mod work;

pub(crate) use division_rows::division_rows;
pub(crate) use learn::LearnedTable;
pub use requirement::ANATOMY_ARGUMENTS;
pub(crate) use requirement::NOT_FOR_ANATOMY;
pub use schema::SUBTABLE;
pub(crate) use schema::{GID, TIMES};
pub use sub_tables::sub_tables;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::{Result, internal_err};

use self::learn::TableLearner;
use self::work::AnatomyWork;
use super::learn::{Learned, Learner};
use super::work::{BlockWork, WorkContext};
use super::{Layout, ProfileColumns, ProfileReads, System};
use crate::spec::{AnatomyOptions, BlockSize, Spec, SystemOptions};
use crate::table::coding::Kind;

#[derive(Debug)]
pub(in crate::system) struct Anatomy {
    /// Whether the division is shown, and nothing is anonymized.
    pub division_only: bool,
}

impl System for Anatomy {
    fn options(&self) -> SystemOptions {
        SystemOptions::Anatomy(AnatomyOptions::default())
    }

    fn one_record_each(&self) -> bool {
        true
    }

    fn generalizes(&self) -> bool {
        false
    }

    fn block(&self, spec: &Spec, usual: u64) -> BlockSize {
        BlockSize::Individuals(match !self.division_only && spec.divides_similar() {
            true => requirement::SIMILAR_BLOCK,
            false => usual,
        })
    }

    fn describe(&self, spec: &Spec) -> Result<String> {
        spec.describe_anatomy()
    }

    fn method_facts(&self, spec: &Spec) -> Vec<(&'static str, String)> {
        spec.anatomy_facts()
    }

    fn validate(&self, spec: &Spec) -> Result<()> {
        spec.validate_anatomy()
    }

    fn published(&self, _: &Spec, layout: &Layout) -> SchemaRef {
        match self.division_only {
            true => schema::division(),
            false => schema::sub_tables(layout),
        }
    }

    /// How many individuals of the whole table have the same sensitive value.
    fn block_columns(&self) -> Vec<Field> {
        vec![Field::new("__whole", DataType::UInt64, false)]
    }

    fn profile_reads(&self, _: &Spec, _: Option<usize>) -> Result<ProfileReads> {
        Ok(ProfileReads {
            columns: ProfileColumns::Sensitive,
            views: true,
        })
    }

    fn learner(&self, _: &Arc<Spec>, kinds: &[Kind], _: usize) -> Result<Box<dyn Learner>> {
        Ok(Box::new(TableLearner::new(kinds)))
    }

    fn learned(&self, _: &Spec, kinds: &[Kind]) -> Box<dyn Learned> {
        Box::new(LearnedTable::new(kinds.len()))
    }

    fn shows_division_only(&self) -> bool {
        self.division_only
    }

    fn work(&self, context: WorkContext) -> Result<Arc<dyn BlockWork>> {
        match self.division_only {
            true => internal_err!("a division has no blocks"),
            false => Ok(Arc::new(AnatomyWork::try_new(context)?)),
        }
    }
}

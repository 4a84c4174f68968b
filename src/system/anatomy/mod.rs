//! Sub-tables of exact values that only group ids link (SLPPA).

mod division_rows;
mod learn;
mod release;
mod requirement;
mod schema;
pub mod slppa;
mod sub_tables;
mod work;

pub(crate) use division_rows::division_rows;
pub(crate) use learn::LearnedTable;
pub use requirement::ANATOMY_ARGUMENTS;
pub use schema::SUBTABLE;
pub(crate) use schema::{GID, TIMES};
pub use sub_tables::sub_tables;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::{Result, internal_err};

use self::learn::TableLearner;
use self::requirement::NOT_FOR_ANATOMY;
use self::work::AnatomyWork;
use super::learn::{Learned, Learner};
use super::properties::Groups;
use super::work::{BlockWork, WorkContext};
use super::{
    Blocks, Compared, FunctionEntry, Layout, ProfileColumns, ProfileReads, System, SystemProperties,
};
use crate::spec::{AnatomyOptions, BlockSize, Spec, SystemOptions};
use crate::table::coding::Kind;

#[derive(Debug)]
pub(in crate::system) struct Anatomy {
    /// Whether the division is shown, and nothing is anonymized.
    pub division_only: bool,
}

pub(in crate::system) static SLPPA: FunctionEntry = FunctionEntry {
    name: "anatomize_slppa",
    help: "exact values in sub-tables that only groups link: the (alpha, beta, gamma, delta) model",
    system: &Anatomy {
        division_only: false,
    },
    blocks: Blocks::Random,
    block: 50_000,
    several_sensitive: false,
};

pub(in crate::system) static DIVISION: FunctionEntry = FunctionEntry {
    name: "anatomize_division",
    help: "which quasi-identifiers would share a sub-table of anatomize_slppa, and why",
    system: &Anatomy {
        division_only: true,
    },
    blocks: Blocks::Random,
    block: 250_000,
    several_sensitive: false,
};

const PROPERTIES: SystemProperties = SystemProperties {
    name: "anatomy",
    one_record_each: true,
    generalizes: false,
    labels_sensitive_values: false,
    shows_division_only: false,
    // Each individual of a group has one sensitive value.
    groups: Some(Groups {
        id: GID,
        rows: "subtable = 'sa'",
        individuals: "sum(\"count\")",
    }),
    parameters: ANATOMY_ARGUMENTS,
    refused: NOT_FOR_ANATOMY,
    told: &["method", "division"],
    compared: Compared::Tables,
};

static PUBLISHES: SystemProperties = PROPERTIES;

static DIVIDES: SystemProperties = SystemProperties {
    shows_division_only: true,
    ..PROPERTIES
};

impl System for Anatomy {
    fn properties(&self) -> &'static SystemProperties {
        match self.division_only {
            true => &DIVIDES,
            false => &PUBLISHES,
        }
    }

    fn options(&self) -> SystemOptions {
        SystemOptions::Anatomy(AnatomyOptions::default())
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

    fn work(&self, context: WorkContext) -> Result<Arc<dyn BlockWork>> {
        match self.division_only {
            true => internal_err!("a division has no blocks"),
            false => Ok(Arc::new(AnatomyWork::try_new(context)?)),
        }
    }
}

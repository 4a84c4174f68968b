//! Classes with published fingerprints: sets of labels in the place of sensitive values.

mod release;
pub(in crate::system) mod requirement;
mod rmr_work;
pub(crate) mod sets;
mod work;

pub(crate) use requirement::sensitive_tree;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::Result;

use self::rmr_work::RmrWork;
use self::work::FingerprintWork;
use super::layout::list_of;
use super::work::{BlockWork, WorkContext};
use super::{Blocks, Compared, FunctionEntry, Layout, System, SystemProperties, classes};
use crate::algorithm::ALGORITHMS;
use crate::check::References;
use crate::spec::{BlockSize, FingerprintOptions, FingerprintRows, Spec, SystemOptions};

#[derive(Debug)]
pub(in crate::system) struct Fingerprints {
    /// Whether any few labels of an individual are shared, instead of all of them.
    pub combinations: bool,
}

pub(in crate::system) static KL: FunctionEntry = FunctionEntry {
    name: "anonymize_kl",
    help: "(k, l)-diversity: sets of sensitive values are generalized until k individuals share them",
    system: &Fingerprints {
        combinations: false,
    },
    blocks: Blocks::Similar,
    block: 100_000,
    several_sensitive: false,
};

pub(in crate::system) static KKM: FunctionEntry = FunctionEntry {
    name: "anonymize_kkm",
    help: "(k, k^m)-anonymity by RMR, a baseline to compare with",
    system: &Fingerprints { combinations: true },
    blocks: Blocks::Similar,
    block: 25_000,
    several_sensitive: false,
};

static PROPERTIES: SystemProperties = SystemProperties {
    name: "fingerprints",
    labels_sensitive_values: true,
    compared: Compared::Labels,
    ..classes::PROPERTIES
};

impl System for Fingerprints {
    fn properties(&self) -> &'static SystemProperties {
        &PROPERTIES
    }

    fn options(&self) -> SystemOptions {
        SystemOptions::Fingerprints(FingerprintOptions::default())
    }

    fn block(&self, spec: &Spec, usual: u64) -> BlockSize {
        match requirement::needs_whole_table(spec) {
            true => BlockSize::All,
            false => BlockSize::Individuals(usual),
        }
    }

    fn default_algorithm(&self, _: &Spec) -> &'static str {
        match self.combinations {
            true => "best_cut",
            false => ALGORITHMS[0].name,
        }
    }

    fn validate(&self, spec: &Spec) -> Result<()> {
        spec.validate_classes()?;
        requirement::check(spec)
    }

    fn published(&self, spec: &Spec, layout: &Layout) -> SchemaRef {
        let data_type = match spec.fingerprint_rows() {
            FingerprintRows::Records => DataType::Utf8,
            FingerprintRows::Individuals => list_of(&DataType::Utf8),
        };
        let label = |field: &Arc<Field>| Field::new(field.name(), data_type.clone(), true);
        layout.of_classes(layout.record_fields().iter().map(label).collect())
    }

    fn references(&self, spec: &Spec, _: &Layout) -> Result<References> {
        Ok(References {
            labels: sensitive_tree(spec).map(|taxonomy| taxonomy.labels()),
            categories: vec![],
        })
    }

    fn work(&self, context: WorkContext) -> Result<Arc<dyn BlockWork>> {
        Ok(match self.combinations {
            true => Arc::new(RmrWork::try_new(context)?),
            false => Arc::new(FingerprintWork::try_new(context)?),
        })
    }
}

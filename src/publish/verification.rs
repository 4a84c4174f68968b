//! What must hold of written rows: the verifier's own reading of the call.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};

use super::anatomy::verify_sub_tables;
use super::local::{verify_all_buckets, verify_groups};
use super::manifest::Measure;
use super::measuring::Measuring;
use crate::check::{Asked, Extent, FingerprintTally, Refused, ShownRows, Verifier};
use crate::spec::{Output, Spec};
use crate::system::{INDIVIDUAL, Layout};

/// Verifies rows of whole classes, with code that knows nothing of how they came about.
#[derive(Debug)]
pub(super) struct FileVerifier {
    pub verifier: Arc<Verifier>,
    pub asked: Asked,
    /// The quasi-identifiers of each sub-table of an anatomized release.
    pub division: Vec<Vec<String>>,
    /// Whether values of buckets stand in tables of their own.
    pub detached: bool,
}

impl FileVerifier {
    pub fn of(spec: &Spec, layout: &Layout, division: &[Vec<String>]) -> Result<Self> {
        let asked = spec.asked();
        Ok(Self {
            verifier: Arc::new(spec.verifier(&asked, layout)?),
            asked,
            division: division.to_vec(),
            detached: spec.output() == Output::Detached,
        })
    }

    /// Verifies rows of whole classes or groups. What only the whole table can show is counted in the tally.
    pub fn verify(&self, rows: &RecordBatch, tally: &mut FingerprintTally) -> Result<()> {
        if self.verifier.buckets().is_some() {
            return verify_groups(&self.verifier, rows);
        }
        let tuples: Vec<u32> = (0u32..).take(rows.num_rows()).collect();
        let shown = ShownRows {
            tuples: &columns(rows, &self.asked.qi)?,
            tuple_of_row: &tuples,
            individual: &column(rows, INDIVIDUAL)?,
            sensitive: &columns(rows, &self.asked.sensitive)?,
        };
        let extent = Extent::Part(tally);
        self.verifier.check_rows(&shown, extent).map_err(refused)?;
        Ok(())
    }

    /// Verifies what several groups or tables show together, and measures what they attain. `None` where there are
    /// classes only, which are verified and can be audited by themselves.
    pub async fn verify_tables(&self, measuring: &Measuring) -> Result<Option<Vec<Measure>>> {
        if self.verifier.buckets().is_some() {
            return verify_all_buckets(self, measuring).await.map(Some);
        }
        match self.verifier.tables() {
            Some(_) => verify_sub_tables(self, measuring).await.map(Some),
            None => Ok(None),
        }
    }

    /// Verifies what was counted in all rows.
    pub fn verify_whole(&self, tally: &FingerprintTally) -> Result<()> {
        self.verifier.check_whole(tally).map_err(refused)
    }
}

pub(super) fn columns(rows: &RecordBatch, names: &[String]) -> Result<Vec<ArrayRef>> {
    names.iter().map(|name| column(rows, name)).collect()
}

pub(super) fn column(rows: &RecordBatch, name: &str) -> Result<ArrayRef> {
    let found = rows.column_by_name(name).cloned();
    found.ok_or_else(|| internal_datafusion_err!("publish: a written column is missing"))
}

/// The error where what was written violates its model.
pub(super) fn failed(reason: &dyn std::fmt::Display) -> DataFusionError {
    internal_datafusion_err!(
        "publish: nothing is published, because what was written failed its verification: {reason}"
    )
}

/// The error where the verifier refuses what was written.
pub(super) fn refused(refused: Refused) -> DataFusionError {
    match refused {
        Refused::Violation(reason) => failed(&reason),
        Refused::Arrow(error) => error.into(),
    }
}

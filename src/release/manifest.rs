//! The manifest: what a release is, for machines. `docs/reference/manifest.schema.json` describes it.

use std::collections::BTreeMap;

use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use serde::{Deserialize, Serialize};

use super::{Required, SPEAKER};

/// The name of the manifest in its target.
pub const MANIFEST: &str = "manifest.json";

/// The version of the manifest's form.
const VERSION: u32 = 1;

/// What a release is. Holds names, counts and measures: no seed, no value of a cell, no count of people below `hidden_below`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of this form.
    pub manifest_version: u32,
    /// What wrote it.
    pub tool: Tool,
    /// The name of the release, random.
    pub release: String,
    /// When it was committed, in UTC.
    pub created: String,
    /// The anonymizing function.
    pub function: String,
    /// The requirement with its parameters, as a reader sees it.
    pub model: String,
    /// Parameters of the model, the algorithm and its options.
    pub parameters: BTreeMap<String, String>,
    /// Whether whoever knows the seed and the input can make the same release again.
    pub reproducible: bool,
    /// What the columns are.
    pub roles: Roles,
    /// What came in and what went out.
    pub counts: Counts,
    /// What the written files attain, as measured by `audit`.
    pub audit: Vec<Measure>,
    /// Whether what was written is true of the input.
    pub truth: Truth,
    /// What was lost, as measured by `information_loss`: of all individuals, or of the published ones where it is hidden how
    /// many were left out.
    pub information_loss: Vec<Loss>,
    /// The levels that were required, all of them reached; in a report on what was not published, also others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Required>,
    /// The tables.
    pub tables: Vec<TableEntry>,
    /// Their files.
    pub files: Vec<FileEntry>,
}

/// What wrote a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What the published columns are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roles {
    /// The column with the pseudonyms; none if each record is an individual of its own.
    pub individual: Option<String>,
    /// Quasi-identifiers.
    pub qi: Vec<String>,
    /// Sensitive columns.
    pub sensitive: Vec<String>,
    /// Columns published as they are.
    pub keep: Vec<String>,
}

/// A count of people or records, or that it is too small to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Count {
    /// The count.
    Exact(u64),
    /// More than 0 and fewer than this, or the count from which such a one would follow.
    Hidden {
        /// The bound.
        hidden_below: u64,
    },
}

impl Count {
    /// The count, unless it is above 0 and below `k`.
    pub fn hidden_below(k: u64, count: u64) -> Self {
        if count > 0 && count < k {
            Self::Hidden { hidden_below: k }
        } else {
            Self::Exact(count)
        }
    }
}

/// What came in and what went out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Counts of people above 0 and below this are hidden.
    pub hidden_below: u64,
    /// Individuals of the input.
    pub individuals_in: Count,
    /// Individuals that are published.
    pub individuals_out: u64,
    /// Individuals that are not.
    pub individuals_suppressed: Count,
    /// Records of the input.
    pub records_in: Count,
    /// Records that are published.
    pub records_out: u64,
    /// Classes, or groups.
    pub classes: u64,
}

impl Counts {
    /// The most individuals that are not published, as far as everybody can tell.
    pub fn most_suppressed(&self) -> u64 {
        match self.individuals_suppressed {
            Count::Exact(suppressed) => suppressed,
            Count::Hidden { hidden_below } => hidden_below.saturating_sub(1),
        }
    }

    /// The share of the input's individuals that are not published; none where it is hidden.
    pub fn share_left_out(&self) -> Option<f64> {
        match (self.individuals_suppressed, self.individuals_in) {
            (Count::Exact(0), _) => Some(0.0),
            (Count::Exact(left_out), Count::Exact(all)) => Some(left_out as f64 / all as f64),
            _ => None,
        }
    }

    /// Whether it is hidden how many were left out.
    pub fn hides_suppressed(&self) -> bool {
        matches!(self.individuals_suppressed, Count::Hidden { .. })
    }
}

/// A measure of the audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The part of the report.
    pub section: String,
    /// Its name.
    pub measure: String,
    /// What the release attains; none where that cannot be said.
    pub value: Option<f64>,
    /// `higher` or `lower` is safer; none for plain counts.
    pub better: Option<String>,
    /// What the value means.
    pub note: String,
}

/// Whether a release is true of its input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// `exact` where every individual was compared with itself, `possible` where only what is necessary was checked.
    pub checked: String,
    /// The quasi-identifiers that were compared; those with a hierarchy are not.
    pub columns: Vec<String>,
    /// Individuals whose published values do not cover theirs: always 0, or nothing is published.
    pub untrue_individuals: u64,
    /// Published records that the input does not have: always 0, or nothing is published.
    pub invented_records: u64,
}

/// A measure of what was lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Its name.
    pub measure: String,
    /// The column; none for the whole table.
    pub column: Option<String>,
    /// What was lost.
    pub value: Option<f64>,
}

/// A table of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<String>,
    /// Its records; a table without any has no file.
    pub records: u64,
}

/// A file of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// The table it is part of.
    pub table: String,
    /// Its place, relative to the manifest.
    pub path: String,
    /// Its records.
    pub records: u64,
    /// Its row groups; none of them splits a class.
    pub row_groups: u64,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

impl Manifest {
    /// The version of the form that is written.
    pub fn version() -> u32 {
        VERSION
    }

    /// The manifest as it is written.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| DataFusionError::External(Box::new(e)))?;
        Ok(text + "\n")
    }

    /// Reads a manifest.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        // What the parser says may repeat what stands there.
        let manifest: Self = serde_json::from_slice(bytes).map_err(|e| {
            exec_datafusion_err!(
                "{SPEAKER}: {MANIFEST} is not the manifest of a release (line {}, column {})",
                e.line(),
                e.column()
            )
        })?;
        if manifest.manifest_version != VERSION {
            return Err(exec_datafusion_err!(
                "{SPEAKER}: {MANIFEST} has version {}, this program knows version {VERSION}",
                manifest.manifest_version
            ));
        }
        Ok(manifest)
    }

    /// A measure of the audit by its name.
    pub fn measure(&self, name: &str) -> Option<f64> {
        let named = self.audit.iter().find(|measure| measure.measure == name);
        named.and_then(|measure| measure.value)
    }
}

//! What must hold of written rows: the verifier's own reading of the spec.

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err, plan_datafusion_err};

use super::anatomy::AnatomyTwin;
use super::local::LocalTwin;
use super::manifest::Measure;
use super::measuring::Measuring;
use super::tables::sensitive;
use crate::check::{
    self, ClassRequirement, CombinationRequirement, FingerprintRequirement, FingerprintTally,
    Listed, SensitiveColumn, SensitiveTable, Sensitivity, ShownLabels,
};
use crate::spec::Spec;
use crate::system::{Form, INDIVIDUAL, Layout, column_categories, sensitive_tree};
use crate::table::coding::ColumnCategories;

/// Verifies rows of whole classes, with code that knows nothing of how they came about.
#[derive(Debug)]
pub(super) struct Twin {
    qi: Vec<String>,
    sensitive: Vec<String>,
    /// Whether spellings of one sensitive value count as one.
    normalize: bool,
    requirement: Required,
}

#[derive(Debug)]
enum Required {
    /// What is counted in a class.
    Counts(ClassRequirement),
    /// What is counted of each sensitive column, with its categories.
    Sensitivity(Sensitivity, Vec<Option<ColumnCategories>>),
    /// Who shares labels, in the table and in a class.
    Fingerprints(FingerprintRequirement, Labels),
    /// Who shares some labels in a class.
    Combinations(CombinationRequirement, Labels),
    /// Who shows the same, and what is in buckets.
    Local(LocalTwin),
    /// What groups show in all tables together.
    Anatomy(AnatomyTwin),
}

/// The hierarchy of the sensitive column: labels, and those above them.
#[derive(Debug)]
struct Labels {
    label: ArrayRef,
    parent: ArrayRef,
}

impl Twin {
    /// `division` are the quasi-identifiers of each sub-table of an anatomized release.
    pub fn of(spec: &Spec, layout: &Layout, division: &[Vec<String>]) -> Result<Self> {
        let required = Required::of(spec, layout, division)?;
        Ok(Self {
            qi: spec.qi().to_vec(),
            sensitive: sensitive(spec),
            normalize: spec.normalize,
            requirement: required.ok_or_else(|| {
                plan_datafusion_err!(
                    "publish: the model of {} cannot be verified from files yet, so nothing is published",
                    spec.function()
                )
            })?,
        })
    }

    /// Verifies rows of whole classes. What only the whole table can show is counted in the tally.
    pub fn verify(&self, rows: &RecordBatch, tally: &mut FingerprintTally) -> Result<()> {
        if let Required::Local(local) = &self.requirement {
            return local.verify_groups(rows);
        }
        let qi = columns(rows, &self.qi)?;
        let individual = column(rows, INDIVIDUAL)?;
        let sensitive = columns(rows, &self.sensitive)?;
        let first = sensitive.first().unwrap_or(&individual);
        match &self.requirement {
            Required::Counts(requirement) => {
                counts(&qi, &individual, &self.counted(first)?, requirement)
            }
            Required::Sensitivity(requirement, categories) => {
                let k = requirement.individuals();
                for column in &sensitive {
                    counts(&qi, &individual, column, &ClassRequirement::IrK { k })?;
                }
                let listed = categories.iter().zip(&sensitive);
                let listed = listed.map(|(categories, values)| SensitiveColumn {
                    values,
                    listed: categories.as_ref().map(|c| Listed {
                        values: &c.values,
                        category: &c.category,
                        categories: c.categories,
                    }),
                });
                let tuples: Vec<u32> = (0u32..).take(rows.num_rows()).collect();
                let listed: Vec<_> = listed.collect();
                let table = SensitiveTable::try_new(&qi, &tuples, &individual, &listed)?;
                if table.uncategorised_records > 0 {
                    return Err(failed(&"it has values without a category"));
                }
                check::check_sensitivity(&table.records(), requirement)
                    .map_err(|violation| failed(&violation))?;
                let Some(of_values) = requirement.of_values().filter(|_| self.normalize) else {
                    return Ok(());
                };
                let spelled = sensitive.iter().map(|values| self.counted(values));
                let spelled = spelled.collect::<Result<Vec<_>>>()?;
                let columns = spelled.iter().map(|values| SensitiveColumn {
                    values,
                    listed: None,
                });
                let columns: Vec<_> = columns.collect();
                let table = SensitiveTable::try_new(&qi, &tuples, &individual, &columns)?;
                check::check_sensitivity(&table.records(), &of_values)
                    .map_err(|violation| failed(&violation))?;
                Ok(())
            }
            Required::Fingerprints(requirement, labels) => {
                let read = labels.read(&qi, &individual, first)?;
                tally.add(&read);
                // How many share a fingerprint is known in the end.
                let requirement = FingerprintRequirement {
                    k: 1,
                    ..*requirement
                };
                check::verify_fingerprints(&read, &requirement).map_err(|v| failed(&v))?;
                Ok(())
            }
            Required::Combinations(requirement, labels) => {
                let read = labels.read(&qi, &individual, first)?;
                check::verify_combinations(&read, requirement).map_err(|v| failed(&v))
            }
            // Verified before, or of all tables together.
            Required::Local(_) | Required::Anatomy(_) => Ok(()),
        }
    }

    /// Sensitive values as they are told apart.
    fn counted(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self.normalize {
            true => check::one_spelling(values)?,
            false => ArrayRef::clone(values),
        })
    }

    /// Verifies what several groups or tables show together, and measures what they attain. `None` where there are
    /// classes only, which are verified and can be audited by themselves.
    pub async fn verify_tables(&self, measuring: &Measuring) -> Result<Option<Vec<Measure>>> {
        match &self.requirement {
            Required::Local(local) => local.verify_buckets(measuring).await.map(Some),
            Required::Anatomy(anatomy) => anatomy.verify(measuring).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Verifies what was counted in all rows.
    pub fn verify_whole(&self, tally: &FingerprintTally) -> Result<()> {
        if let Required::Fingerprints(requirement, _) = &self.requirement {
            tally.check(requirement.k).map_err(|v| failed(&v))?;
        }
        Ok(())
    }
}

impl Required {
    fn of(spec: &Spec, layout: &Layout, division: &[Vec<String>]) -> Result<Option<Self>> {
        let parameter = |parameter: &str| spec.parameter(parameter);
        let labels = || {
            let (label, parent) = sensitive_tree(spec)?.labels();
            Some(Labels { label, parent })
        };
        Ok(match spec.entry()?.form {
            Form::Fingerprints => FingerprintRequirement::read(parameter)
                .zip(labels())
                .map(|(requirement, labels)| Self::Fingerprints(requirement, labels)),
            Form::Combinations => CombinationRequirement::read(parameter)
                .zip(labels())
                .map(|(requirement, labels)| Self::Combinations(requirement, labels)),
            Form::Buckets => Some(Self::Local(LocalTwin::of(spec, layout)?)),
            Form::Anatomy | Form::Division => AnatomyTwin::of(spec, division).map(Self::Anatomy),
            Form::Classes => {
                let name = spec.model_entry()?.name;
                match Sensitivity::named(name, parameter) {
                    Some(requirement) => {
                        let categories = column_categories(spec, layout)?;
                        Some(Self::Sensitivity(requirement, categories))
                    }
                    None => ClassRequirement::named(name, parameter).map(Self::Counts),
                }
            }
        })
    }
}

impl Labels {
    fn read(
        &self,
        qi: &[ArrayRef],
        individual: &ArrayRef,
        sensitive: &ArrayRef,
    ) -> Result<ShownLabels> {
        Ok(ShownLabels::from_columns(
            qi,
            individual,
            sensitive,
            &self.label,
            &self.parent,
        )?)
    }
}

fn counts(
    qi: &[ArrayRef],
    individual: &ArrayRef,
    sensitive: &ArrayRef,
    requirement: &ClassRequirement,
) -> Result<()> {
    let read = check::ShownClasses::from_columns(qi, individual, sensitive)?;
    check::verify(&read, requirement).map_err(|violation| failed(&violation))?;
    Ok(())
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

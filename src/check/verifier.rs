//! One judge for blocks in memory and for rows of files.

use std::fmt::{self, Display};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::error::ArrowError;

use super::anatomy::{AnatomyAttained, AnatomyBounds, ShownTables, verify_anatomy};
use super::asked::{Asked, BucketRequirement, Unreadable};
use super::buckets::{BucketTable, LocalColumn, ShownBuckets, verify_groups, verify_local};
use super::classes::{
    ClassRequirement, Listed, SensitiveColumn, SensitiveTable, Sensitivity, SensitivityAttained,
    ShownClasses, check_sensitivity, verify,
};
use super::fingerprints::{
    CombinationRequirement, FingerprintRequirement, FingerprintTally, ShownLabels,
    verify_combinations, verify_fingerprints,
};
use super::ratio::Ratio;
use super::spelling::one_spelling;

/// What a release must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// Counts of each class.
    Counts(ClassRequirement),
    /// Values and categories of each class.
    Sensitivity(Sensitivity),
    /// Who shares all labels.
    Fingerprints(FingerprintRequirement),
    /// Who shares any few labels.
    Combinations(CombinationRequirement),
    /// Local groups and buckets.
    Buckets(BucketRequirement),
    /// Groups that link sub-tables.
    Tables(AnatomyBounds),
}

impl Requirement {
    /// Reads what a call asks for.
    ///
    /// # Errors
    ///
    /// If the function is not known, a bound is missing, cannot be read or is not one of the function's.
    pub fn read(asked: &Asked) -> Result<Self, Unreadable> {
        Self::try_read(asked).ok_or_else(|| asked.unreadable())
    }

    fn try_read(asked: &Asked) -> Option<Self> {
        let text = |name: &str| asked.parameter(name);
        let bounds = asked.bounds();
        let function = asked.function.as_str();
        if let Some(counts) = ClassRequirement::asked(function, &bounds, text) {
            return Some(Self::Counts(counts));
        }
        if let Some(of_values) = Sensitivity::asked(function, &bounds, text) {
            return Some(Self::Sensitivity(of_values));
        }
        match (function, bounds.as_slice()) {
            ("anonymize_kl", ["k", "l"] | ["k", "l", "value_l"]) => {
                FingerprintRequirement::read(text).map(Self::Fingerprints)
            }
            // delta bounds how the baseline searches, not what it publishes.
            ("anonymize_kkm", ["k", "m", "delta"]) => {
                CombinationRequirement::read(text).map(Self::Combinations)
            }
            ("anonymize_lgb", ["k"] | ["k", "l"]) => {
                BucketRequirement::read(asked).map(Self::Buckets)
            }
            ("anatomize_slppa", given) => {
                let required: &[&str] = match text("method").unwrap_or("slppa") {
                    "slppa" | "slppa_similar" => &["alpha", "beta", "gamma", "delta"],
                    "asn" => &["beta", "gamma"],
                    "slicing" => &["beta"],
                    _ => return None,
                };
                let own = ["alpha", "beta", "gamma", "delta"];
                let all = required.iter().all(|name| given.contains(name));
                let known = given.iter().all(|name| own.contains(name));
                let bounds = AnatomyBounds::read(text).filter(|_| all && known);
                bounds.map(Self::Tables)
            }
            _ => None,
        }
    }
}

/// Checks what is published against what was asked for.
#[derive(Debug)]
pub struct Verifier {
    requirement: Requirement,
    references: References,
    /// Number of sensitive columns.
    sensitive: usize,
    normalize: bool,
    /// Whether shares of categories are bounded by nothing, while weights are.
    unbounded: bool,
}

/// What published values stand for, as it was loaded from the user's hierarchies and lists: the algorithms use the same.
#[derive(Debug, Default)]
pub struct References {
    /// The labels of the sensitive column, and the label above each.
    pub labels: Option<(ArrayRef, ArrayRef)>,
    /// The categories of each sensitive column that has them.
    pub categories: Vec<Option<Categories>>,
}

/// The categories of a sensitive column's values.
#[derive(Debug)]
pub struct Categories {
    /// The values, in the column's type.
    pub values: ArrayRef,
    /// The category of each, 0 for the most sensitive.
    pub category: Vec<u32>,
    /// Number of categories.
    pub categories: u32,
}

/// Rows of whole classes: each refers to a list of published tuples.
#[derive(Debug, Clone, Copy)]
pub struct ShownRows<'a> {
    /// The quasi-identifiers of the list.
    pub tuples: &'a [ArrayRef],
    /// The tuple of each row.
    pub tuple_of_row: &'a [u32],
    /// The pseudonym of each row.
    pub individual: &'a ArrayRef,
    /// The sensitive columns, or the labels in their place; others may follow.
    pub sensitive: &'a [ArrayRef],
}

/// Individuals with local groups and buckets.
#[derive(Debug, Clone)]
pub struct ShownPeople {
    /// Their pseudonyms.
    pub individual: ArrayRef,
    /// Quasi-identifiers of which no value is secret.
    pub plain: Vec<ArrayRef>,
    /// Semi-sensitive columns in their order, then sensitive ones.
    pub attributes: Vec<LocalColumn>,
}

/// How much of a release rows are.
#[derive(Debug)]
pub enum Extent<'a> {
    /// All rows that any requirement speaks of.
    Whole,
    /// Whole classes of it: what only all parts show together is counted.
    Part(&'a mut FingerprintTally),
}

/// Proof that something was verified, with what its reader should know. Only the verifier makes one.
#[derive(Debug)]
pub struct Verified {
    /// The largest share of a class's individuals with a value of one category, where nothing bounds it.
    pub unbounded_share: Option<Ratio>,
}

/// Why something must not be published: counts, and no value of the data.
#[derive(Debug)]
pub enum Refused {
    /// What the requirement does not allow.
    Violation(String),
    /// What cannot be read.
    Arrow(ArrowError),
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(reason) => f.write_str(reason),
            Self::Arrow(_) => f.write_str("its columns cannot be read"),
        }
    }
}

impl From<ArrowError> for Refused {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

fn violation(reason: impl Display) -> Refused {
    Refused::Violation(reason.to_string())
}

const VERIFIED: Verified = Verified {
    unbounded_share: None,
};

impl Verifier {
    /// A judge for what was asked.
    ///
    /// # Errors
    ///
    /// If the words of the call cannot be read.
    pub fn of(asked: &Asked, references: References) -> Result<Self, Unreadable> {
        let given = |name: &str| asked.parameters.iter().any(|(given, _)| given == name);
        Ok(Self {
            requirement: Requirement::read(asked)?,
            references,
            sensitive: asked.sensitive.len(),
            normalize: asked.normalize,
            unbounded: given("alpha") && !given("max_category_share"),
        })
    }

    /// What local groups and buckets must satisfy, if the function publishes them.
    pub fn buckets(&self) -> Option<&BucketRequirement> {
        match &self.requirement {
            Requirement::Buckets(requirement) => Some(requirement),
            _ => None,
        }
    }

    /// The bounds on groups, if the function publishes sub-tables.
    pub fn tables(&self) -> Option<&AnatomyBounds> {
        match &self.requirement {
            Requirement::Tables(bounds) => Some(bounds),
            _ => None,
        }
    }

    /// Checks rows of whole classes.
    ///
    /// # Errors
    ///
    /// If they do not satisfy what was asked for.
    pub fn check_rows(
        &self,
        rows: &ShownRows<'_>,
        extent: Extent<'_>,
    ) -> Result<Verified, Refused> {
        let Some(sensitive @ [first, ..]) = rows.sensitive.get(..self.sensitive) else {
            return Err(violation("a sensitive column is missing"));
        };
        let rows = &ShownRows { sensitive, ..*rows };
        match &self.requirement {
            Requirement::Counts(requirement) => {
                check_counts(rows, &self.counted(first)?, requirement)?;
                Ok(VERIFIED)
            }
            Requirement::Sensitivity(requirement) => self.check_values(rows, requirement),
            Requirement::Fingerprints(requirement) => {
                let shown = self.labels(rows, first)?;
                let mut requirement = *requirement;
                if let Extent::Part(tally) = extent {
                    tally.add(&shown);
                    // How many share a fingerprint is known in the end.
                    requirement = FingerprintRequirement {
                        k: 1,
                        ..requirement
                    };
                }
                verify_fingerprints(&shown, &requirement).map_err(violation)?;
                Ok(VERIFIED)
            }
            Requirement::Combinations(requirement) => {
                let shown = self.labels(rows, first)?;
                verify_combinations(&shown, requirement).map_err(violation)?;
                Ok(VERIFIED)
            }
            Requirement::Buckets(_) | Requirement::Tables(_) => Err(not_of_this_function()),
        }
    }

    /// Checks what was counted in all parts.
    ///
    /// # Errors
    ///
    /// If too few individuals share what they publish.
    pub fn check_whole(&self, tally: &FingerprintTally) -> Result<(), Refused> {
        if let Requirement::Fingerprints(requirement) = &self.requirement {
            tally.check(requirement.k).map_err(violation)?;
        }
        Ok(())
    }

    /// Checks whole local groups, whatever their buckets hold.
    ///
    /// # Errors
    ///
    /// If a group has too few individuals.
    pub fn check_groups(&self, people: &ShownPeople) -> Result<(), Refused> {
        let requirement = self.buckets().ok_or_else(not_of_this_function)?;
        verify_groups(&grouped(requirement, people)?, requirement.k).map_err(violation)
    }

    /// Checks local groups and their buckets.
    ///
    /// # Errors
    ///
    /// If they do not satisfy what was asked for.
    pub fn check_people(&self, mut people: ShownPeople) -> Result<Verified, Refused> {
        let requirement = self.buckets().ok_or_else(not_of_this_function)?;
        let mut rules = vec![];
        for (attribute, column) in requirement.attributes.iter().zip(&mut people.attributes) {
            let Some(table) = &mut column.table else {
                return Err(violation("an attribute has no values of buckets"));
            };
            rules.push(attribute.rule(table.value.data_type()));
            table.value = self.counted(&table.value)?;
        }
        let shown = grouped(requirement, &people)?;
        verify_local(&shown, requirement.k, &rules).map_err(violation)?;
        Ok(VERIFIED)
    }

    /// Checks whole buckets of one attribute, numbered as in the requirement, whatever groups their members are in.
    ///
    /// # Errors
    ///
    /// If a bucket does not satisfy the rule of its attribute.
    pub fn check_buckets(
        &self,
        attribute: usize,
        individual: &ArrayRef,
        mut column: LocalColumn,
    ) -> Result<(), Refused> {
        let requirement = self.buckets().ok_or_else(not_of_this_function)?;
        let attribute = requirement.attributes.get(attribute);
        let attribute = attribute.ok_or_else(not_of_this_function)?;
        let Some(BucketTable { value, .. }) = &mut column.table else {
            return Err(violation("an attribute has no values of buckets"));
        };
        let rule = attribute.rule(value.data_type());
        *value = self.counted(value)?;
        let shown = ShownBuckets::try_new(individual, &[], &[], &[column])?;
        verify_local(&shown, 1, &[rule]).map_err(violation)?;
        Ok(())
    }

    /// Checks groups of sub-tables that hold so many individuals, all rows of a table in the order of their groups.
    ///
    /// # Errors
    ///
    /// If they do not satisfy what was asked for.
    pub fn check_block_of_tables(
        &self,
        shown: &ShownTables,
        individuals: usize,
    ) -> Result<Verified, Refused> {
        match shown.rows_out_of_order() {
            0 => {}
            rows => return Err(violation(format!("{rows} rows are out of order"))),
        }
        match self.check_tables(shown)?.individuals == individuals as u64 {
            true => Ok(VERIFIED),
            false => Err(violation("not everybody is published")),
        }
    }

    /// Checks groups of sub-tables.
    ///
    /// # Errors
    ///
    /// If they do not satisfy what was asked for.
    pub fn check_tables(&self, shown: &ShownTables) -> Result<AnatomyAttained, Refused> {
        let bounds = self.tables().ok_or_else(not_of_this_function)?;
        verify_anatomy(shown, bounds).map_err(violation)
    }

    /// p different values or categories of each sensitive column, k individuals, and bounds on categories.
    fn check_values(
        &self,
        rows: &ShownRows<'_>,
        requirement: &Sensitivity,
    ) -> Result<Verified, Refused> {
        let k = requirement.individuals();
        for column in rows.sensitive {
            check_counts(rows, column, &ClassRequirement::IrK { k })?;
        }
        let listed = self.references.categories.iter().map(Option::as_ref);
        let listed = listed.chain(std::iter::repeat(None));
        let columns = rows.sensitive.iter().zip(listed);
        let columns = columns.map(|(values, categories)| SensitiveColumn {
            values,
            listed: categories.map(|of| Listed {
                values: &of.values,
                category: &of.category,
                categories: of.categories,
            }),
        });
        let attained = check_records(rows, &columns.collect::<Vec<_>>(), requirement)?;
        if let Some(of_values) = requirement.of_values().filter(|_| self.normalize) {
            let spelled = rows.sensitive.iter().map(one_spelling);
            let spelled = spelled.collect::<Result<Vec<_>, _>>()?;
            let columns = spelled.iter().map(|values| SensitiveColumn {
                values,
                listed: None,
            });
            check_records(rows, &columns.collect::<Vec<_>>(), &of_values)?;
        }
        let warns = self.unbounded && attained.classes > 0;
        Ok(Verified {
            unbounded_share: warns.then_some(attained.largest_category_share),
        })
    }

    /// Sensitive values as they are told apart.
    fn counted(&self, values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self.normalize {
            true => one_spelling(values),
            false => Ok(ArrayRef::clone(values)),
        }
    }

    fn labels(&self, rows: &ShownRows<'_>, shown: &ArrayRef) -> Result<ShownLabels, Refused> {
        let (label, parent) = match &self.references.labels {
            Some(labels) => labels,
            None => return Err(violation("the hierarchy of the labels is missing")),
        };
        Ok(ShownLabels::try_new(
            rows.tuples,
            rows.tuple_of_row,
            rows.individual,
            shown,
            label,
            parent,
        )?)
    }
}

fn check_counts(
    rows: &ShownRows<'_>,
    sensitive: &ArrayRef,
    requirement: &ClassRequirement,
) -> Result<(), Refused> {
    let shown = ShownClasses::try_new(rows.tuples, rows.tuple_of_row, rows.individual, sensitive)?;
    verify(&shown, requirement).map_err(violation)?;
    Ok(())
}

fn check_records(
    rows: &ShownRows<'_>,
    sensitive: &[SensitiveColumn<'_>],
    requirement: &Sensitivity,
) -> Result<SensitivityAttained, Refused> {
    let table =
        SensitiveTable::try_new(rows.tuples, rows.tuple_of_row, rows.individual, sensitive)?;
    if table.uncategorised_records > 0 {
        return Err(violation("it has values without a category"));
    }
    check_sensitivity(&table.records(), requirement).map_err(violation)
}

fn grouped(requirement: &BucketRequirement, people: &ShownPeople) -> Result<ShownBuckets, Refused> {
    if people.attributes.len() != requirement.attributes.len() {
        return Err(violation("a column with secret values is missing"));
    }
    let semi = requirement.attributes.iter();
    let semi = semi.take_while(|a| a.semi_sensitive).count();
    let (semi_sensitive, sensitive) = people.attributes.split_at(semi);
    Ok(ShownBuckets::try_new(
        &people.individual,
        &people.plain,
        semi_sensitive,
        sensitive,
    )?)
}

/// Rows in a form that the function does not publish.
fn not_of_this_function() -> Refused {
    violation("it is not what the function publishes")
}

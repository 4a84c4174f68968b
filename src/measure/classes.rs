//! One row per class: how it is asked for, and its columns.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, RecordBatch,
    StringBuilder, UInt64Builder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use serde::{Deserialize, Serialize};

use super::ClassKey;
use super::class::Measures;
use super::related::Related;
use crate::check::{Answer, ClassRequirement, Minimum, Ratio};

/// How classes are measured.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClassesSpec {
    /// The SQL function that asks, for messages.
    pub function: String,
    /// Whether every record is an individual of its own, and there is no column of individuals.
    pub one_row_per_individual: bool,
    /// Whether the sensitive values have an order.
    pub ordered: bool,
    /// Whether every class's largest l of EIR l-diversity is wanted, or only the least of all.
    pub every_eir_l: bool,
    /// Whether the fingerprints are wanted, as hashes.
    pub fingerprints: bool,
    /// The c of recursive (c, l)-diversity, as a fraction.
    pub c: (u64, u64),
    /// Whether the sensitive values have categories.
    pub categories: bool,
    /// The share of a class's individuals with a known value beyond which one category stands out, as it was written.
    pub max_category_share: Option<String>,
    /// Whether the sensitive values are labels of a hierarchy, which is then the third input.
    pub labels: bool,
    /// The pair of models by which a class may be vulnerable.
    pub versus: Option<Versus>,
    pub(crate) key: ClassKey,
}

/// An identity-reserved model and its enhanced form; parameters as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Versus {
    /// IR (k, l)-anonymity and EIR l-diversity.
    L {
        /// Individuals.
        k: u64,
        /// Sensitive values.
        l: u64,
    },
    /// IR (α, β)-anonymity and EIR (α, β)-anonymity.
    AlphaBeta {
        /// α
        alpha: String,
        /// β
        beta: String,
    },
}

impl Versus {
    /// Both requirements, the plain and the enhanced one; `None` if a share is none.
    pub fn requirements(&self) -> Option<(ClassRequirement, ClassRequirement)> {
        Some(match self {
            Versus::L { k, l } => {
                let (k, l) = (usize::try_from(*k).ok()?, usize::try_from(*l).ok()?);
                (
                    ClassRequirement::IrKL { k, l },
                    ClassRequirement::EirL { l },
                )
            }
            Versus::AlphaBeta { alpha, beta } => {
                let (alpha, beta): (Ratio, Ratio) = (alpha.parse().ok()?, beta.parse().ok()?);
                (
                    ClassRequirement::IrAlphaBeta { alpha, beta },
                    ClassRequirement::EirAlphaBeta { alpha, beta },
                )
            }
        })
    }
}

/// What is known of one class.
#[derive(Debug)]
pub(crate) struct ClassRow {
    pub name: String,
    pub measures: Measures,
    /// The largest l of EIR l-diversity; `None` if another class is known to attain no more.
    pub eir_l: Option<Minimum>,
    /// Whether the plain and the enhanced model hold.
    pub versus: Option<(Answer, Answer)>,
    /// Whether one category has too large a share, if there is a bound.
    pub category_stands_out: Option<bool>,
    /// What the labels tell, if the values are some.
    pub related: Option<Related>,
    pub fingerprints: Vec<u64>,
}

macro_rules! columns {
    ($($name:literal : $kind:ident ($row:ident) = $value:expr),+ $(,)?) => {
        /// The columns of class rows.
        pub(crate) fn class_schema() -> SchemaRef {
            Arc::new(Schema::new(vec![
                Field::new("class", DataType::Utf8, false),
                $(Field::new($name, columns!(@type $kind), true)),+,
                Field::new("fingerprints", list_of_hashes(), true),
            ]))
        }

        /// Rows as columns.
        #[derive(Debug, Default)]
        pub(crate) struct ClassRows(Vec<ClassRow>);

        impl ClassRows {
            /// One more row.
            pub fn push(&mut self, row: ClassRow) {
                self.0.push(row);
            }

            /// All rows.
            pub fn finish(self) -> Result<RecordBatch, ArrowError> {
                let mut names = StringBuilder::new();
                self.0.iter().for_each(|row| names.append_value(&row.name));
                let mut columns: Vec<ArrayRef> = vec![Arc::new(names.finish())];
                $({
                    let mut builder = columns!(@builder $kind);
                    for $row in &self.0 {
                        builder.append_option($value);
                    }
                    columns.push(Arc::new(builder.finish()));
                })+
                let mut fingerprints = ListBuilder::new(UInt64Builder::new());
                for row in &self.0 {
                    row.fingerprints.iter().for_each(|f| fingerprints.values().append_value(*f));
                    fingerprints.append(true);
                }
                columns.push(Arc::new(fingerprints.finish()));
                RecordBatch::try_new(class_schema(), columns)
            }
        }
    };
    (@type Count) => { DataType::Int64 };
    (@type Share) => { DataType::Float64 };
    (@type Truth) => { DataType::Boolean };
    (@builder Count) => { Int64Builder::new() };
    (@builder Share) => { Float64Builder::new() };
    (@builder Truth) => { BooleanBuilder::new() };
}

columns! {
    "individuals": Count(row) = count(row.measures.individuals),
    "records": Count(row) = count(row.measures.records),
    "values": Count(row) = count(row.measures.values),
    // Twice the l, and one more where the search ended before it knew whether l is more.
    "eir": Count(row) = row.eir_l.and_then(|minimum| match minimum {
        Minimum::Exact(l) => count(2 * l),
        Minimum::AtLeast(l) => count(2 * l + 1),
    }),
    "alpha": Share(row) = share(row.measures.most_records_of_an_individual, row.measures.records),
    "beta": Share(row) = share(row.measures.most_records_with_a_value, row.measures.records),
    "eir_beta": Share(row) = share(row.measures.most_individuals_with_a_value, row.measures.individuals),
    "entropy_l": Share(row) = Some(row.measures.entropy_l),
    "recursive_l": Count(row) = count(row.measures.recursive_l),
    "t_equal": Share(row) = Some(row.measures.t_equal),
    "t_ordered": Share(row) = row.measures.t_ordered,
    "categories": Count(row) = row.measures.categories.and_then(count),
    "category_share": Share(row) = row.measures.categories
        .and_then(|_| share(row.measures.most_individuals_in_a_category, row.measures.individuals)),
    "category": Count(row) = row.measures.modal_category.and_then(count),
    "category_individuals": Count(row) = count(row.measures.individuals_in_modal_category),
    "category_records": Count(row) = count(row.measures.records_in_modal_category),
    "category_stands_out": Truth(row) = row.category_stands_out,
    "weight": Count(row) = row.measures.categories.and_then(|_| count(row.measures.weight)),
    "unique_fingerprints": Count(row) = count(row.measures.unique_fingerprints),
    "fewest_in_common": Count(row) = count(row.measures.fewest_with_a_fingerprint),
    "fingerprint_l": Count(row) = row.related
        .and_then(|related| count(row.measures.individuals.checked_div(related.alike)?)),
    "related_share": Share(row) = row.related
        .and_then(|related| share(related.related, row.measures.individuals)),
    "unique_record_counts": Count(row) = count(row.measures.unique_record_counts),
    "individuals_without_value": Count(row) = count(row.measures.individuals_without_value),
    "duplicate_records": Count(row) = count(row.measures.duplicate_records),
    "plain_holds": Truth(row) = row.versus.and_then(|(plain, _)| truth(plain)),
    "enhanced_holds": Truth(row) = row.versus.and_then(|(_, enhanced)| truth(enhanced)),
}

fn list_of_hashes() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::UInt64, true)))
}

fn count(n: usize) -> Option<i64> {
    i64::try_from(n).ok()
}

/// The nearest float to a share: it is at most another such float exactly if the shares compare so.
fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn truth(answer: Answer) -> Option<bool> {
    match answer {
        Answer::Holds => Some(true),
        Answer::Fails => Some(false),
        Answer::Undecided => None,
    }
}

//! Published columns with their sensitive attributes, read anew.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::concat;
use datafusion::arrow::error::ArrowError;

use super::{Records, ShownAttribute};
use crate::check::codes::{codes, invalid};

/// A sensitive column with the categories that the publisher gave.
#[derive(Debug)]
pub struct SensitiveColumn<'a> {
    /// The value of each record.
    pub values: &'a ArrayRef,
    /// Values with their categories.
    pub listed: Option<Listed<'a>>,
}

/// The publisher's list of values, of the column's type, with the category of each.
#[derive(Debug)]
pub struct Listed<'a> {
    /// The values.
    pub values: &'a ArrayRef,
    /// Their categories, 0 for the most sensitive.
    pub category: &'a [u32],
    /// Number of categories.
    pub categories: u32,
}

/// Published records as they are checked.
#[derive(Debug)]
pub struct SensitiveTable {
    class: Vec<u32>,
    individual: Vec<u32>,
    attributes: Vec<ShownAttribute>,
    /// Values that are not missing and have no category where there should be one.
    pub uncategorised_records: usize,
}

impl SensitiveTable {
    /// Reads records that refer to a list of published tuples, as [`ShownClasses`](crate::check::ShownClasses) does.
    pub fn try_new(
        tuples: &[ArrayRef],
        tuple_of_record: &[u32],
        individual: &ArrayRef,
        sensitive: &[SensitiveColumn<'_>],
    ) -> Result<Self, ArrowError> {
        let records = tuple_of_record.len();
        let lengths = sensitive.iter().map(|column| column.values.len());
        if lengths.chain([individual.len()]).any(|n| n != records) {
            return invalid("verify: the columns differ in length".to_owned());
        }
        let (tuple_class, _) = codes(tuples)?;
        let class = |tuple: &u32| match tuple_class.get(*tuple as usize) {
            Some(class) => Ok(*class),
            None if tuples.is_empty() => Ok(0),
            None => invalid("verify: a record shows a tuple that is not there".to_owned()),
        };
        let class = tuple_of_record.iter().map(class);
        let attributes = sensitive
            .iter()
            .map(attribute)
            .collect::<Result<Vec<_>, _>>()?;
        let without = |a: &ShownAttribute| match a.categories {
            0 => 0,
            _ => {
                let values = a.value.iter().flatten();
                values
                    .filter(|v| a.category[**v as usize].is_none())
                    .count()
            }
        };
        Ok(Self {
            class: class.collect::<Result<_, _>>()?,
            individual: codes(std::slice::from_ref(individual))?.0,
            uncategorised_records: attributes.iter().map(without).sum(),
            attributes,
        })
    }

    /// The records to check.
    pub fn records(&self) -> Records<'_> {
        Records {
            class: &self.class,
            individual: &self.individual,
            attributes: &self.attributes,
        }
    }
}

/// Numbers the values of a column together with those of the list, so that equal ones get the same number.
fn attribute(column: &SensitiveColumn<'_>) -> Result<ShownAttribute, ArrowError> {
    let (listed, categories) = match &column.listed {
        Some(listed) if listed.values.len() != listed.category.len() => {
            return invalid("verify: a list of categories differs in length".to_owned());
        }
        Some(listed) => (Some(listed), listed.categories),
        None => (None, 0),
    };
    let both = match listed {
        Some(listed) => concat(&[listed.values.as_ref(), column.values.as_ref()])?,
        None => ArrayRef::clone(column.values),
    };
    let (numbers, different) = codes(std::slice::from_ref(&both))?;
    let offset = both.len() - column.values.len();
    let mut category = vec![None; different];
    if let Some(listed) = listed {
        for (number, of) in numbers.iter().zip(listed.category) {
            category[*number as usize] = Some(*of);
        }
    }
    let missing = column.values.logical_nulls();
    let value = |record: usize| {
        let known = missing.as_ref().is_none_or(|nulls| nulls.is_valid(record));
        known.then(|| numbers[offset + record])
    };
    Ok(ShownAttribute {
        value: (0..column.values.len()).map(value).collect(),
        category,
        categories,
    })
}

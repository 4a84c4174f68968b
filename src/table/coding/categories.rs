//! Categories of a sensitive column's values, in the column's own type.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

use super::encode::value_ranks;
use super::key::{canonical, rows};
use crate::table::{Categories, NULL_CODE};

/// The categories of a column.
#[derive(Debug)]
pub struct ColumnCategories {
    /// The values that have one, in the column's type.
    pub values: ArrayRef,
    /// The category of each, 0 for the most sensitive.
    pub category: Vec<u32>,
    /// Number of categories.
    pub categories: u32,
    of: HashMap<Vec<u8>, u32>,
}

impl ColumnCategories {
    /// Categories for a column of some type; else what is wrong with them, without any value.
    pub fn try_new(categories: &Categories, data_type: &DataType) -> Result<Self, String> {
        let (texts, category): (Vec<&str>, Vec<u32>) = categories.iter().unzip();
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let values = cast(&texts, data_type)
            .map_err(|_| format!("cannot be of the column's type {data_type}"))?;
        let unfit = values.null_count();
        if unfit > 0 {
            let values = match unfit {
                1 => "1 value that is".to_owned(),
                n => format!("{n} values that are"),
            };
            return Err(format!(
                "have {values} not of the column's type {data_type}"
            ));
        }
        let values = canonical(&values);
        let encoded = rows(std::slice::from_ref(&values)).map_err(|e| e.to_string())?;
        let mut of = HashMap::new();
        for (row, category) in encoded.iter().zip(&category) {
            let known = *of.entry(row.data().to_vec()).or_insert(*category);
            if known != *category {
                return Err(format!(
                    "have the same value of type {data_type} in two categories"
                ));
            }
        }
        Ok(Self {
            values,
            category,
            categories: categories.len(),
            of,
        })
    }

    /// Whether two spellings of one value are in different categories.
    pub fn divides_spellings(&self) -> Result<bool, String> {
        let (codes, _) = value_ranks(&self.values, true).map_err(|e| e.to_string())?;
        let mut of = HashMap::new();
        let mut pairs = codes.iter().zip(&self.category);
        Ok(pairs.any(|(code, category)| {
            of.insert(code, category)
                .is_some_and(|known| known != category)
        }))
    }

    /// The category of each value; [`NULL_CODE`] if it is missing or has none.
    pub fn of(&self, values: &ArrayRef) -> Result<Vec<u32>, ArrowError> {
        let encoded = rows(std::slice::from_ref(values))?;
        let category = |i: usize| match values.is_valid(i) {
            true => self.of.get(encoded.row(i).data()).copied(),
            false => None,
        };
        let all = 0..values.len();
        Ok(all.map(|i| category(i).unwrap_or(NULL_CODE)).collect())
    }

    /// How many values are there and have no category.
    pub fn uncategorised(&self, values: &ArrayRef) -> Result<u64, ArrowError> {
        let of = self.of(values)?;
        let without = |i: &usize| of[*i] == NULL_CODE && values.is_valid(*i);
        Ok((0..of.len()).filter(without).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, Int64Array};

    use super::*;

    fn categories(lists: &[&[&str]]) -> Categories {
        let lists: Vec<(String, Vec<String>)> = lists
            .iter()
            .enumerate()
            .map(|(i, values)| {
                (
                    i.to_string(),
                    values.iter().map(|v| v.to_string()).collect(),
                )
            })
            .collect();
        Categories::from_lists(&lists).unwrap()
    }

    #[test]
    fn values_are_found_in_the_columns_type() {
        let of = |lists: &[&[&str]], values: ArrayRef| {
            let column = ColumnCategories::try_new(&categories(lists), values.data_type()).unwrap();
            (
                column.of(&values).unwrap(),
                column.uncategorised(&values).unwrap(),
            )
        };
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            Some("b"),
            None,
            Some("a"),
            Some("A"),
        ]));
        let found = of(&[&["a"], &["b"]], texts);
        assert_eq!(found, (vec![1, NULL_CODE, 0, NULL_CODE], 1));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7, 10, 8]));
        assert_eq!(
            of(&[&["10"], &["07", "9"]], numbers),
            (vec![1, 0, NULL_CODE], 1)
        );
        let reals: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 1.5]));
        assert_eq!(of(&[&["-0"], &["1.50"]], reals), (vec![0, 1], 0));
    }

    #[test]
    fn unfit_values_are_counted_not_shown() {
        let refused = |lists: &[&[&str]], data_type| {
            ColumnCategories::try_new(&categories(lists), &data_type).unwrap_err()
        };
        let message = refused(&[&["secret", "1"], &["2", "hidden"]], DataType::Int64);
        assert_eq!(
            message,
            "have 2 values that are not of the column's type Int64"
        );
        assert!(refused(&[&["1"], &["01"]], DataType::Int64).contains("two categories"));
    }
}

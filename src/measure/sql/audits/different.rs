//! An aggregate: the different values of a column.

use std::mem::size_of;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, partition, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use hashbrown::HashSet;

use crate::measure::plain_type;

/// The different values of a column as a list, in any order; missing ones are left out.
pub(crate) fn different_values() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(DifferentValues::new())));
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DifferentValues {
    signature: Signature,
}

impl DifferentValues {
    fn new() -> Self {
        Self {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for DifferentValues {
    fn name(&self) -> &str {
        "anonymize_different_values"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value] => Ok(list_of(value)),
            _ => internal_err!("different values are those of one column"),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match args.return_field.data_type() {
            DataType::List(item) => Ok(Box::new(Values::try_new(Arc::clone(item))?)),
            _ => internal_err!("different values are a list"),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format!("{}[values]", args.name);
        let list = args.return_type().clone();
        Ok(vec![Arc::new(Field::new(name, list, true))])
    }
}

fn list_of(value: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(plain_type(value), true)))
}

#[derive(Debug)]
struct Values {
    item: FieldRef,
    converter: RowConverter,
    /// The values as bytes.
    known: HashSet<Box<[u8]>>,
    bytes: usize,
}

impl Values {
    fn try_new(item: FieldRef) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(item.data_type().clone())])?;
        Ok(Self {
            item,
            converter,
            known: HashSet::new(),
            bytes: 0,
        })
    }

    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        // Equal values often stand together: only the first of them is looked at.
        let values = match partition(std::slice::from_ref(values)) {
            Ok(runs) => {
                let firsts = runs.ranges().into_iter().map(|run| run.start as u32);
                take(values, &UInt32Array::from_iter_values(firsts), None)?
            }
            Err(_) => Arc::clone(values),
        };
        let values = match values.data_type() == self.item.data_type() {
            true => values,
            false => cast(&values, self.item.data_type())?,
        };
        let nulls = values.logical_nulls();
        let rows = self.converter.convert_columns(&[values])?;
        for (at, row) in rows.iter().enumerate() {
            let missing = nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
            if !missing && !self.known.contains(row.data()) {
                self.bytes += row.data().len();
                self.known.insert(row.data().into());
            }
        }
        Ok(())
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let parser = self.converter.parser();
        let rows = self.known.iter().map(|bytes| parser.parse(bytes));
        let Some(values) = self.converter.convert_rows(rows)?.pop() else {
            return internal_err!("different values are those of one column");
        };
        let lengths = OffsetBuffer::from_lengths([values.len()]);
        let list = ListArray::try_new(Arc::clone(&self.item), lengths, values, None)?;
        Ok(ScalarValue::List(Arc::new(list)))
    }

    fn size(&self) -> usize {
        // Once as bytes, and once more in the list that is made of them.
        let entries = self.known.capacity() * (size_of::<Box<[u8]>>() + 1);
        size_of::<Self>() + self.converter.size() + entries + 2 * self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.add(&values)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringArray;

    use super::*;

    #[test]
    fn each_value_once_and_missing_ones_not() {
        let texts =
            |values: &[Option<&str>]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
        let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
        let mut all = Values::try_new(Arc::clone(&item)).unwrap();
        all.update_batch(&[texts(&[Some("b"), Some("b"), None, Some("a")])])
            .unwrap();
        let mut more = Values::try_new(item).unwrap();
        more.update_batch(&[texts(&[Some("c"), Some("b"), None])])
            .unwrap();
        let state = more.state().unwrap().remove(0).to_array().unwrap();
        all.merge_batch(&[state]).unwrap();
        let ScalarValue::List(list) = all.evaluate().unwrap() else {
            panic!("a list");
        };
        let values = list.value(0);
        let mut values: Vec<_> = values.as_string::<i32>().iter().flatten().collect();
        values.sort_unstable();
        assert_eq!(values, ["a", "b", "c"]);
    }
}

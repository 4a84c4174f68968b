//! `column_values(x)`: the distinct values of a column, or the distinct members of its lists.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array, new_empty_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat, sort, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use hashbrown::HashSet;

use crate::measure::cells::CellForm;
use crate::table::coding::Numbers;

/// The function, for plans.
pub(crate) fn column_values() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::new_from_impl(ColumnValues {
            signature: Signature::any(1, Volatility::Immutable),
        }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ColumnValues {
    signature: Signature,
}

/// The type of the values: members of lists, and no dictionaries.
fn value_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            value_type(item.data_type())
        }
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        other => other.clone(),
    }
}

fn list_of(value: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(value, true)))
}

impl AggregateUDFImpl for ColumnValues {
    fn name(&self) -> &str {
        "column_values"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(list_of(types.first().map_or(DataType::Null, value_type)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = args.return_field.as_ref().clone();
        Ok(vec![Arc::new(
            field.with_name(format!("{}[values]", args.name)),
        )])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value = value_type(args.expr_fields[0].data_type());
        Ok(Box::new(Values {
            converter: RowConverter::new(vec![SortField::new(value.clone())])?,
            value,
            seen: HashSet::new(),
            parts: vec![],
            bytes: 0,
        }))
    }
}

/// Distinct values so far.
#[derive(Debug)]
struct Values {
    value: DataType,
    converter: RowConverter,
    seen: HashSet<Box<[u8]>>,
    parts: Vec<ArrayRef>,
    bytes: usize,
}

impl Values {
    fn add(&mut self, array: &ArrayRef) -> Result<()> {
        let array = match CellForm::of(array.data_type()) {
            CellForm::Sets => {
                let lists = cast(array, &list_of(self.value.clone()))?;
                let lists = lists.as_list::<i32>();
                let offsets = lists.value_offsets();
                let (from, to) = (offsets[0] as usize, offsets[lists.len()] as usize);
                lists.values().slice(from, to - from)
            }
            _ => cast(array, &self.value)?,
        };
        let values = Numbers::try_new(&array)?.values(&array)?;
        let rows = self
            .converter
            .convert_columns(std::slice::from_ref(&values))?;
        let mut fresh: Vec<u32> = vec![];
        for (i, row) in (0..).zip(&rows) {
            if !self.seen.contains(row.data()) {
                self.bytes += row.data().len();
                self.seen.insert(row.data().into());
                fresh.push(i);
            }
        }
        if !fresh.is_empty() {
            let part = take(&values, &UInt32Array::from(fresh), None)?;
            self.bytes += part.get_array_memory_size();
            self.parts.push(part);
        }
        Ok(())
    }

    fn list(&self) -> Result<ScalarValue> {
        let parts: Vec<&dyn Array> = self.parts.iter().map(|p| p.as_ref()).collect();
        let values = match parts.as_slice() {
            [] => new_empty_array(&self.value),
            parts => sort(&concat(parts)?, None)?,
        };
        let field = Arc::new(Field::new_list_field(self.value.clone(), true));
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        let list = ListArray::try_new(field, offsets, values, None)?;
        Ok(ScalarValue::List(Arc::new(list)))
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.list()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes + self.seen.capacity() * size_of::<Box<[u8]>>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.list()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add(&states[0])
    }
}

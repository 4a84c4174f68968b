//! `__bucket_distance(bucket, value, times, ordered)`: how far a bucket is from all of them, at most.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use crate::measure::BucketDistances;

/// The function, for plans.
pub(crate) fn bucket_distance() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::new_from_impl(BucketDistance {
            signature: Signature::any(4, Volatility::Immutable),
        }))
    });
    Arc::clone(&FUNCTION)
}

/// NULL without buckets, or where there are too many different values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BucketDistance {
    signature: Signature,
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

impl AggregateUDFImpl for BucketDistance {
    fn name(&self) -> &str {
        "__bucket_distance"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |name: &str, data_type: DataType| {
            let name = format!("{}[{name}]", args.name);
            Arc::new(Field::new(name, data_type, true))
        };
        Ok(vec![
            field("buckets", list_of(DataType::Binary)),
            field("values", list_of(DataType::Binary)),
            field("times", list_of(DataType::Int64)),
            field("ordered", DataType::Boolean),
            field("full", DataType::Boolean),
        ])
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Distance::default()))
    }
}

#[derive(Debug, Default)]
struct Distance {
    distances: BucketDistances,
    ordered: bool,
    /// Another partition has too many values.
    full: bool,
}

impl Accumulator for Distance {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        if columns[0].is_empty() {
            return Ok(());
        }
        self.ordered = columns[3].as_boolean().value(0);
        let times = columns[2].as_primitive::<Int64Type>();
        Ok(self.distances.add(&columns[0], &columns[1], times)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let largest = self.distances.largest(self.ordered);
        Ok(ScalarValue::Float64(largest.filter(|_| !self.full)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.distances.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (mut buckets, mut values, mut times) = (vec![], vec![], vec![]);
        for (bucket, value, number) in self.distances.entries() {
            buckets.push(bucket);
            values.push(value);
            times.push(number);
        }
        Ok(vec![
            list(Arc::new(BinaryArray::from_vec(buckets)))?,
            list(Arc::new(BinaryArray::from_vec(values)))?,
            list(Arc::new(Int64Array::from(times)))?,
            ScalarValue::Boolean(Some(self.ordered)),
            ScalarValue::Boolean(Some(self.full || self.distances.is_full())),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (buckets, values) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        let times = states[2].as_list::<i32>();
        for row in 0..buckets.len() {
            self.ordered |= states[3].as_boolean().value(row);
            self.full |= states[4].as_boolean().value(row);
            let (buckets, values) = (buckets.value(row), values.value(row));
            let times = times.value(row);
            let times = times.as_primitive::<Int64Type>();
            let (buckets, values) = (buckets.as_binary::<i32>(), values.as_binary::<i32>());
            for at in 0..times.len() {
                self.distances
                    .push(buckets.value(at), values.value(at), times.value(at));
            }
        }
        Ok(())
    }
}

fn list(items: ArrayRef) -> Result<ScalarValue> {
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([items.len()]);
    let list = ListArray::try_new(field, offsets, items, None)?;
    Ok(ScalarValue::List(Arc::new(list)))
}

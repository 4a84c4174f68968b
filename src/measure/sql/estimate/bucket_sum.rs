//! `bucket_sum(p, value, individuals)`: the sum over those of one bucket who satisfy a condition, with bounds; and
//! `fixed_sum(x)`, which adds such sums in any order to the same number.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Fields, Float64Type, Int64Type,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use crate::measure::query_error::Fixed;
use crate::measure::{Estimate, Hits};

/// The fields of an estimate.
pub(super) const FIELDS: [&str; 5] = ["lower", "expected", "upper", "least", "most"];

/// The function, for plans.
pub(crate) fn bucket_sum() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let types = vec![DataType::Float64, DataType::Float64, DataType::Int64];
        Arc::new(AggregateUDF::new_from_impl(BucketSum {
            signature: Signature::exact(types, Volatility::Immutable),
        }))
    });
    Arc::clone(&FUNCTION)
}

/// The function, for plans.
pub(crate) fn fixed_sum() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::new_from_impl(FixedSum {
            signature: Signature::exact(vec![DataType::Float64], Volatility::Immutable),
        }))
    });
    Arc::clone(&FUNCTION)
}

/// How likely each member of a bucket satisfies a condition (`p`), and the values of the bucket (`value`, so many times);
/// which belong together is unknown. Rows without a `p` are no member, those without a `value` add none.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BucketSum {
    signature: Signature,
}

fn fields() -> Fields {
    FIELDS
        .map(|name| Field::new(name, DataType::Float64, false))
        .into_iter()
        .collect()
}

fn list_field() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Float64, true))
}

impl AggregateUDFImpl for BucketSum {
    fn name(&self) -> &str {
        "bucket_sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(fields()))
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |name: &str, data_type: DataType| {
            let name = format!("{}[{name}]", args.name);
            Arc::new(Field::new(name, data_type, false))
        };
        Ok(vec![
            field("expected", DataType::Decimal128(38, 0)),
            field("certain", DataType::Int64),
            field("possible", DataType::Int64),
            field("values", DataType::List(list_field())),
        ])
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Bucket::default()))
    }
}

#[derive(Debug, Default)]
struct Bucket {
    expected: Fixed,
    certain: usize,
    possible: usize,
    values: Vec<f64>,
}

impl Accumulator for Bucket {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let p = columns[0].as_primitive::<Float64Type>();
        let values = columns[1].as_primitive::<Float64Type>();
        let individuals = columns[2].as_primitive::<Int64Type>();
        for p in p.iter().flatten() {
            let mut hit = Hits::default();
            hit.add(p);
            self.expected.add(hit.expected);
            self.certain += hit.certain;
            self.possible += hit.possible;
        }
        for (value, times) in values.iter().zip(individuals) {
            if let (Some(value), Some(times)) = (value, times) {
                let times = usize::try_from(times).unwrap_or(0);
                self.values.extend(std::iter::repeat_n(value, times));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let hits = Hits {
            expected: self.expected.value(),
            certain: self.certain,
            possible: self.possible,
        };
        let mut sum = Estimate::default();
        sum.add_bucket(&hits, &mut self.values);
        let columns = [sum.lower, sum.expected, sum.upper, sum.least, sum.most]
            .map(|v| Arc::new(Float64Array::from(vec![v])) as ArrayRef);
        let array = StructArray::try_new(fields(), columns.to_vec(), None)?;
        Ok(ScalarValue::Struct(Arc::new(array)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: ArrayRef = Arc::new(Float64Array::from(self.values.clone()));
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        let list = ListArray::try_new(list_field(), offsets, values, None)?;
        Ok(vec![
            ScalarValue::Decimal128(Some(self.expected.raw()), 38, 0),
            ScalarValue::Int64(Some(self.certain as i64)),
            ScalarValue::Int64(Some(self.possible as i64)),
            ScalarValue::List(Arc::new(list)),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for sum in states[0].as_primitive::<Decimal128Type>().iter().flatten() {
            self.expected.merge(Fixed::from_raw(sum));
        }
        let count = |state: &ArrayRef| {
            let counts = state.as_primitive::<Int64Type>().iter().flatten();
            counts
                .map(|n| usize::try_from(n).unwrap_or(0))
                .sum::<usize>()
        };
        self.certain += count(&states[1]);
        self.possible += count(&states[2]);
        for values in states[3].as_list::<i32>().iter().flatten() {
            let values = values.as_primitive::<Float64Type>();
            self.values.extend(values.iter().flatten());
        }
        Ok(())
    }
}

/// A sum that depends neither on the order of rows nor on partitions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FixedSum {
    signature: Signature,
}

impl AggregateUDFImpl for FixedSum {
    fn name(&self) -> &str {
        "fixed_sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(Some(0.0)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format!("{}[sum]", args.name);
        Ok(vec![Arc::new(Field::new(
            name,
            DataType::Decimal128(38, 0),
            false,
        ))])
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sum::default()))
    }
}

#[derive(Debug, Default)]
struct Sum(Fixed);

impl Accumulator for Sum {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let values = columns[0].as_primitive::<Float64Type>();
        values.iter().flatten().for_each(|v| self.0.add(v));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(Some(self.0.value())))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = ScalarValue::Decimal128(Some(self.0.raw()), 38, 0);
        Ok(vec![sum])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let sums = states[0].as_primitive::<Decimal128Type>();
        sums.iter()
            .flatten()
            .for_each(|sum| self.0.merge(Fixed::from_raw(sum)));
        Ok(())
    }
}

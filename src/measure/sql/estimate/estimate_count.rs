//! `estimate_count(p)`: how many of some uncertain matches there are.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StructArray};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Fields, Float64Type,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::error;
use crate::measure::query_error::Fixed;

const NAME: &str = "estimate_count";

/// 97.5 % of a normal distribution lie below so many standard deviations.
const QUANTILE: f64 = 1.959_963_984_540_054;

/// The function, for plans.
pub(crate) fn estimate_count() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::new_from_impl(EstimateCount::new())));
    Arc::clone(&FUNCTION)
}

/// The aggregate function `estimate_count(p)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EstimateCount {
    signature: Signature,
}

impl EstimateCount {
    fn new() -> Self {
        let number = DataType::Float64;
        let types = [
            TypeSignature::Exact(vec![number.clone()]),
            TypeSignature::Exact(vec![number; 3]),
        ];
        Self {
            signature: Signature::one_of(types.to_vec(), Volatility::Immutable),
        }
    }
}

/// The fields of an estimate.
fn fields() -> Fields {
    ["estimate", "standard_error", "low", "high"]
        .map(|name| Field::new(name, DataType::Float64, false))
        .into_iter()
        .collect()
}

const SUMS: [&str; 4] = ["expected", "variance", "least", "most"];

impl AggregateUDFImpl for EstimateCount {
    fn name(&self) -> &str {
        NAME
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

    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Tally::default().evaluate()
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |sum: &str| {
            let name = format!("{}[{sum}]", args.name);
            Arc::new(Field::new(name, DataType::Decimal128(38, 0), false))
        };
        Ok(SUMS.map(field).to_vec())
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Tally::default()))
    }
}

/// Sums over uncertain matches, in fixed point: their order does not matter.
#[derive(Debug, Default)]
struct Tally {
    expected: Fixed,
    variance: Fixed,
    least: Fixed,
    most: Fixed,
}

impl Tally {
    fn sums(&mut self) -> [&mut Fixed; 4] {
        [
            &mut self.expected,
            &mut self.variance,
            &mut self.least,
            &mut self.most,
        ]
    }
}

impl Accumulator for Tally {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let columns: Vec<_> = values
            .iter()
            .map(|v| v.as_primitive::<Float64Type>())
            .collect();
        match columns.as_slice() {
            [p] => {
                let mut outside = 0;
                for p in p.iter().flatten() {
                    if !(0.0..=1.0).contains(&p) {
                        outside += 1;
                        continue;
                    }
                    self.expected.add(p);
                    self.variance.add(p * (1.0 - p));
                    self.least.add(p.floor());
                    self.most.add(p.ceil());
                }
                if outside > 0 {
                    let values = error::count(outside, "value");
                    return Err(error::data(
                        NAME,
                        format!("p must be between 0 and 1; outside: {values}"),
                    ));
                }
            }
            [expected, least, most] => {
                for i in 0..expected.len() {
                    if columns.iter().any(|c| c.is_null(i)) {
                        continue;
                    }
                    let (expected, least, most) =
                        (expected.value(i), least.value(i), most.value(i));
                    self.expected.add(expected);
                    // The largest variance of a number between both with this expected value (Bhatia and Davis 2000);
                    // it is reached where all go together, as the records of one individual do.
                    self.variance.add((most - expected) * (expected - least));
                    self.least.add(least);
                    self.most.add(most);
                }
            }
            _ => return datafusion::common::internal_err!("{NAME} takes one or three arguments"),
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (expected, least, most) =
            (self.expected.value(), self.least.value(), self.most.value());
        let deviation = self.variance.value().max(0.0).sqrt();
        let reach = QUANTILE * deviation;
        // Certain matches are there, impossible ones are not, whatever the approximation says.
        let values = [
            expected,
            deviation,
            (expected - reach).max(least),
            (expected + reach).min(most),
        ];
        let columns = values
            .iter()
            .map(|v| ScalarValue::Float64(Some(*v)).to_array())
            .collect::<Result<Vec<_>>>()?;
        let array = StructArray::try_new(fields(), columns, None)?;
        Ok(ScalarValue::Struct(Arc::new(array)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self
            .sums()
            .map(|sum| ScalarValue::Decimal128(Some(sum.raw()), 38, 0))
            .to_vec())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (sum, states) in self.sums().into_iter().zip(states) {
            for state in states.as_primitive::<Decimal128Type>().iter().flatten() {
                sum.merge(Fixed::from_raw(state));
            }
        }
        Ok(())
    }
}

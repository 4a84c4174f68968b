//! `relative_error(estimate, exact)`: how far an estimate is from the truth.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

use crate::measure::query_error;

/// The function.
pub(crate) fn relative_error() -> ScalarUDF {
    let number = DataType::Float64;
    let types = [
        TypeSignature::Exact(vec![number.clone(); 2]),
        TypeSignature::Exact(vec![number; 3]),
    ];
    ScalarUDF::new_from_impl(RelativeError {
        signature: Signature::one_of(types.to_vec(), Volatility::Immutable),
    })
}

/// The scalar function `relative_error(estimate, exact [, floor])`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RelativeError {
    signature: Signature,
}

impl ScalarUDFImpl for RelativeError {
    fn name(&self) -> &str {
        "relative_error"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let numbers: Vec<&Float64Array> = arrays
            .iter()
            .map(|array: &ArrayRef| array.as_primitive::<Float64Type>())
            .collect();
        let rows = arrays.first().map_or(0, |a| a.len());
        let errors: Float64Array = (0..rows)
            .map(|i| {
                let mut at = numbers
                    .iter()
                    .map(|n| datafusion::arrow::array::Array::is_valid(n, i).then(|| n.value(i)));
                let (estimate, exact) = (at.next()??, at.next()??);
                let floor = match at.next() {
                    Some(floor) => floor?,
                    None => 0.0,
                };
                query_error::relative_error(estimate, exact, floor)
            })
            .collect();
        Ok(ColumnarValue::Array(Arc::new(errors)))
    }
}

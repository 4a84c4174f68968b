//! A probability that must be known.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error;

/// The function `__known_fraction(p, column)`, for plans: p, or an error that names the column where p is NULL.
///
/// An estimate that silently left out what it does not know would look better than it is.
pub(crate) fn known_fraction() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let types = vec![DataType::Float64, DataType::Utf8];
        Arc::new(ScalarUDF::new_from_impl(KnownFraction {
            signature: Signature::exact(types, Volatility::Immutable),
        }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KnownFraction {
    signature: Signature,
}

impl ScalarUDFImpl for KnownFraction {
    fn name(&self) -> &str {
        "__known_fraction"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [p, column] = args.args.as_slice() else {
            return datafusion::common::internal_err!("__known_fraction takes two arguments");
        };
        let unknown = match p {
            ColumnarValue::Array(p) => p.null_count(),
            ColumnarValue::Scalar(p) => usize::from(p.is_null()),
        };
        if unknown > 0 {
            let column = match column {
                ColumnarValue::Scalar(name) => name.try_as_str().flatten().unwrap_or_default(),
                ColumnarValue::Array(_) => "",
            };
            return Err(error::data(
                "estimate",
                format!(
                    "what the cells of '{column}' stand for is unknown; give its domain: domain => {{{column}: …}}"
                ),
            ));
        }
        Ok(p.clone())
    }
}

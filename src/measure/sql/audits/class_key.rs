//! Scalar functions that name classes: `class_key(seed, qi, …)`, and the one behind it.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::measure::{ClassKey, class_bytes};

/// The bytes of the class that shows these values; for plans of our own.
pub(crate) fn class_tuple() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(ClassTuple::new())));
    Arc::clone(&FUNCTION)
}

/// A number for some values, the same for equal ones; for plans of our own.
pub(crate) fn value_hash() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(ValueHash::new())));
    Arc::clone(&FUNCTION)
}

/// `class_key('seed', gender, age)`: the name under which `audit_classes(…, seed => 'seed')` shows the class.
pub(crate) fn class_key() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(ClassName::new())));
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ClassTuple {
    signature: Signature,
}

impl ClassTuple {
    fn new() -> Self {
        Self {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for ClassTuple {
    fn name(&self) -> &str {
        "anonymize_class_tuple"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = arrays(&args.args, args.number_rows)?;
        Ok(ColumnarValue::Array(Arc::new(class_bytes(&columns)?)))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ValueHash {
    signature: Signature,
}

impl ValueHash {
    fn new() -> Self {
        Self {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for ValueHash {
    fn name(&self) -> &str {
        "anonymize_value_hash"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let tuples = class_bytes(&arrays(&args.args, args.number_rows)?)?;
        let hash = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let hashes = tuples.iter().map(|bytes| bytes.and_then(hash));
        Ok(ColumnarValue::Array(Arc::new(
            hashes.collect::<UInt64Array>(),
        )))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ClassName {
    signature: Signature,
}

impl ClassName {
    fn new() -> Self {
        Self {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for ClassName {
    fn name(&self) -> &str {
        "class_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if types.len() < 2 {
            return plan_err!("class_key: expected a seed and the quasi-identifiers of a class");
        }
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let seed = match args.args.first() {
            Some(ColumnarValue::Scalar(seed)) if !seed.is_null() => {
                let seed = seed.cast_to(&DataType::Utf8)?;
                match seed {
                    ScalarValue::Utf8(Some(seed)) => seed,
                    _ => return plan_err!("class_key: the seed must be a number or a string"),
                }
            }
            _ => return plan_err!("class_key: the seed must be constant"),
        };
        let key = ClassKey::from_seed(&seed);
        let columns = arrays(&args.args[1..], args.number_rows)?;
        let names = class_bytes(&columns)?;
        let names = names.iter().map(|class| class.map(|class| key.name(class)));
        Ok(ColumnarValue::Array(Arc::new(
            names.collect::<StringArray>(),
        )))
    }
}

fn arrays(values: &[ColumnarValue], rows: usize) -> Result<Vec<ArrayRef>> {
    values.iter().map(|value| value.to_array(rows)).collect()
}

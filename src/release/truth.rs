//! The input as the release should show it: with pseudonyms instead of ids, so that everybody can be compared with himself.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, ident,
};

use super::tables::sensitive;
use super::writer::hex;
use crate::coding::canonical;
use crate::spec::{INDIVIDUAL, ReleaseKey, Spec};

/// The input, in the form that the operators see, under the names of the published columns.
///
/// Where there is an id, it is replaced by the pseudonym that the release gives it.
pub(super) fn original(spec: &Spec, canonical: LogicalPlan) -> Result<LogicalPlan> {
    let fields = canonical.schema().fields().clone();
    let mut columns = vec![];
    if spec.id().is_some() {
        let function = ScalarUDF::from(PseudonymOf::new(spec.key()?.clone()));
        let id = ident(fields[0].name());
        let pseudonym = ScalarFunction::new_udf(Arc::new(function), vec![id]);
        columns.push(Expr::ScalarFunction(pseudonym).alias(INDIVIDUAL));
    }
    let names = published_names(spec);
    if names.len() + 1 != fields.len() {
        return internal_err!("publish: the input is not in canonical form");
    }
    for (field, name) in fields[1..].iter().zip(names) {
        columns.push(ident(field.name()).alias(name));
    }
    let named = LogicalPlanBuilder::from(canonical).project(columns)?;
    if spec.id().is_some() {
        return named.filter(ident(INDIVIDUAL).is_not_null())?.build();
    }
    named.build()
}

fn published_names(spec: &Spec) -> Vec<String> {
    let qi = spec.qi().iter();
    let names = qi.cloned().chain(sensitive(spec));
    names.chain(spec.keep().iter().cloned()).collect()
}

/// The pseudonym that a release gives to an id. Never registered, never printed: it holds the key.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PseudonymOf {
    key: ReleaseKey,
    signature: Signature,
}

impl PseudonymOf {
    fn new(key: ReleaseKey) -> Self {
        Self {
            key,
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for PseudonymOf {
    fn name(&self) -> &str {
        "anonymize_pseudonym"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ids = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(pseudonyms(&self.key, &ids)?))
    }
}

fn pseudonyms(key: &ReleaseKey, ids: &ArrayRef) -> Result<ArrayRef> {
    let converter = RowConverter::new(vec![SortField::new(ids.data_type().clone())])?;
    let rows = converter.convert_columns(&[canonical(ids)])?;
    let names = (0..ids.len()).map(|i| {
        let id = ids.is_valid(i).then(|| rows.row(i));
        id.map(|id| hex(&key.tag(id.data()).pseudonym))
    });
    Ok(Arc::new(names.collect::<StringArray>()))
}

//! `__workload(…)`: draws a workload from domains that are known only when the query runs.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::NAME;
use crate::error;
use crate::measure::cells::{Cell, Reader};
use crate::measure::query_error::{Draw, Workload, WorkloadColumn};

/// More values than this are no domain for random sets.
const MAX_VALUES: u128 = 65_536;

/// The function, for plans.
pub(crate) fn workload() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::new_from_impl(DrawWorkload {
            signature: Signature::variadic_any(Volatility::Immutable),
        }))
    });
    Arc::clone(&FUNCTION)
}

/// A column that queries are drawn over.
pub(super) struct Drawn {
    pub name: String,
    pub value_type: DataType,
    pub domain: Expr,
    /// A list of labels per leaf, or NULL.
    pub hierarchy: Expr,
}

/// A call: how to draw, then name, type, domain and hierarchy of each column.
pub(super) fn call(draw: &Draw, columns: Vec<Drawn>) -> Expr {
    let mut args = vec![
        lit(i64::from(draw.queries)),
        lit(i64::from(draw.dimensions)),
        lit(draw.selectivity),
        lit(ScalarValue::UInt64(Some(draw.seed))),
        lit(draw.sensitive),
    ];
    for column in columns {
        let value_type = lit(column.value_type.to_string());
        args.extend([
            lit(column.name),
            value_type,
            column.domain,
            column.hierarchy,
        ]);
    }
    workload().call(args)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DrawWorkload {
    signature: Signature,
}

impl ScalarUDFImpl for DrawWorkload {
    fn name(&self) -> &str {
        "__workload"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// A dictionary, so that a column of it holds the workload once.
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Dictionary(
            Box::new(DataType::Int32),
            Box::new(DataType::Binary),
        ))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args
            .args
            .iter()
            .map(|a| a.to_array(1))
            .collect::<Result<Vec<_>>>()?;
        let [
            queries,
            dimensions,
            selectivity,
            seed,
            sensitive,
            columns @ ..,
        ] = arrays.as_slice()
        else {
            return Err(wrong());
        };
        let count = |array: &ArrayRef| {
            u32::try_from(array.as_primitive::<Int64Type>().value(0)).map_err(|_| wrong())
        };
        let draw = Draw {
            queries: count(queries)?,
            dimensions: count(dimensions)?,
            selectivity: selectivity.as_primitive::<Float64Type>().value(0),
            seed: seed
                .as_primitive::<datafusion::arrow::datatypes::UInt64Type>()
                .value(0),
            sensitive: sensitive.as_boolean().value(0),
        };
        let attributes = columns
            .chunks_exact(4)
            .map(|column| attribute(&column[0], &column[1], &column[2], &column[3]))
            .collect::<Result<Vec<_>>>()?;
        let bytes = Workload::new(attributes, draw).to_bytes();
        Ok(ColumnarValue::Scalar(ScalarValue::Dictionary(
            Box::new(DataType::Int32),
            Box::new(ScalarValue::Binary(Some(bytes))),
        )))
    }
}

fn wrong() -> DataFusionError {
    internal_datafusion_err!("{NAME}: a workload is drawn from other arguments")
}

fn attribute(
    name: &ArrayRef,
    value_type: &ArrayRef,
    domain: &ArrayRef,
    hierarchy: &ArrayRef,
) -> Result<WorkloadColumn> {
    let value_type: DataType = value_type
        .as_string::<i32>()
        .value(0)
        .parse()
        .map_err(|_| wrong())?;
    let cells = Reader::new()
        .with_type(value_type.clone())
        .plain()
        .read(domain)?;
    let domain = Cell::hull(&cells.cells).unwrap_or(Cell::Suppressed);
    if let (Cell::Set(_), Some(values)) = (&domain, domain.values())
        && values > MAX_VALUES
    {
        let name = name.as_string::<i32>().value(0);
        return Err(error::data(
            NAME,
            format!(
                "column '{name}' has {values} different values, more than the {MAX_VALUES} that random sets are drawn from; leave it out"
            ),
        ));
    }
    let rows = hierarchy.as_list_opt::<i32>().map(|rows| rows.value(0));
    let labels = match rows.as_ref().and_then(|rows| rows.as_list_opt::<i32>()) {
        Some(rows) => {
            let reader = Reader::new().with_type(value_type.clone());
            reader.with_hierarchy(rows)?.labels().cloned()
        }
        None => None,
    };
    Ok(WorkloadColumn {
        value_type,
        domain,
        labels,
    })
}

//! The labels of values at one level of a hierarchy.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::NAME;
use crate::error;
use crate::table::coding::{Keys, Kind, Ladder, Levels, canonical};

/// What stands for everything above the last level.
const ANYTHING: &str = "*";

/// A scalar function for one level of one column's hierarchy.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelLabel {
    levels: Levels,
    level: usize,
    column: String,
    signature: Signature,
}

impl LevelLabel {
    pub(super) fn new(levels: Levels, level: usize, column: &str) -> Self {
        Self {
            levels,
            level,
            column: column.to_owned(),
            signature: Signature::any(1, Volatility::Immutable),
        }
    }

    fn labels(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = cast(values, &DataType::Utf8)?;
        if self.level == 0 {
            return Ok(texts);
        }
        let labels: StringArray = match &self.levels {
            Levels::Tree(taxonomy) => {
                let tree = taxonomy.tree();
                let leaves: HashMap<&str, u32> = (0..tree.leaves())
                    .map(|leaf| (taxonomy.label(tree.node_of(leaf)), leaf))
                    .collect();
                let texts = texts.as_string::<i32>();
                let outside = texts
                    .iter()
                    .flatten()
                    .filter(|t| !leaves.contains_key(t))
                    .count();
                if outside > 0 {
                    let message = format!(
                        "at least {} of column '{} not in the hierarchy",
                        error::count(outside as u64, "value"),
                        match outside {
                            1 => format!("{}' is", self.column),
                            _ => format!("{}' are", self.column),
                        }
                    );
                    return Err(error::data(NAME, message));
                }
                let label = |text: Option<&str>| {
                    let node = tree.node_of(*leaves.get(text?)?);
                    Some(taxonomy.label(tree.up(node, self.level as u32)))
                };
                texts.iter().map(label).collect()
            }
            levels => {
                let (values, kind) = match values.data_type() {
                    _ if matches!(levels, Levels::Mask(_)) => (texts, Kind::Masked),
                    t if t.is_floating() => (canonical(values), Kind::Real),
                    _ => (Arc::clone(values), Kind::Integer),
                };
                let ladder = Ladder::try_new(levels, values.data_type())
                    .map_err(|reason| exec_datafusion_err!("{NAME}: {reason}"))?;
                let keys = Keys::try_new(&values, kind)?;
                let label = |at: usize| {
                    let labels = (!keys.is_null(at)).then(|| ladder.labels(&keys, at))?;
                    let label = labels.into_iter().nth(self.level - 1);
                    Some(label.unwrap_or_else(|| ANYTHING.to_owned()))
                };
                (0..values.len()).map(label).collect()
            }
        };
        Ok(Arc::new(labels))
    }
}

impl ScalarUDFImpl for LevelLabel {
    fn name(&self) -> &str {
        "hierarchy_label"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        Ok(ColumnarValue::Array(self.labels(&arrays[0])?))
    }
}

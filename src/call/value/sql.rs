//! Arguments from raw SQL.

use datafusion::common::DFSchema;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, Ident, UnaryOperator, Value};

use super::ArgumentValue;

impl ArgumentValue {
    /// Reads an argument as it stands in the query; `None` unless it is constant.
    ///
    /// Numbers keep their digits, so that `0.1` is one tenth. What is not a literal (`1 + 2`, `upper('x')`) is left to
    /// the engine to fold.
    pub(crate) fn from_sql(
        expr: &SqlExpr,
        context: &mut dyn RelationPlannerContext,
    ) -> Option<Self> {
        match expr {
            SqlExpr::Identifier(ident) => {
                Some(ArgumentValue::Name(context.normalize_ident(ident.clone())))
            }
            SqlExpr::CompoundIdentifier(parts) => {
                let last: &Ident = parts.last()?;
                Some(ArgumentValue::Name(context.normalize_ident(last.clone())))
            }
            SqlExpr::Nested(inner) => Self::from_sql(inner, context),
            SqlExpr::Value(value) => match &value.value {
                Value::Number(digits, _) => Some(ArgumentValue::Number(digits.to_string())),
                Value::Boolean(b) => Some(ArgumentValue::Boolean(*b)),
                Value::Null => Some(ArgumentValue::Null),
                other => other.clone().into_string().map(ArgumentValue::Text),
            },
            SqlExpr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match Self::from_sql(expr, context)? {
                ArgumentValue::Number(digits) => Some(ArgumentValue::Number(format!("-{digits}"))),
                _ => None,
            },
            SqlExpr::Array(array) => Self::list(&array.elem, context),
            SqlExpr::Tuple(items) => Self::list(items, context),
            SqlExpr::Dictionary(fields) => {
                let entries = fields.iter().map(|field| {
                    let key = context.normalize_ident(field.key.clone());
                    Some((key, Self::from_sql(&field.value, context)?))
                });
                entries.collect::<Option<Vec<_>>>().map(ArgumentValue::Map)
            }
            SqlExpr::Map(map) => {
                let entries = map.entries.iter().map(|entry| {
                    let key = Self::from_sql(&entry.key, context)?.plain()?;
                    Some((key, Self::from_sql(&entry.value, context)?))
                });
                entries.collect::<Option<Vec<_>>>().map(ArgumentValue::Map)
            }
            other => Self::folded(other, context),
        }
    }

    fn list(items: &[SqlExpr], context: &mut dyn RelationPlannerContext) -> Option<Self> {
        let items = items.iter().map(|item| Self::from_sql(item, context));
        items.collect::<Option<Vec<_>>>().map(ArgumentValue::List)
    }

    fn folded(expr: &SqlExpr, context: &mut dyn RelationPlannerContext) -> Option<Self> {
        let expr = context.sql_to_expr(expr.clone(), &DFSchema::empty()).ok()?;
        let simplify = datafusion::optimizer::simplify_expressions::ExprSimplifier::new(
            datafusion::logical_expr::simplify::SimplifyContext::default(),
        );
        Self::from_expr(&simplify.simplify(expr).ok()?)
    }
}

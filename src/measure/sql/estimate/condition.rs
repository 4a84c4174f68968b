//! From WHERE to a [`Formula`].

use std::cell::RefCell;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, InList, Like};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Between, Expr, Operator};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::formula::Formula;
use super::match_fraction::like;
use super::refuse;
use crate::error;
use crate::measure::cells::{Comparison, Point, Selection, literals, value_type};

/// The generalized columns of a published table.
#[derive(Debug)]
pub(super) struct Generalized<'a> {
    pub schema: &'a DFSchema,
    /// Names and types.
    pub columns: Vec<(Column, DataType)>,
    /// The types of the constants that columns of texts are compared with: texts do not say what they hold.
    constants: RefCell<Vec<Option<DataType>>>,
}

impl<'a> Generalized<'a> {
    /// The generalized ones among the columns of a schema.
    pub fn new(schema: &'a DFSchema, columns: Vec<(Column, DataType)>) -> Self {
        Self {
            schema,
            constants: RefCell::new(vec![None; columns.len()]),
            columns,
        }
    }

    /// The type of the values behind a column, as its type or the constants of the query tell.
    pub fn value_type(&self, column: &Column, data_type: &DataType) -> Option<DataType> {
        value_type(data_type).or_else(|| {
            let at = self.columns.iter().position(|(c, _)| c == column)?;
            let told = self.constants.borrow()[at].clone();
            told.filter(DataType::is_temporal)
        })
    }

    /// Position of a generalized column.
    fn position(&self, column: &Column) -> Option<usize> {
        let known = self.schema.index_of_column(column).ok()?;
        let (qualifier, field) = self.schema.qualified_field(known);
        let found = Column::new(qualifier.cloned(), field.name());
        self.columns.iter().position(|(c, _)| *c == found)
    }

    /// Whether an expression uses a generalized column.
    pub fn used_by(&self, expr: &Expr) -> bool {
        expr.column_refs()
            .into_iter()
            .any(|column| self.position(column).is_some())
    }

    /// Reads a condition.
    pub fn formula(&self, expr: &Expr) -> Result<Formula> {
        self.read(expr, false)
    }

    /// Reads a condition or its contrary. NULL is neither, so NOT is moved to the leaves, where it can be told apart.
    fn read(&self, expr: &Expr, not: bool) -> Result<Formula> {
        match expr {
            Expr::Not(inner) => return self.read(inner, !not),
            Expr::Alias(alias) => return self.read(&alias.expr, not),
            Expr::Literal(value, _) => {
                let truth = match value {
                    ScalarValue::Boolean(Some(truth)) => *truth != not,
                    _ => false,
                };
                return Ok(Formula::Constant(truth));
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if matches!(op, Operator::And | Operator::Or) && self.used_by(expr) =>
            {
                let parts = vec![self.read(left, not)?, self.read(right, not)?];
                return Ok(if (*op == Operator::And) == not {
                    Formula::any(parts)
                } else {
                    Formula::all(parts)
                });
            }
            _ => {}
        }
        if !self.used_by(expr) {
            let expr = expr.clone();
            return Ok(Formula::Exact(if not { !expr } else { expr }));
        }
        self.leaf(expr, not)
    }

    /// One predicate over one generalized column.
    fn leaf(&self, expr: &Expr, not: bool) -> Result<Formula> {
        let (column, selection) = match expr {
            Expr::Column(_) => {
                let column = self.column(expr)?;
                let holds = self.points(column, [&Expr::Literal(true.into(), None)])?;
                (column, selected(holds, Comparison::Equal))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (column, constant, how) = if self.used_by(left) {
                    (left, right, comparison(*op))
                } else {
                    (right, left, op.swap().and_then(comparison))
                };
                let how = how.ok_or_else(|| self.unknown(expr))?;
                let column = self.column(column)?;
                (
                    column,
                    selected(self.points(column, [constant.as_ref()])?, how),
                )
            }
            Expr::Between(Between {
                expr: inner,
                negated,
                low,
                high,
            }) => {
                let column = self.column(inner)?;
                let ends = self.points(column, [low.as_ref(), high.as_ref()])?;
                let selection = match <[_; 2]>::try_from(ends) {
                    Ok([Some(low), Some(high)]) => Some(Selection::between(low, high)),
                    _ => None,
                };
                (column, selection.map(|s| negate(s, *negated)))
            }
            Expr::InList(InList {
                expr: inner,
                list,
                negated,
            }) => {
                let column = self.column(inner)?;
                let points = self.points(column, list)?;
                // NOT IN (…, NULL) is never true.
                let null = (*negated != not) && points.iter().any(Option::is_none);
                let selection = Selection::one_of(points.into_iter().flatten());
                (column, (!null).then(|| negate(selection, *negated)))
            }
            Expr::IsNull(inner) | Expr::IsNotNull(inner) => {
                let column = self.column(inner)?;
                let missing = matches!(expr, Expr::IsNull(_)) != not;
                let selection = if missing {
                    Selection::missing()
                } else {
                    Selection::values()
                };
                return Ok(Formula::Cell(column, selection));
            }
            Expr::Like(Like {
                negated,
                expr: inner,
                pattern,
                escape_char: None,
                case_insensitive: false,
            }) => {
                let column = self.column(inner)?;
                let selection = match constant(pattern)?.try_as_str().flatten() {
                    Some(pattern) => Some(negate(like(pattern)?, *negated)),
                    None => None,
                };
                (column, selection)
            }
            _ => return Err(self.unknown(expr)),
        };
        // A comparison with NULL holds as little as its contrary.
        Ok(match selection {
            Some(selection) => Formula::Cell(column, negate(selection, not)),
            None => Formula::Constant(false),
        })
    }

    /// The position of an expression that is nothing but a generalized column.
    fn column(&self, expr: &Expr) -> Result<usize> {
        match expr {
            Expr::Column(column) => self.position(column),
            _ => None,
        }
        .ok_or_else(|| self.unknown(expr))
    }

    fn unknown(&self, expr: &Expr) -> datafusion::common::DataFusionError {
        let used = expr.column_refs();
        let name = used
            .into_iter()
            .find(|column| self.position(column).is_some())
            .map_or_else(String::new, |column| format!(" '{}'", column.name));
        refuse(format!(
            "the generalized column{name} can be compared with constants: =, <>, <, <=, >, >=, BETWEEN, IN, IS NULL, LIKE 'abc%', and these with AND, OR, NOT"
        ))
    }

    /// Constants as values of a column.
    fn points<'e>(
        &self,
        column: usize,
        constants: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<Vec<Option<Point>>> {
        let (name, data_type) = &self.columns[column];
        let target = value_type(data_type);
        let read = |expr: &Expr| {
            let value = constant(expr)?;
            let array: ArrayRef = value.to_array()?;
            let own = match array.data_type() {
                t if t.is_decimal() => DataType::Float64,
                t => t.clone(),
            };
            let mut told = self.constants.borrow_mut();
            if own != DataType::Null {
                told[column].get_or_insert_with(|| own.clone());
            }
            let told = told[column].as_ref().filter(|t| t.is_temporal());
            let target = target.as_ref().or(told).unwrap_or(&own);
            let points = literals(&array, target).map_err(|_| {
                refuse(format!(
                    "a constant of type {} cannot be compared with column '{}', which holds values of type {target}",
                    array.data_type(),
                    name.name
                ))
            })?;
            Ok(points.into_iter().next().flatten())
        };
        constants.into_iter().map(read).collect()
    }
}

/// The value of a constant expression.
fn constant(expr: &Expr) -> Result<ScalarValue> {
    let expr = match expr {
        Expr::Literal(..) => expr.clone(),
        other => ExprSimplifier::new(SimplifyContext::default())
            .simplify(other.clone())
            .map_err(|_| not_constant())?,
    };
    match expr {
        Expr::Literal(value, _) => Ok(value),
        _ => Err(not_constant()),
    }
}

fn not_constant() -> datafusion::common::DataFusionError {
    error::call(
        super::NAME,
        "a generalized column can be compared with constants only",
    )
}

fn selected(mut points: Vec<Option<Point>>, how: Comparison) -> Option<Selection> {
    let point = points.pop().flatten()?;
    Some(Selection::compared(how, point))
}

/// The values that are not selected; a missing value is never among them.
fn negate(selection: Selection, not: bool) -> Selection {
    if not {
        selection.complement().and(&Selection::values())
    } else {
        selection
    }
}

fn comparison(op: Operator) -> Option<Comparison> {
    Some(match op {
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::NotEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

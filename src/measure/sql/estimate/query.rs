//! The query inside `estimate(published, 'SELECT count(*) …')`.

use datafusion::common::{DFSchema, Result, TableReference};
use datafusion::logical_expr::Expr;
use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast::{
    GroupByExpr, Query as SqlQuery, Select, SelectItem, SetExpr, Statement as SqlStatement,
    TableFactor,
};

use super::refuse;
use crate::call::arguments::Arguments;
use crate::error;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// `count(*)`.
    Records,
    /// `count(DISTINCT individual)`.
    Individuals,
}

/// A count query, taken apart.
#[derive(Debug)]
pub(crate) struct Query {
    pub counted: Counted,
    /// Conditions that must all hold.
    pub conditions: Vec<Expr>,
    /// Columns of GROUP BY with the names they have in the result.
    pub keys: Vec<(Expr, String)>,
}

/// The SELECT of a query that has nothing else, and the name of its table. The function that asks, and the shape of its
/// queries, are for messages.
pub(super) fn parse(function: &str, shape: &str, sql: &str) -> Result<(Box<Select>, String)> {
    let refuse = |message: String| error::call(function, message);
    let unreadable = || refuse(format!("the query must be {shape}"));
    let mut statements = DFParser::parse_sql(sql).map_err(|e| {
        refuse(format!(
            "the query cannot be parsed: {}",
            e.strip_backtrace()
        ))
    })?;
    let (Some(Statement::Statement(statement)), None) =
        (statements.pop_front(), statements.pop_front())
    else {
        return Err(unreadable());
    };
    let SqlStatement::Query(query) = *statement else {
        return Err(unreadable());
    };
    let SqlQuery {
        with: None,
        body,
        order_by: None,
        limit_clause: None,
        fetch: None,
        ..
    } = *query
    else {
        return Err(refuse(format!(
            "WITH, ORDER BY and LIMIT belong around {function}(…), not into its query"
        )));
    };
    let SetExpr::Select(select) = *body else {
        return Err(unreadable());
    };
    if select.having.is_some() || select.distinct.is_some() || select.qualify.is_some() {
        return Err(refuse(format!(
            "HAVING and DISTINCT belong around {function}(…), not into its query"
        )));
    }
    let [from] = select.from.as_slice() else {
        return Err(unreadable());
    };
    let name = match &from.relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } if from.joins.is_empty() => match alias {
            Some(alias) => alias.name.value.clone(),
            None => TableReference::parse_str(&name.to_string())
                .table()
                .to_owned(),
        },
        _ => {
            return Err(refuse(
                "the query reads one published table, without joins and subqueries".to_owned(),
            ));
        }
    };
    Ok((select, name))
}

impl Query {
    /// The query of a count with conditions and groups.
    pub fn of_count(
        count: &Expr,
        id: Option<&str>,
        mut conditions: Vec<Expr>,
        keys: Vec<(Expr, String)>,
    ) -> Result<Self> {
        let (counted, more) = count_of(count, id)?;
        conditions.extend(more);
        Ok(Self {
            counted,
            conditions,
            keys,
        })
    }

    /// Reads a SELECT over a published table whose individuals are told apart by `id`.
    pub fn read(
        select: Select,
        schema: &DFSchema,
        id: Option<&str>,
        given: &mut Arguments,
    ) -> Result<Self> {
        let mut items = vec![];
        for item in select.projection {
            items.push(match item {
                SelectItem::UnnamedExpr(expr) => (given.expression(expr, schema)?.unalias(), None),
                SelectItem::ExprWithAlias { expr, alias } => {
                    (given.expression(expr, schema)?.unalias(), Some(alias.value))
                }
                _ => {
                    return Err(refuse(
                        "the query selects columns of GROUP BY and one count, not *",
                    ));
                }
            });
        }
        let mut conditions = vec![];
        if let Some(condition) = select.selection {
            conditions.push(given.expression(condition, schema)?);
        }
        let groups = match select.group_by {
            GroupByExpr::Expressions(groups, modifiers) if modifiers.is_empty() => groups,
            _ => return Err(refuse("GROUP BY must list columns")),
        };
        let mut grouped = vec![];
        for group in groups {
            let expr = given.expression(group, schema)?;
            grouped.push(match ordinal(&expr) {
                // GROUP BY 1 is the first column selected.
                Some(at) => match items.get(at.wrapping_sub(1)) {
                    Some((expr, _)) => expr.clone(),
                    None => return Err(refuse("GROUP BY names a column that is not selected")),
                },
                None => expr,
            });
        }

        let mut counted = None;
        let mut keys = vec![];
        for (expr, alias) in items {
            if let Expr::AggregateFunction(_) = &expr {
                let (what, more) = count_of(&expr, id)?;
                if counted.replace(what).is_some() {
                    return Err(refuse("the query has more than one count"));
                }
                conditions.extend(more);
            } else if grouped.contains(&expr) {
                let name = alias.unwrap_or_else(|| match &expr {
                    Expr::Column(column) => column.name.clone(),
                    other => other.schema_name().to_string(),
                });
                keys.push((expr, name));
            } else {
                return Err(refuse(
                    "the query selects something that is neither a count nor in GROUP BY",
                ));
            }
        }
        // Groups that are not shown are groups all the same.
        for expr in grouped {
            if !keys.iter().any(|(key, _)| *key == expr) {
                let name = expr.schema_name().to_string();
                keys.push((expr, name));
            }
        }
        let counted = counted.ok_or_else(|| refuse("the query has no count(…)"))?;
        Ok(Self {
            counted,
            conditions,
            keys,
        })
    }
}

fn ordinal(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Literal(datafusion::common::ScalarValue::Int64(Some(at)), _) => {
            usize::try_from(*at).ok()
        }
        _ => None,
    }
}

/// What a count counts, with further conditions: `count(x)` counts where x is not NULL, FILTER where it holds.
fn count_of(expr: &Expr, id: Option<&str>) -> Result<(Counted, Vec<Expr>)> {
    let Expr::AggregateFunction(function) = expr else {
        return Err(refuse("the query has no count(…)"));
    };
    if function.func.name() != "count" {
        return Err(refuse(format!(
            "the query must count; {} cannot be estimated",
            function.func.name()
        )));
    }
    let params = &function.params;
    let mut conditions: Vec<Expr> = params.filter.iter().map(|f| f.as_ref().clone()).collect();
    let argument = match params.args.as_slice() {
        [] => None,
        [argument] => Some(argument),
        _ => return Err(refuse("count takes one column")),
    };
    let column = match argument {
        #[expect(deprecated)]
        Some(Expr::Wildcard { .. }) | None => None,
        Some(Expr::Literal(value, _)) if !value.is_null() => None,
        Some(argument) => Some(argument),
    };
    match (column, params.distinct) {
        (None, false) => Ok((Counted::Records, conditions)),
        (Some(column), false) => {
            conditions.push(column.clone().is_not_null());
            Ok((Counted::Records, conditions))
        }
        (Some(Expr::Column(column)), true) if Some(column.name.as_str()) == id => {
            Ok((Counted::Individuals, conditions))
        }
        _ => Err(refuse(match id {
            Some(id) => format!("count(DISTINCT …) counts individuals: write count(DISTINCT {id})"),
            None => "count(DISTINCT …) counts individuals: name their column, id => individual"
                .to_owned(),
        })),
    }
}

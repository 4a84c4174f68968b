//! What makes a release differ from another one of the same people.

use std::collections::BTreeMap;
use std::fmt::Write;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, exec_datafusion_err};
use datafusion::datasource::source_as_provider;
use datafusion::functions_table::generate_series::GenerateSeriesTable;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use serde::Serialize;

use super::run::{changes_nothing, parameters};
use crate::spec::{BlockSize, Choice, GivenDomain, Spec};
use crate::table::Categories;
use crate::table::coding::Levels;

/// What was asked for, as texts of which a ledger keeps keyed hashes. They hold labels and values.
#[derive(Debug)]
pub(super) struct Subject {
    /// The function and all its arguments but the seed.
    pub settings: String,
    /// How the records are made of the tables that are read, but not which tables these are: a job reads other files
    /// every night.
    pub query: String,
}

/// The texts of old entries are compared with those of new ones: a field that changes its name or its form makes every
/// earlier release one with other settings.
#[derive(Serialize)]
struct Settings<'a> {
    function: &'a str,
    parameters: BTreeMap<String, String>,
    qi: &'a [String],
    sensitive: &'a [String],
    keep: &'a [String],
    categorical: &'a [String],
    domain: &'a BTreeMap<String, GivenDomain>,
    hierarchy: &'a BTreeMap<String, Levels>,
    categories: &'a BTreeMap<String, Categories>,
    one_row_per_individual: bool,
    normalize: bool,
    null_id: &'a str,
    null_sensitive: &'a str,
    contradictory: &'a str,
    labels: &'a str,
    block: Option<u64>,
}

impl Subject {
    /// Of a call over an input in canonical form.
    pub fn of(spec: &Spec, input: &LogicalPlan) -> Result<Self> {
        let settings = Settings {
            function: spec.function(),
            parameters: parameters(spec),
            qi: spec.qi(),
            sensitive: spec.sensitive(),
            keep: spec.keep(),
            categorical: spec.categorical(),
            domain: spec.domains(),
            hierarchy: spec.hierarchies(),
            categories: spec.categories(),
            one_row_per_individual: spec.one_row_per_individual(),
            normalize: spec.normalize,
            null_id: spec.null_id.name(),
            null_sensitive: spec.null_sensitive.name(),
            contradictory: spec.contradictory.name(),
            labels: spec.fingerprint_rows().name(),
            block: match spec.block() {
                BlockSize::All => None,
                BlockSize::Individuals(size) => Some(size),
            },
        };
        let settings = serde_json::to_string(&settings);
        Ok(Self {
            settings: settings.map_err(|e| exec_datafusion_err!("ledger: {e}"))?,
            query: query(input)?,
        })
    }
}

/// The steps of a query, without the names of its tables.
fn query(plan: &LogicalPlan) -> Result<String> {
    let mut steps = String::new();
    plan.apply_with_subqueries(|node| {
        let inputs = node.inputs().len();
        let step = match node {
            LogicalPlan::SubqueryAlias(_) => return Ok(TreeNodeRecursion::Continue),
            LogicalPlan::Projection(projection) if changes_nothing(node, &projection.expr) => {
                return Ok(TreeNodeRecursion::Continue);
            }
            LogicalPlan::TableScan(scan) => {
                let names = scan.projected_schema.fields().iter();
                let names: Vec<&str> = names.map(|field| field.name().as_str()).collect();
                let filters = scan.filters.iter().cloned().map(without_tables);
                let filters: Vec<Expr> = filters.collect::<Result<_>>()?;
                format!(
                    "Read: {names:?} {filters:?} {:?}{}",
                    scan.fetch,
                    series(scan)
                )
            }
            node => {
                let bare = node.clone().map_expressions(|expression| {
                    Ok(Transformed::yes(without_tables(expression)?))
                })?;
                bare.data.display().to_string()
            }
        };
        writeln!(steps, "{inputs} {step}").map_err(|e| exec_datafusion_err!("ledger: {e}"))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(steps)
}

/// The numbers of a series, which are a part of the query and no table.
fn series(scan: &TableScan) -> String {
    let provider = source_as_provider(&scan.source).ok();
    let series = provider.and_then(|provider| {
        let series = provider.downcast_ref::<GenerateSeriesTable>()?;
        Some(format!(" {series:?}"))
    });
    series.unwrap_or_default()
}

/// An expression over columns without the names of their tables.
fn without_tables(expression: Expr) -> Result<Expr> {
    let bare = expression.transform_up(|inner| {
        Ok(match inner {
            Expr::Column(column) => {
                Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))
            }
            Expr::OuterReferenceColumn(field, column) => {
                let column = Column::new_unqualified(column.name);
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(bare.data)
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::pipeline::AnonymizeNode;

    const CALL: &str = "anonymize_p_sensitive(SOURCE, id => pid, qi => [age, sex], sensitive => disease, k => 4, p => 2, \
        domain => {age: [0, 120]}, hierarchy => {sex: sexes}, categories => {disease: [['d1', 'd2'], ['d0']]}, normalize => true, block => 500)";

    async fn subject(call: &str) -> Subject {
        let context = SessionContext::new();
        crate::register_all(&context).unwrap();
        for sql in [
            "CREATE TABLE people AS SELECT value AS pid, value % 50 AS age, 'F' AS sex, 'd' || (value % 3) AS disease FROM range(0, 90)",
            "CREATE TABLE others AS SELECT * FROM people",
            "CREATE TABLE sexes AS SELECT column1 AS label, column2 AS above FROM (VALUES ('F', '*'), ('M', '*'))",
        ] {
            context.sql(sql).await.unwrap().collect().await.unwrap();
        }
        let frame = context.sql(&format!("SELECT * FROM {call}")).await;
        let mut found = None;
        let plan = frame.unwrap_or_else(|e| panic!("{call}: {e}"));
        plan.into_unoptimized_plan()
            .apply(|node| {
                if let LogicalPlan::Extension(extension) = node {
                    let node = extension.node.as_any().downcast_ref::<AnonymizeNode>();
                    let node = node.unwrap();
                    found = Some(Subject::of(node.spec(), extension.node.inputs()[0])?);
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
        found.unwrap()
    }

    /// Earlier entries hold hashes of this text: a change of it makes all of them releases with other settings.
    #[tokio::test]
    async fn settings_are_written_as_ever() {
        let subject = subject(&CALL.replace("SOURCE", "people")).await;
        let expected = r#"{"function":"anonymize_p_sensitive",
            "parameters":{"algorithm":"optimized","categories":"2","k":"4","notation":"typed","p":"2"},
            "qi":["age","sex"],"sensitive":["disease"],"keep":[],"categorical":[],
            "domain":{"age":{"Values":["0","120"]}},"hierarchy":{"sex":{"Tree":[["F","*"],["M","*"]]}},
            "categories":{"disease":[["1",["d1","d2"]],["2",["d0"]]]},"one_row_per_individual":false,
            "normalize":true,"null_id":"error","null_sensitive":"error","contradictory":"error",
            "labels":"records","block":500}"#;
        let lines = expected.lines().map(str::trim_start);
        assert_eq!(subject.settings, lines.collect::<String>());
    }

    /// Tables may have other names; what is taken from them, and how, may not change.
    #[tokio::test]
    async fn queries_differ_in_what_they_do() {
        let of = async |source: &str| subject(&CALL.replace("SOURCE", source)).await.query;
        let all = of("people").await;
        assert!(!all.contains("people"), "{all}");
        for same in [
            "others",
            "(SELECT * FROM people)",
            "(SELECT o.* FROM others AS o)",
        ] {
            assert_eq!(of(same).await, all);
        }
        let some = |table: &str, age: u32| {
            format!(
                "(SELECT * FROM {table} AS t WHERE t.age > {age} AND pid IN (SELECT pid FROM {table} AS u WHERE u.age < t.age + 9))"
            )
        };
        let filtered = of(&some("people", 3)).await;
        assert_eq!(of(&some("others", 3)).await, filtered);
        let mut different = vec![all, filtered];
        for other in [
            some("people", 4),
            "(SELECT * REPLACE (age / 10 AS age) FROM people)".to_owned(),
            "(SELECT * FROM people LIMIT 40)".to_owned(),
            "(SELECT * FROM people UNION ALL SELECT * FROM others)".to_owned(),
            "(SELECT people.* FROM people JOIN others ON people.pid = others.pid)".to_owned(),
            "(SELECT people.* FROM people LEFT JOIN others ON people.pid = others.pid)".to_owned(),
            "(SELECT people.* FROM people JOIN range(0, 40) AS r ON age = r.value)".to_owned(),
            "(SELECT people.* FROM people JOIN range(0, 41) AS r ON age = r.value)".to_owned(),
        ] {
            let other = of(&other).await;
            assert!(!different.contains(&other), "{other}");
            different.push(other);
        }
    }
}

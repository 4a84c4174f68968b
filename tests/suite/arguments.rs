//! Every argument of every function, written in every way: the same call comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion_anonymize::{
    AnonymizeNode, AnonymizeQueryPlanner, AnonymizeTableFunction, Argument, ArgumentKind,
    ArgumentValue, BlockSize, Categories, Choice, FUNCTIONS, Function, GivenDomain, Levels,
    Secrecy, Spec, TABLE_FUNCTIONS, Taxonomy, anonymize, call,
};
use serde_json::{Value, json};

use crate::argument_calls::{CALLS, arguments};
use crate::engine::{printed, rows};
use crate::golden::measured;

fn function(name: &str) -> &'static Function {
    TABLE_FUNCTIONS.iter().find(|f| f.name == name).unwrap()
}

#[test]
fn every_argument_is_given() {
    for function in TABLE_FUNCTIONS.iter() {
        // What is published must be a query, and what is read a release; both have tests of their own. The last answers
        // nothing but counts.
        if ["publish", "release", "estimated"].contains(&function.name) {
            continue;
        }
        let mut given = BTreeSet::new();
        for (_, tables, call) in CALLS.iter().filter(|(name, ..)| *name == function.name) {
            given.extend(arguments(function.name, call).keys().cloned());
            let first = function.arguments.iter().take(tables.len());
            given.extend(first.map(|argument| argument.name.to_owned()));
        }
        // Options of algorithms are the same for all functions.
        let others = CALLS.iter().flat_map(|(f, _, call)| arguments(f, call));
        let others: BTreeSet<String> = others.map(|(name, _)| name).collect();
        for argument in function.arguments.iter() {
            let shared = ["anonymize_", "anatomize_"]
                .iter()
                .any(|begin| function.name.starts_with(begin))
                && others.contains(argument.name);
            let own = given.contains(argument.name);
            assert!(own || shared, "{}: {}", function.name, argument.name);
        }
    }
}

/// What the schema of jobs must say of a key of `publish`.
fn schema(argument: &Argument) -> Value {
    let texts = json!({ "type": "string" });
    match argument.kind {
        ArgumentKind::Relation | ArgumentKind::Column | ArgumentKind::Text => texts,
        ArgumentKind::Columns => json!({ "type": ["string", "array"], "items": texts }),
        ArgumentKind::Flag => json!({ "type": "boolean" }),
        // A number that comes from the environment is a text.
        ArgumentKind::Count | ArgumentKind::Seed | ArgumentKind::Block => {
            json!({ "type": ["integer", "string"] })
        }
        ArgumentKind::Decimal | ArgumentKind::Share => json!({ "type": ["number", "string"] }),
        ArgumentKind::Choice(names) => json!({ "enum": names }),
        ArgumentKind::Domains => {
            json!({ "type": "object", "additionalProperties": { "type": "array" } })
        }
        ArgumentKind::Hierarchies => json!({ "type": "object", "additionalProperties": texts }),
        ArgumentKind::Categories => json!({ "type": ["string", "array", "object"] }),
        ArgumentKind::Division => {
            json!({ "type": "array", "items": { "type": "array", "items": texts } })
        }
        ArgumentKind::Secrecy => {
            json!({ "type": "object", "additionalProperties": { "type": ["string", "boolean"] } })
        }
        ArgumentKind::CountPerColumn => json!({ "type": ["integer", "string", "object"] }),
        ArgumentKind::DecimalPerColumn | ArgumentKind::Levels => {
            json!({ "type": "object", "additionalProperties": { "type": "number" } })
        }
    }
}

#[test]
fn the_schema_of_jobs_has_every_argument() {
    let names: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
    let mut keys: BTreeMap<&str, (&str, Vec<Value>)> = BTreeMap::new();
    for function in TABLE_FUNCTIONS.iter().filter(|f| names.contains(&f.name)) {
        let arguments = function.arguments.iter();
        for argument in arguments.filter(|a| a.kind != ArgumentKind::Relation) {
            let (_, forms) = keys.entry(argument.name).or_insert((argument.help, vec![]));
            let form = schema(argument);
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    let keys = keys.into_iter().map(|(name, (help, mut forms))| {
        let mut form = match forms.len() {
            1 => forms.remove(0),
            _ => json!({ "anyOf": forms }),
        };
        form["description"] = help.into();
        (name.to_owned(), form)
    });
    let mut keys: serde_json::Map<String, Value> = keys.collect();
    keys.insert("function".to_owned(), json!({ "enum": names }));
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/reference/job.schema.json"
    );
    let written: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let publish = &written["properties"]["publish"];
    let keys = Value::from(keys);
    assert_eq!(
        publish["properties"],
        keys,
        "job.schema.json should say of publish:\n{}",
        serde_json::to_string_pretty(&keys).unwrap()
    );
    assert_eq!(publish["additionalProperties"], json!(false));
}

/// A value as it is written in SQL.
fn sql(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(sql).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(name, value)| format!("{name}: {}", sql(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn value(value: &Value) -> ArgumentValue {
    match value {
        Value::String(text) => ArgumentValue::Text(text.clone()),
        Value::Number(number) => ArgumentValue::Number(number.to_string()),
        Value::Bool(flag) => ArgumentValue::Boolean(*flag),
        Value::Null => ArgumentValue::Null,
        Value::Array(items) => ArgumentValue::List(items.iter().map(self::value).collect()),
        Value::Object(entries) => {
            let entries = entries.iter();
            ArgumentValue::Map(entries.map(|(n, v)| (n.clone(), self::value(v))).collect())
        }
    }
}

/// What a plan anonymizes, and how.
fn spec(plan: &LogicalPlan) -> Option<Spec> {
    let mut found = None;
    plan.apply(|node| {
        if let LogicalPlan::Extension(extension) = node
            && let Some(node) = extension.node.as_any().downcast_ref::<AnonymizeNode>()
        {
            found = Some(node.spec().as_ref().clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    found
}

/// What comes of a call: the spec if it anonymizes, else its rows.
async fn outcome(of: &str, frame: datafusion::common::Result<DataFrame>) -> String {
    let frame = frame.unwrap_or_else(|e| panic!("{of}: {e}"));
    // Views are inlined when plans are optimized.
    let plan = frame.clone().into_optimized_plan().unwrap();
    if let Some(spec) = spec(&plan) {
        return serde_json::to_string(&spec).unwrap();
    }
    let rows = frame.collect().await;
    let mut rows = printed(&rows.unwrap_or_else(|e| panic!("{of}: {e}")));
    rows.sort();
    format!("{rows:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn all_ways_to_write_arguments_say_the_same() {
    let ctx = measured::session(1).await;
    // A host that knows only ordinary table functions.
    let plain = SessionStateBuilder::new_with_default_features()
        .with_config(SessionConfig::new().with_target_partitions(1))
        .with_query_planner(Arc::new(AnonymizeQueryPlanner))
        .build();
    let plain = SessionContext::new_with_state(plain);
    for function in TABLE_FUNCTIONS.iter() {
        let table_function = AnonymizeTableFunction::new(function.name);
        plain.register_udtf(function.name, Arc::new(table_function));
    }
    for table in [
        "visits", "people", "wards", "ranks", "eir", "ir_text", "kl", "lgb",
    ] {
        let provider = ctx.table_provider(table).await.unwrap();
        plain.register_table(table, provider).unwrap();
    }
    for (name, tables, given) in CALLS {
        let given = arguments(name, given);
        let of = format!(
            "{name}({}, {})",
            tables.join(", "),
            sql(&given.clone().into())
        );
        let mut named: Vec<String> = tables.iter().map(|t| (*t).to_owned()).collect();
        let relation = |argument: &str| {
            let argument = function(name).argument(argument);
            argument.is_some_and(|a| a.kind == ArgumentKind::Relation)
        };
        named.extend(given.iter().map(|(name, value)| match relation(name) {
            true => format!("{name} => {}", value.as_str().unwrap()),
            false => format!("{name} => {}", sql(value)),
        }));
        let named = format!("SELECT * FROM {name}({})", named.join(", "));
        let expected = outcome(&named, ctx.sql(&named).await).await;

        let mut options: Vec<String> = tables.iter().map(|t| format!("'{t}'")).collect();
        if !given.is_empty() {
            options.push(sql(&given.clone().into()));
        }
        let options = format!("SELECT * FROM {name}({})", options.join(", "));
        for ctx in [&ctx, &plain] {
            assert_eq!(
                outcome(&options, ctx.sql(&options).await).await,
                expected,
                "{of}"
            );
        }

        let text = |text: &str| ArgumentValue::Text(text.to_owned());
        let relations = function(name).arguments.iter().zip(*tables);
        let relations = relations.map(|(argument, table)| (argument.name, text(table)));
        let values = given.iter().map(|(name, v)| (name.as_str(), value(v)));
        let called = call(&ctx, name, [], relations.chain(values));
        assert_eq!(outcome(&of, called).await, expected, "{of}");

        if FUNCTIONS.iter().any(|f| f.name == *name) {
            let mut spec = Spec::new(*name);
            // Some say more of what others name, so these come first.
            for first in [true, false] {
                for (argument, value) in &given {
                    let basic = ["id", "qi", "sensitive"].contains(&argument.as_str());
                    if basic == first {
                        spec = with(&ctx, spec, argument, value).await;
                    }
                }
            }
            let input = ctx.table(tables[0]).await.unwrap();
            assert_eq!(outcome(&of, anonymize(input, spec)).await, expected, "{of}");
        }
    }
}

/// The hierarchy in the table `wards`.
async fn wards(ctx: &SessionContext) -> Taxonomy {
    let sql = "SELECT column1, column2, column3 FROM wards ORDER BY column3, column2, column1";
    Taxonomy::from_rows(&rows(ctx, sql).await.unwrap()).unwrap()
}

/// The categories in the table `ranks`.
async fn ranks(ctx: &SessionContext) -> Categories {
    let mut lists: Vec<(String, Vec<String>)> = vec![];
    for category in ["first", "second"] {
        let sql = format!("SELECT value FROM ranks WHERE category = '{category}'");
        let values = rows(ctx, &sql).await.unwrap();
        lists.push((category.to_owned(), values.concat()));
    }
    Categories::from_lists(&lists).unwrap()
}

/// The method of `Spec` that an argument stands for.
async fn with(ctx: &SessionContext, spec: Spec, argument: &str, value: &Value) -> Spec {
    fn texts(value: &Value) -> Vec<String> {
        match value {
            Value::Array(items) => items.iter().flat_map(texts).collect(),
            Value::String(text) => vec![text.clone()],
            other => vec![other.to_string()],
        }
    }
    fn choice<C: Choice>(value: &Value) -> C {
        C::named(value.as_str().unwrap()).unwrap()
    }
    let text = texts(value).join(" ");
    let each = || value.as_object().unwrap().clone().into_iter();
    match (argument, value) {
        ("id", _) => spec.with_id(text),
        ("one_row_per_individual", _) => spec.with_one_row_per_individual(value == true),
        ("qi", _) => spec.with_qi(texts(value)),
        ("sensitive", _) => spec.with_sensitive(texts(value)),
        ("keep", _) => spec.with_keep(texts(value)),
        ("categorical", _) => spec.with_categorical(texts(value)),
        ("domain", _) => each().fold(spec, |spec, (column, values)| {
            spec.with_domain(column, GivenDomain::Values(texts(&values)))
        }),
        ("hierarchy", _) => {
            let mut spec = spec;
            for (column, levels) in each() {
                let levels = match Levels::built_in(levels.as_str().unwrap()).unwrap() {
                    Some(levels) => levels,
                    None => Levels::Tree(Arc::new(wards(ctx).await)),
                };
                spec = spec.with_hierarchy(column, levels);
            }
            spec
        }
        ("algorithm", _) => spec.with_algorithm(text),
        ("block", Value::Number(size)) => {
            spec.with_block(BlockSize::Individuals(size.as_u64().unwrap()))
        }
        ("block", _) => spec.with_block(BlockSize::All),
        ("notation", _) => spec.with_notation(choice(value)),
        ("null_id", _) => spec.with_null_id(choice(value)),
        ("null_sensitive", _) => spec.with_null_sensitive(choice(value)),
        ("contradictory", _) => spec.with_contradictory(choice(value)),
        ("normalize", _) => spec.with_normalize(value == true),
        ("seed", _) => spec.with_seed(text),
        ("output", _) if spec.function() == "anonymize_lgb" => spec.with_output(choice(value)),
        ("output", _) => spec.with_fingerprint_rows(choice(value)),
        ("strategy", _) => spec.with_strategy(choice(value)),
        ("small_pattern", _) => spec.with_small_pattern(choice(value)),
        ("semi_sensitive", _) => each().fold(spec, |spec, (column, whose)| {
            let secrecy = match whose {
                Value::Bool(all) => Secrecy::All(all),
                whose => Secrecy::Column(texts(&whose).join(" ")),
            };
            spec.with_semi_sensitive(column, secrecy)
        }),
        ("l", Value::Object(_)) => each().fold(spec, |s, (column, l)| s.with_l_of(column, l)),
        ("t", _) => each().fold(spec, |s, (column, t)| s.with_t_of(column, t)),
        ("division", Value::Array(tables)) => spec.with_division(tables.iter().map(texts)),
        ("categories", Value::Array(lists)) => {
            let lists = lists.iter().enumerate();
            let lists: Vec<_> = lists
                .map(|(i, l)| ((i + 1).to_string(), texts(l)))
                .collect();
            let sensitive = spec.sensitive()[0].clone();
            spec.with_categories(sensitive, Categories::from_lists(&lists).unwrap())
        }
        ("categories", _) => {
            let sensitive = spec.sensitive()[0].clone();
            spec.with_categories(sensitive, ranks(ctx).await)
        }
        _ => spec.with_parameter(argument, text),
    }
}

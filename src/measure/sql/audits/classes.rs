//! `audit_classes` and `vulnerable_classes`: one row per class, without any of its values.

use std::borrow::Cow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions_aggregate::expr_fn::count_distinct;
use datafusion::logical_expr::Operator;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, binary_expr, cast, col, lit,
};

use super::audit::{C, CATEGORIES, PUBLISHED};
use super::roles::{CLASS, Roles};
use crate::call::arguments::{Argument, ArgumentKind, Arguments, Function};
use crate::measure::{ClassKey, ClassesSpec, Versus};
use crate::pipeline::ClassesNode;
use crate::table::Categories;

pub(super) const ID: Argument = Argument::optional(
    "id",
    ArgumentKind::Column,
    "the column that tells individuals apart, usually a pseudonym",
);

pub(super) const ONE_ROW: Argument = Argument::optional(
    "one_row_per_individual",
    ArgumentKind::Flag,
    "true, instead of id, if no individual has two records",
)
.or("false");

pub(super) const QI: Argument = Argument::required(
    "qi",
    ArgumentKind::Columns,
    "the quasi-identifiers as they are published, of any type",
);

pub(super) const SENSITIVE: Argument =
    Argument::required("sensitive", ArgumentKind::Column, "the column to protect");

pub(super) const K: Argument = Argument::optional(
    "k",
    ArgumentKind::Count,
    "individuals for IR (k, l)-anonymity",
)
.or("l");

pub(super) const L: Argument = Argument::optional(
    "l",
    ArgumentKind::Count,
    "finds classes that satisfy IR (k, l)-anonymity and not EIR l-diversity",
);

pub(super) const ALPHA: Argument = Argument::optional(
    "alpha",
    ArgumentKind::Share,
    "with beta: finds classes that satisfy IR (α, β)-anonymity and not EIR (α, β)-anonymity",
);

pub(super) const BETA: Argument = Argument::optional("beta", ArgumentKind::Share, "see alpha");

pub(super) const SEED: Argument = Argument::optional(
    "seed",
    ArgumentKind::Seed,
    "names classes as class_key(seed, qi, …) does, so that they can be found again",
)
.or("random");

/// The entry of `audit_classes`.
pub(super) const AUDIT_CLASSES: Function = Function {
    name: "audit_classes",
    help: "what each class of a published table attains, without any of its values",
    positional: 1,
    arguments: Cow::Borrowed(&[
        PUBLISHED, ID, ONE_ROW, QI, SENSITIVE, CATEGORIES, C, K, L, ALPHA, BETA, SEED,
    ]),
    refused: &[],
    plan: audit_classes,
};

/// The entry of `vulnerable_classes`.
pub(super) const VULNERABLE_CLASSES: Function = Function {
    name: "vulnerable_classes",
    help: "the classes that satisfy an identity-reserved model and not its enhanced form",
    positional: 1,
    arguments: Cow::Borrowed(&[
        PUBLISHED, ID, ONE_ROW, QI, SENSITIVE, K, L, ALPHA, BETA, SEED,
    ]),
    refused: &[],
    plan: vulnerable_classes,
};

/// How classes are measured unless a function wants more.
pub(super) fn spec(given: &Arguments, roles: &Roles) -> Result<ClassesSpec> {
    Ok(ClassesSpec {
        function: given.function().to_owned(),
        one_row_per_individual: roles.one_row_per_individual(),
        ordered: false,
        every_eir_l: false,
        fingerprints: false,
        c: (3, 1),
        categories: false,
        max_category_share: None,
        labels: false,
        versus: None,
        key: ClassKey::random()?,
    })
}

/// The pair of models that a call compares.
pub(super) fn take_versus(given: &mut Arguments) -> Result<Option<Versus>> {
    let (k, l) = (given.count("k")?, given.count("l")?);
    let (alpha, beta) = (given.share("alpha")?, given.share("beta")?);
    match (k, l, alpha, beta) {
        (None, None, None, None) => Ok(None),
        (k, Some(l), None, None) => Ok(Some(Versus::L {
            k: k.unwrap_or(l),
            l,
        })),
        (None, None, Some(alpha), Some(beta)) => Ok(Some(Versus::AlphaBeta { alpha, beta })),
        (_, _, None, Some(_)) => Err(given.refuse("alpha", "is missing beside beta")),
        (_, _, Some(_), None) => Err(given.refuse("beta", "is missing beside alpha")),
        (Some(_), None, None, None) => Err(given.refuse("l", "is missing beside k")),
        _ => Err(given.refuse("l", "and alpha, beta exclude each other")),
    }
}

/// The categories of the sensitive values, if there are some.
pub(super) fn take_categories(given: &mut Arguments, roles: &Roles) -> Result<Option<Categories>> {
    let sensitive = roles.sensitive_name().to_owned();
    let read = given.categories(&[sensitive])?.pop();
    Ok(read.map(|(_, categories)| categories))
}

/// With a key from the call's seed, if there is one.
pub(super) fn seeded(given: &mut Arguments, mut spec: ClassesSpec) -> Result<ClassesSpec> {
    if let Some(seed) = given.seed()? {
        spec.key = ClassKey::from_seed(&seed);
    }
    Ok(spec)
}

fn audit_classes(given: &mut Arguments) -> Result<LogicalPlan> {
    let roles = Roles::take(given)?;
    let categories = take_categories(given, &roles)?;
    let c = given.fraction("c")?.unwrap_or((3, 1));
    let versus = take_versus(given)?;
    let spec = ClassesSpec {
        ordered: roles.ordered(),
        every_eir_l: true,
        c,
        categories: categories.is_some(),
        versus: versus.clone(),
        ..spec(given, &roles)?
    };
    let spec = seeded(given, spec)?;
    let inputs = vec![roles.records()?, roles.values(categories.as_ref())?];
    let mut columns = vec![
        col("class"),
        col("individuals"),
        col("records"),
        risk().alias("prosecutor_risk"),
        col("values").alias("distinct_l"),
        eir_l(),
        eir_l_exact(),
        col("alpha"),
        col("beta").alias("ir_beta"),
        col("eir_beta"),
        col("entropy_l"),
        col("recursive_l"),
        col("t_equal"),
        col("t_ordered"),
    ];
    if let Some(categories) = &categories {
        let steps = lit(f64::from(categories.len() - 1));
        columns.push(col("categories").alias("p_plus"));
        columns.push((cast(col("weight"), DataType::Float64) / steps).alias("p_alpha"));
        columns.push(col("category_share").alias("largest_category_share"));
    }
    columns.push(col("unique_fingerprints"));
    columns.push(col("unique_record_counts"));
    if versus.is_some() {
        let vulnerable = col("plain_holds").and(!col("enhanced_holds"));
        columns.push(vulnerable.alias("vulnerable"));
    }
    LogicalPlanBuilder::from(ClassesNode::plan(spec, inputs)?)
        .project(columns)?
        .alias(given.function())?
        .build()
}

fn vulnerable_classes(given: &mut Arguments) -> Result<LogicalPlan> {
    let roles = Roles::take(given)?;
    let Some(versus) = take_versus(given)? else {
        return Err(given.refuse(
            "l",
            "is missing: say l => …, or alpha => … and beta => …, for the models to compare",
        ));
    };
    let spec = ClassesSpec {
        every_eir_l: true,
        versus: Some(versus),
        ..spec(given, &roles)?
    };
    let spec = seeded(given, spec)?;
    let all = LogicalPlanBuilder::from(roles.members()?)
        .aggregate(
            Vec::<Expr>::new(),
            vec![count_distinct(col(CLASS)).alias("classes")],
        )?
        .build()?;
    let columns = vec![
        col("class"),
        col("individuals"),
        col("records"),
        col("values").alias("distinct_l"),
        eir_l(),
        eir_l_exact(),
        col("alpha"),
        col("beta").alias("ir_beta"),
        col("eir_beta"),
        col("classes"),
    ];
    // A class that is not decided counts as vulnerable: it is not known to be safe.
    let vulnerable = col("plain_holds").and(col("enhanced_holds").is_not_true());
    LogicalPlanBuilder::from(ClassesNode::plan(spec, vec![roles.records()?])?)
        .filter(vulnerable)?
        .cross_join(all)?
        .project(columns)?
        .alias(given.function())?
        .build()
}

fn risk() -> Expr {
    lit(1.0) / cast(col("individuals"), DataType::Float64)
}

fn eir_l() -> Expr {
    (col("eir") / lit(2i64)).alias("eir_l")
}

fn eir_l_exact() -> Expr {
    binary_expr(col("eir"), Operator::Modulo, lit(2i64))
        .eq(lit(0i64))
        .alias("eir_l_exact")
}

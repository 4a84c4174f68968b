//! `audit`: what a published table attains, one row per measure.

use std::borrow::Cow;

use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};

use super::figures::{aggregate_classes, aggregate_individuals};
use super::roles::Roles;
use super::{classes, loss, original, population};
use crate::call::arguments::{Argument, ArgumentKind, Arguments, Function};
use crate::call::source::hierarchy::plan_rows;
use crate::measure::{AuditCall, ClassesSpec, Report, Versus};
use crate::pipeline::{ClassesNode, report};
use crate::system::{BUCKET, BUCKETIZED};

/// The entry of `audit`.
pub(super) const AUDIT: Function = Function {
    name: "audit",
    help: "what a published table attains, whoever made it: one row per measure",
    positional: 1,
    arguments: Cow::Borrowed(&[
        PUBLISHED,
        POPULATION,
        ORIGINAL,
        classes::ID,
        classes::ONE_ROW,
        classes::QI,
        classes::SENSITIVE,
        CATEGORIES,
        C,
        classes::K,
        classes::L,
        classes::ALPHA,
        classes::BETA,
        POPULATION_ID,
        ORIGINAL_ID,
        SAME_IDS,
        loss::HIERARCHY,
    ]),
    refused: &[],
    plan,
};

pub(super) const PUBLISHED: Argument = Argument::required(
    "published",
    ArgumentKind::Relation,
    "the table as it is, or would be, published",
);

const POPULATION: Argument = Argument::optional(
    "population",
    ArgumentKind::Relation,
    "the people among whom an attacker looks, with the quasi-identifiers as they are",
)
.or("unknown");

const POPULATION_ID: Argument = Argument::optional(
    "population_id",
    ArgumentKind::Column,
    "the column of the population that tells individuals apart",
)
.or("one row each");

const ORIGINAL: Argument = Argument::optional(
    "original",
    ArgumentKind::Relation,
    "the table before it was anonymized, to check that the published one is true",
)
.or("not checked");

const ORIGINAL_ID: Argument = Argument::optional(
    "original_id",
    ArgumentKind::Column,
    "the column of the original table that tells individuals apart",
)
.or("the one named by id");

const SAME_IDS: Argument = Argument::optional(
    "same_ids",
    ArgumentKind::Flag,
    "true if the published ids are those of the original, so that each is compared with itself",
)
.or("false");

pub(super) const CATEGORIES: Argument = Argument::optional("categories", ArgumentKind::Categories, "categories of sensitive values, the most sensitive first: [['HIV', 'Cancer'], ['Flu']], or a table or file").or("none");

pub(super) const C: Argument = Argument::optional(
    "c",
    ArgumentKind::Decimal,
    "the c of recursive (c, l)-diversity",
)
.or("3");

fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    let roles = Roles::take(given)?;
    let categories = classes::take_categories(given, &roles)?;
    let c = given.fraction("c")?.unwrap_or((3, 1));
    let versus = classes::take_versus(given)?;
    let spec = ClassesSpec {
        ordered: roles.ordered(),
        fingerprints: true,
        c,
        categories: categories.is_some(),
        labels: roles.labels().is_some(),
        versus: versus.clone(),
        ..classes::spec(given, &roles)?
    };
    let mut inputs = vec![roles.records()?, roles.values(categories.as_ref())?];
    inputs.extend(roles.labels().map(plan_rows).transpose()?);
    let figures = aggregate_classes(ClassesNode::plan(spec, inputs)?)?;
    let plan = LogicalPlanBuilder::from(figures);
    let (population, original) = (
        given.optional_relation("population")?,
        given.optional_relation("original")?,
    );
    let (has_population, has_original) = (population.is_some(), original.is_some());
    let same_ids = given.flag("same_ids")?;
    // A comparison of everybody with himself counts the individuals, too.
    let plan = match roles.one_row_per_individual() || has_original && same_ids {
        true => plan,
        false => plan.cross_join(aggregate_individuals(roles.gathered()?)?)?,
    };
    let plan = match population {
        Some(population) => plan.cross_join(population::figures(given, &roles, population)?)?,
        None => plan,
    };
    let plan = match original {
        Some(original) => plan.cross_join(original::figures(given, &roles, original, same_ids)?)?,
        None => plan,
    };
    for (argument, relation) in [("population_id", "population"), ("original_id", "original")] {
        if given.take(argument).is_some() {
            return Err(given.refuse(relation, format!("is missing beside {argument}")));
        }
    }
    if !roles.hierarchies.is_empty() && !has_population && !has_original {
        return Err(given.refuse(
            "original",
            "or population is missing beside hierarchy, which says what labels stand for when tables are compared",
        ));
    }
    if roles.labels().is_some() && has_original {
        return Err(given.refuse(
            "hierarchy",
            "of the sensitive column excludes original, whose sensitive values are compared as they are",
        ));
    }
    if same_ids && !has_original {
        return Err(given.refuse("original", "is missing beside same_ids"));
    }
    let call = AuditCall {
        population: has_population,
        original: has_original.then_some(same_ids),
        one_row_per_individual: roles.one_row_per_individual(),
        labels: roles.labels().is_some(),
        categories: categories.map_or(0, |c| c.len() as usize),
        c: decimal(c),
        versus: versus
            .as_ref()
            .and_then(Versus::requirements)
            .map(|(plain, enhanced)| (plain.to_string(), enhanced.to_string())),
        buckets: has_buckets(&roles.others),
        others: roles.others.clone(),
    };
    report(given.function(), Report::Audit(call), plan)
}

/// Whether some columns are those of buckets.
fn has_buckets(columns: &[String]) -> bool {
    let mut names = columns.iter().filter_map(|name| name.strip_suffix(BUCKET));
    names.any(|name| columns.contains(&format!("{name}{BUCKETIZED}")))
}

/// A fraction over a power of ten as a decimal.
fn decimal((numerator, denominator): (u64, u64)) -> String {
    let places = denominator.ilog10() as usize;
    if places == 0 {
        return numerator.to_string();
    }
    let (whole, part) = (numerator / denominator, numerator % denominator);
    format!("{whole}.{part:0places$}")
}

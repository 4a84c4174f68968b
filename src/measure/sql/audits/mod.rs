//! Functions that measure what is published: `audit`, `audit_classes`, `vulnerable_classes`, `similarity_attack`,
//! `information_loss`.
//!
//! A call becomes a plan of the engine's own nodes over [`ClassesNode`](crate::ClassesNode) or
//! [`LossNode`](crate::LossNode), so that the engine shuffles,
//! sorts, spills and sends it. Relations among the arguments are planned by whoever reads the call: SQL with named
//! arguments, or an ordinary table function.

mod audit;
mod class_key;
mod classes;
mod different;
mod figures;
mod given;
mod loss;
mod original;
mod population;
mod roles;
mod similarity;
mod unique;

use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;

use crate::call::value::ArgumentValue;

pub(crate) use class_key::{class_key, class_tuple, value_hash};
pub(crate) use different::different_values;
pub(crate) use given::Given;
pub(crate) use unique::unique_sets;

/// A measuring function.
#[derive(Debug)]
pub struct AuditEntry {
    /// Its SQL name.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The relations it takes, in the order in which they may be given without a name.
    pub relations: &'static [RelationEntry],
    /// Its other arguments.
    pub arguments: &'static [AuditArgument],
    pub(crate) build: fn(&mut Given) -> Result<LogicalPlan>,
}

/// A relation that a measuring function takes.
#[derive(Debug)]
pub struct RelationEntry {
    /// Its name.
    pub name: &'static str,
    /// Whether a call must give it, as its first arguments.
    pub required: bool,
    /// One line of help.
    pub help: &'static str,
}

/// An argument of a measuring function.
#[derive(Debug)]
pub struct AuditArgument {
    /// Its name.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// All measuring functions.
pub static AUDITS: &[AuditEntry] = &[
    audit::AUDIT,
    classes::AUDIT_CLASSES,
    classes::VULNERABLE_CLASSES,
    similarity::SIMILARITY_ATTACK,
    loss::INFORMATION_LOSS,
];

/// The measuring function of that name.
pub(crate) fn named(name: &str) -> Option<&'static AuditEntry> {
    AUDITS.iter().find(|entry| entry.name == name)
}

/// The table that an argument names, if it is a relation.
pub(crate) fn table<'a>(
    entry: &AuditEntry,
    name: &str,
    value: &'a ArgumentValue,
) -> Option<&'a str> {
    let relation = entry.relations.iter().any(|r| r.name == name);
    value.text().filter(|_| relation)
}

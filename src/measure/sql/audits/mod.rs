//! Functions that measure what is published: `audit`, `audit_classes`, `vulnerable_classes`, `similarity_attack`,
//! `information_loss`.
//!
//! A call becomes a plan of the engine's own nodes over [`ClassesNode`](crate::ClassesNode) or
//! [`LossNode`](crate::LossNode), so that the engine shuffles,
//! sorts, spills and sends it.

mod audit;
mod class_key;
mod classes;
mod different;
mod figures;
mod loss;
mod original;
mod population;
mod roles;
mod similarity;
mod unique;

use crate::call::arguments::Function;

pub(crate) use class_key::{class_key, class_tuple, value_hash};
pub(crate) use different::different_values;
pub(crate) use unique::unique_sets;

/// All of them.
pub(super) const FUNCTIONS: [Function; 5] = [
    audit::AUDIT,
    classes::AUDIT_CLASSES,
    classes::VULNERABLE_CLASSES,
    similarity::SIMILARITY_ATTACK,
    loss::INFORMATION_LOSS,
];

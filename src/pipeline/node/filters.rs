//! Predicates that the optimizer pushes below a node although they belong above it.

use std::fmt;

use datafusion::logical_expr::{Expr, Filter, LogicalPlan};

/// Takes predicates without columns back from over `old` inputs: the inputs as they were, and the predicates added to
/// `filters`.
pub(super) fn take_back(
    filters: &mut Vec<Expr>,
    new: Vec<LogicalPlan>,
    old: &[LogicalPlan],
) -> Vec<LogicalPlan> {
    let (mut inputs, mut taken) = (vec![], vec![]);
    for (at, input) in new.into_iter().enumerate() {
        match (input, old.get(at)) {
            (
                LogicalPlan::Filter(Filter {
                    predicate, input, ..
                }),
                Some(old),
            ) if input.as_ref() == old && predicate.column_refs().is_empty() => {
                // The same predicate comes back from every input.
                if !taken.contains(&predicate) {
                    taken.push(predicate);
                }
                inputs.push(old.clone());
            }
            (input, _) => inputs.push(input),
        }
    }
    filters.extend(taken);
    inputs
}

/// Shows the predicates of a node after its facts.
pub(super) fn show(f: &mut fmt::Formatter<'_>, filters: &[Expr]) -> fmt::Result {
    if filters.is_empty() {
        return Ok(());
    }
    let filters: Vec<_> = filters.iter().map(ToString::to_string).collect();
    write!(f, ", filter={}", filters.join(" AND "))
}

//! The only wiring.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::{ConfigNonZeroUsize, ExecutionOptions};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::prelude::SessionContext;

use crate::call::{
    AnonymizeRelationPlanner, AnonymizeTableFunction, CATEGORIES_FUNCTION, CategoriesFunction,
    HIERARCHY_FUNCTION, HierarchyFunction, INPUT_FUNCTION, InputFunction, RELEASE_FUNCTION,
    ReleaseFunction, TABLE_FUNCTIONS, register_expressions,
};
use crate::measure::sql::EstimateCounts;
use crate::measure::sql::audits::{
    class_key, class_tuple, different_values, unique_sets, value_hash,
};
use crate::planner::{AnonymizeQueryPlanner, OrderInMemory, SpreadInput};

/// Adds everything of this crate to a context.
///
/// The context's query planner is replaced by [`AnonymizeQueryPlanner`]. If it has one of its own, compose it with
/// [`AnonymizePlanner`](crate::AnonymizePlanner) and set it again after this call.
///
/// One setting is changed where it has its default: `datafusion.execution.max_spill_file_size_bytes` is 1, so that a
/// shuffle which spills writes each batch to a file of its own. With larger files it can wait for itself forever
/// (apache/datafusion#24883, DataFusion 55.2).
pub fn register_all(ctx: &SessionContext) -> Result<()> {
    let state = ctx.state_ref();
    let built = with_everything(state.read().clone())?;
    *state.write() = built;
    Ok(())
}

/// Adds everything of this crate to a session state that is being built.
pub trait SessionStateBuilderExt: Sized {
    /// Builds the state with the functions and the query planner of this crate.
    fn build_with_anonymize(self) -> Result<SessionState>;
}

impl SessionStateBuilderExt for SessionStateBuilder {
    fn build_with_anonymize(self) -> Result<SessionState> {
        with_everything(self.build())
    }
}

fn with_everything(mut state: SessionState) -> Result<SessionState> {
    let execution = &mut state.config_mut().options_mut().execution;
    let default = ExecutionOptions::default().max_spill_file_size_bytes;
    if execution.max_spill_file_size_bytes == default {
        execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(1)?;
    }
    let mut rules = state.analyzer().rules.clone();
    if !rules
        .iter()
        .any(|rule| rule.name() == EstimateCounts.name())
    {
        rules.insert(0, Arc::new(EstimateCounts));
    }
    let known = state.physical_optimizers().iter().map(|rule| rule.name());
    let known: Vec<String> = known.map(str::to_owned).collect();
    let mut builder = SessionStateBuilder::new_from_existing(state)
        .with_analyzer_rules(rules)
        .with_query_planner(Arc::new(AnonymizeQueryPlanner));
    let own: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 2] =
        [Arc::new(SpreadInput), Arc::new(OrderInMemory)];
    for rule in own {
        if !known.iter().any(|name| name == rule.name()) {
            builder = builder.with_physical_optimizer_rule(rule);
        }
    }
    let mut state = builder.build();
    add_functions(&mut state)?;
    Ok(state)
}

fn add_functions(state: &mut SessionState) -> Result<()> {
    state.register_relation_planner(Arc::new(AnonymizeRelationPlanner))?;
    state.register_udtf(INPUT_FUNCTION, Arc::new(InputFunction));
    state.register_udtf(CATEGORIES_FUNCTION, Arc::new(CategoriesFunction));
    state.register_udtf(HIERARCHY_FUNCTION, Arc::new(HierarchyFunction));
    state.register_udtf(RELEASE_FUNCTION, Arc::new(ReleaseFunction));
    register_expressions(state)?;
    for function in TABLE_FUNCTIONS.iter() {
        let table_function = AnonymizeTableFunction::new(function.name);
        state.register_udtf(function.name, Arc::new(table_function));
    }
    for function in [class_tuple(), class_key(), value_hash()] {
        state.register_udf(function)?;
    }
    for function in [unique_sets(), different_values()] {
        state.register_udaf(function)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::prelude::SessionConfig;

    use super::*;
    use crate::planner::EXPRESSIONS;

    /// So that errors of their queries show no values.
    #[test]
    fn every_expression_is_known() {
        let names = |ctx: &SessionContext| {
            let state = ctx.state();
            let functions = state.scalar_functions().keys();
            let names = functions.chain(state.aggregate_functions().keys());
            names.cloned().collect::<BTreeSet<String>>()
        };
        let ctx = SessionContext::new();
        let before = names(&ctx);
        register_all(&ctx).unwrap();
        let added: Vec<_> = names(&ctx).difference(&before).cloned().collect();
        assert!(added.len() > 10, "{added:?}");
        for name in added {
            assert!(EXPRESSIONS.contains(&name.as_str()), "{name}");
        }
    }

    #[test]
    fn a_setting_that_somebody_made_stays() {
        let spill_file = |bytes: Option<usize>| {
            let mut config = SessionConfig::new();
            if let Some(bytes) = bytes {
                let execution = &mut config.options_mut().execution;
                execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(bytes).unwrap();
            }
            let ctx = SessionContext::new_with_config(config);
            register_all(&ctx).unwrap();
            let options = ctx.copied_config();
            options.options().execution.max_spill_file_size_bytes
        };
        assert_eq!(spill_file(None), ConfigNonZeroUsize::try_new(1).unwrap());
        let own = ConfigNonZeroUsize::try_new(5 << 20).unwrap();
        assert_eq!(spill_file(Some(5 << 20)), own);
    }
}

//! Parameters that get lost on their way to the algorithm: what is formed for weaker ones is refused, in memory and from
//! files, by the verifier that read the words of the call.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

use super::{context, publish_rows};
use crate::check::Asked;
use crate::model::offered_by;
use crate::pipeline::AnonymizeExec;
use crate::system::{ANATOMY_ARGUMENTS, FUNCTIONS};

/// A call, its parameters, and for each of them a stronger one that its result does not satisfy.
struct Case {
    function: &'static str,
    roles: &'static str,
    parameters: &'static [(&'static str, &'static str, &'static str)],
}

const ROLES: &str = "people, id => id, qi => [age, sex], sensitive => disease";
const LABELLED: &str =
    "people, id => id, qi => [age, sex], sensitive => disease, hierarchy => {disease: diseases}";
const SEVERAL: &str =
    "visits, id => id, qi => [age, sex], sensitive => disease, hierarchy => {disease: diseases}";
const CATEGORISED: &str = "people, id => id, qi => [age, sex], sensitive => disease, categories => {disease: \
    [[d0, d4, d8], [d1, d5, d9], [d2, d6, d10], [d3, d7, d11]]}";
const SECRET: &str =
    "people, id => id, qi => [age, sex], semi_sensitive => {age: hidden}, sensitive => disease";
const TABLES: &str = "people, id => id, qi => [age, sex, job], sensitive => disease, tables => 2";

const CASES: &[Case] = &[
    Case {
        function: "anonymize_ir",
        roles: ROLES,
        parameters: &[("k", "2", "50")],
    },
    Case {
        function: "anonymize_ir",
        roles: ROLES,
        parameters: &[("k", "2", "50"), ("l", "2", "12")],
    },
    Case {
        function: "anonymize_ir",
        roles: ROLES,
        parameters: &[("alpha", "0.9", "0.01"), ("beta", "0.9", "0.01")],
    },
    Case {
        function: "anonymize_eir",
        roles: ROLES,
        parameters: &[("l", "2", "12")],
    },
    Case {
        function: "anonymize_eir",
        roles: ROLES,
        parameters: &[("alpha", "0.9", "0.01"), ("beta", "0.9", "0.01")],
    },
    Case {
        function: "anonymize_p_sensitive",
        roles: ROLES,
        parameters: &[("k", "2", "50"), ("p", "2", "12")],
    },
    Case {
        function: "anonymize_p_sensitive",
        roles: CATEGORISED,
        parameters: &[
            ("k", "2", "50"),
            ("p", "2", "4"),
            ("max_category_share", "0.9", "0.01"),
        ],
    },
    Case {
        function: "anonymize_p_sensitive",
        roles: CATEGORISED,
        parameters: &[
            ("k", "2", "50"),
            ("p", "2", "12"),
            ("alpha", "0.5", "200"),
            ("max_category_share", "0.9", "0.01"),
        ],
    },
    Case {
        function: "anonymize_kl",
        roles: LABELLED,
        parameters: &[("k", "3", "200"), ("l", "3", "100")],
    },
    Case {
        function: "anonymize_kl",
        roles: LABELLED,
        parameters: &[
            ("k", "3", "200"),
            ("l", "2", "100"),
            ("value_l", "2", "100"),
        ],
    },
    Case {
        function: "anonymize_kkm",
        roles: SEVERAL,
        parameters: &[("k", "5", "200"), ("m", "1", "2"), ("delta", "0.9", "")],
    },
    Case {
        function: "anonymize_lgb",
        roles: SECRET,
        parameters: &[("k", "4", "100"), ("l", "3", "40")],
    },
    Case {
        function: "anonymize_lgb",
        roles: SECRET,
        parameters: &[
            ("k", "4", "100"),
            ("l", "{age: 3, disease: 3}", "{age: 3, disease: 40}"),
        ],
    },
    Case {
        function: "anonymize_lgb",
        roles: SECRET,
        parameters: &[
            ("k", "4", "100"),
            (
                "t",
                "{age: 0.9, disease: 0.9}",
                "{age: 0.9, disease: 0.001}",
            ),
        ],
    },
    Case {
        function: "anatomize_slppa",
        roles: TABLES,
        parameters: &[
            ("alpha", "1", "0.01"),
            ("beta", "0.25", "0.01"),
            ("gamma", "1", "0.0001"),
            ("delta", "0.5", "0.0001"),
        ],
    },
    Case {
        function: "anatomize_slppa",
        roles: "people, id => id, qi => [age, sex, job], sensitive => disease, method => 'asn'",
        parameters: &[("beta", "0.25", "0.01"), ("gamma", "1", "0.0001")],
    },
    Case {
        function: "anatomize_slppa",
        roles: "people, id => id, qi => [age, sex, job], sensitive => disease, tables => 2, method => 'slicing'",
        parameters: &[("beta", "0.25", "0.01")],
    },
];

impl Case {
    /// The call with one parameter made stronger, or none.
    fn call(&self, stronger: Option<&str>) -> String {
        let parameters = self.parameters.iter().map(|(name, weak, strong)| {
            let text = match stronger == Some(*name) {
                true => strong,
                false => weak,
            };
            format!(", {name} => {text}")
        });
        format!(
            "{}({}{})",
            self.function,
            self.roles,
            parameters.collect::<String>()
        )
    }

    /// The parameters that bound what is published.
    fn bounds(&self) -> impl Iterator<Item = &'static str> {
        let bounds = self
            .parameters
            .iter()
            .filter(|(_, _, strong)| !strong.is_empty());
        bounds.map(|(name, _, _)| *name)
    }
}

async fn planned(context: &SessionContext, call: &str) -> Arc<dyn ExecutionPlan> {
    let frame = context.sql(&format!("SELECT * FROM {call}")).await.unwrap();
    frame.create_physical_plan().await.unwrap()
}

/// The words of a planned call.
fn asked(plan: &Arc<dyn ExecutionPlan>) -> Asked {
    match plan.downcast_ref::<AnonymizeExec>() {
        Some(exec) => exec.spec().asked(),
        None => asked(plan.children()[0]),
    }
}

/// How many rows a call forms that pass when they are judged by the words of another call.
async fn judged(context: &SessionContext, formed: &str, by: &str) -> Result<usize, String> {
    let by = asked(&planned(context, by).await);
    let plan = planned(context, formed).await;
    let plan = plan.transform_up(|node| match node.downcast_ref::<AnonymizeExec>() {
        Some(exec) => Ok(Transformed::yes(Arc::new(exec.judged_by(by.clone())?) as _)),
        None => Ok(Transformed::no(node)),
    });
    let rows = collect(plan.data().unwrap(), context.task_ctx()).await;
    let rows = rows.map_err(|e| e.strip_backtrace())?;
    Ok(rows.iter().map(RecordBatch::num_rows).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_formed_for_weaker_parameters_is_refused_in_memory() {
    let context = context().await;
    let mut passed = vec![];
    for case in CASES {
        let weak = case.call(None);
        let rows = judged(&context, &weak, &weak).await;
        assert!(
            rows.as_ref().is_ok_and(|rows| *rows > 0),
            "{weak}: {rows:?}"
        );
        for name in case.bounds() {
            let strong = case.call(Some(name));
            match judged(&context, &weak, &strong).await {
                Err(said) if said.contains("the result failed its verification") => {}
                other => passed.push(format!("{strong}: {other:?}")),
            }
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_formed_for_weaker_parameters_is_refused_from_files() {
    let mut passed = vec![];
    for case in CASES {
        let weak = case.call(None);
        for name in case.bounds() {
            let strong = case.call(Some(name));
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("t");
            let done = publish_rows(&strong, &weak, target.to_str().unwrap()).await;
            match done.map(|_| ()).map_err(|e| e.strip_backtrace()) {
                Err(said) if said.contains("what was written failed its verification") => {}
                other => passed.push(format!("{strong}: {other:?}")),
            }
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}

/// A parameter that is added to a function needs a case here.
#[test]
fn every_bound_of_every_function_has_a_mutant() {
    for entry in FUNCTIONS.iter().filter(|f| f.name != "anatomize_division") {
        let models = offered_by(entry.name).flat_map(|model| model.parameters);
        let mut bounds: BTreeSet<&str> = models.map(|parameter| parameter.name).collect();
        if entry.name == "anatomize_slppa" {
            bounds.extend(ANATOMY_ARGUMENTS.iter().map(|(name, _)| *name));
        }
        if entry.name == "anonymize_lgb" {
            bounds.extend(["k", "l", "t"]);
        }
        // They say how something is searched or divided, or come with the values' categories.
        for other in ["categories", "tables", "division", "method"] {
            bounds.remove(other);
        }
        if entry.name == "anonymize_kkm" {
            bounds.remove("delta");
        }
        let cases = CASES.iter().filter(|case| case.function == entry.name);
        let covered: BTreeSet<&str> = cases.flat_map(Case::bounds).collect();
        assert_eq!(bounds, covered, "{}", entry.name);
    }
}

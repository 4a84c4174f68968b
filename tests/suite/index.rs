//! The index of DAnonyIR on real people: the same classes as by looking at everybody.

use datafusion_anonymize::internals::algorithm::{Algorithm, Cancel, Danonyir};
use datafusion_anonymize::internals::model::{self, Parameters};

/// The tables of the benchmark.
#[allow(dead_code)]
#[path = "../../benches/classes/tables.rs"]
mod tables;

/// Looking at everybody takes quadratic time.
const INDIVIDUALS: usize = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn the_index_changes_nothing_on_the_real_table() {
    let Some(block) = tables::informs(Some(INDIVIDUALS)).await.unwrap() else {
        eprintln!("informs2005_1m.parquet is not there: its individuals are not compared");
        return;
    };
    assert_eq!(block.len(), INDIVIDUALS);
    let models: [(&str, &[(&str, &str)]); 8] = [
        ("ir_k_anonymity", &[("k", "10")]),
        ("ir_kl_anonymity", &[("k", "6"), ("l", "6")]),
        (
            "ir_alpha_beta_anonymity",
            &[("alpha", "0.4"), ("beta", "0.6")],
        ),
        (
            "ir_alpha_beta_anonymity",
            &[("alpha", "0.6"), ("beta", "0.2")],
        ),
        ("eir_l_diversity", &[("l", "3")]),
        ("eir_l_diversity", &[("l", "6")]),
        (
            "eir_alpha_beta_anonymity",
            &[("alpha", "0.4"), ("beta", "0.6")],
        ),
        (
            "eir_alpha_beta_anonymity",
            &[("alpha", "0.6"), ("beta", "0.4")],
        ),
    ];
    for (name, values) in models {
        let entry = model::find(name).unwrap();
        let mut parameters = Parameters::default();
        for (name, text) in values {
            let parameter = entry.parameters.iter().find(|p| p.name == *name).unwrap();
            parameters.set(*name, parameter.parse(text).unwrap());
        }
        let model = (entry.build)(&parameters).unwrap();
        let [by_index, by_looking] = [Danonyir::new(), Danonyir::naive()].map(|algorithm| {
            let cancel = Cancel::default();
            algorithm
                .form_classes(&block, model.as_ref(), &cancel)
                .unwrap()
        });
        assert!(by_index.classes.len() > 10, "{}", model.describe());
        assert_eq!(by_index, by_looking, "{}", model.describe());
    }
}

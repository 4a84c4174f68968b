//! Releases of classes with labels in the place of sensitive values.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;

use super::Fingerprints;
use crate::spec::Spec;
use crate::system::release::{
    ReleaseFacts, ReleaseLayout, ReleaseWords, SystemRelease, words_of_classes,
};

impl SystemRelease for Fingerprints {
    fn tables(&self, spec: &Spec, relation: &Schema, _: &[Vec<String>]) -> Result<ReleaseLayout> {
        Ok(ReleaseLayout::one(relation, spec.qi().to_vec()))
    }

    fn words(&self, release: &ReleaseFacts) -> ReleaseWords {
        let of_values = match self.combinations {
            true => of_combinations(release),
            false => of_fingerprints(release),
        };
        ReleaseWords {
            sensitive: "as labels that stand for several values: this is what others must not learn about a person",
            ..words_of_classes(release, of_values)
        }
    }
}

fn of_fingerprints(release: &ReleaseFacts) -> Vec<String> {
    let parameter = |name: &str| release.parameter(name).unwrap_or_default();
    vec![
        format!(
            "Somebody who knows what a person has in {}, all of it or some, finds labels that at least {} people publish in the \
             same combination.",
            release.sensitive.join(", "),
            parameter("k")
        ),
        format!(
            "Of the people of a class at most one in {} may have the same set of values of {}, and no published label but the \
             most general one stands for something that all of them have.",
            parameter("l"),
            release.sensitive.join(", ")
        ),
    ]
}

fn of_combinations(release: &ReleaseFacts) -> Vec<String> {
    let parameter = |name: &str| release.parameter(name).unwrap_or_default();
    vec![format!(
        "Somebody who also knows up to {} of that person's values of {} finds at least {} people of the class who publish the \
         same labels.",
        parameter("m"),
        release.sensitive.join(", "),
        parameter("k")
    )]
}

//! Releases of classes.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;

use super::Classes;
use crate::spec::Spec;
use crate::system::release::{
    ReleaseFacts, ReleaseLayout, ReleaseWords, SystemRelease, words_of_classes,
};

impl SystemRelease for Classes {
    fn tables(&self, spec: &Spec, relation: &Schema, _: &[Vec<String>]) -> Result<ReleaseLayout> {
        Ok(ReleaseLayout::one(relation, spec.qi().to_vec()))
    }

    fn words(&self, release: &ReleaseFacts) -> ReleaseWords {
        words_of_classes(release, [of_values(release)])
    }
}

/// What the values of each class satisfy.
fn of_values(release: &ReleaseFacts) -> String {
    let protected = release.sensitive.join(", ");
    let parameter = |name: &str| release.parameter(name);
    let bounds = (parameter("l"), parameter("alpha"), parameter("beta"));
    match (release.function, bounds) {
        ("anonymize_eir", (Some(l), ..)) => format!(
            "Take one record of each person in a class, in whatever way: among these there are always at least {l} different \
             values of {protected}. So nobody can narrow what a person has down to fewer than {l} values, although people \
             have many records."
        ),
        ("anonymize_eir", (_, Some(alpha), Some(beta))) => format!(
            "No person has more than {alpha} of the records of a class, and of the people of a class at most a share of {beta} \
             have any one value of {protected} in common."
        ),
        ("anonymize_ir", (_, Some(alpha), Some(beta))) => format!(
            "No person has more than {alpha} of the records of a class, and no value of {protected} more than {beta} of them."
        ),
        ("anonymize_ir", (Some(l), ..)) => {
            format!("Every class shows at least {l} different values of {protected}.")
        }
        _ => format!("Every class satisfies {}.", release.model),
    }
}

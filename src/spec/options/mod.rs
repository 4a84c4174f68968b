//! What only the functions of one system are told.

mod anatomy;
mod buckets;
mod classes;
mod fingerprints;

use serde::{Deserialize, Serialize};

pub(crate) use anatomy::AnatomyOptions;
pub(crate) use buckets::BucketOptions;
pub use buckets::Secrecy;
pub(crate) use classes::{CATEGORIES, ClassOptions};
pub(crate) use fingerprints::FingerprintOptions;

use super::Spec;

/// The options of the system that a function belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum SystemOptions {
    Classes(ClassOptions),
    Fingerprints(FingerprintOptions),
    Buckets(BucketOptions),
    Anatomy(AnatomyOptions),
}

impl Spec {
    /// Keeps in mind that an option was given that the function's system does not have, so that `validate` can say so.
    fn refuse(&mut self, option: &str, given: bool) {
        match given {
            true => self.refused.insert(option.to_owned()),
            false => self.refused.remove(option),
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::{FingerprintRows, LocalStrategy, Output, Secrecy, SmallPatterns, Spec};

    /// Nothing that was asked for is passed over.
    #[test]
    fn options_of_other_systems_are_refused() {
        let spec = Spec::new("anonymize_ir")
            .with_id("name")
            .with_qi(["age"])
            .with_sensitive(["disease"])
            .with_parameter("k", 2)
            .with_parameter("l", 2);
        spec.validate().unwrap();
        type With = fn(Spec) -> Spec;
        let given: [(&str, With); 7] = [
            ("l_of", |s| s.with_l_of("disease", 3)),
            ("t_of", |s| s.with_t_of("disease", 0.2)),
            ("strategy", |s| s.with_strategy(LocalStrategy::Mdp)),
            ("small_pattern", |s| {
                s.with_small_pattern(SmallPatterns::Mask)
            }),
            ("output", |s| s.with_output(Output::Detached)),
            ("division", |s| s.with_division([["age"]])),
            ("fingerprint_rows", |s| {
                s.with_fingerprint_rows(FingerprintRows::Individuals)
            }),
        ];
        for (option, with) in given {
            let fault = with(spec.clone()).validate().unwrap_err().to_string();
            let expected = format!("with_{option} is not for this function; leave it out");
            assert!(fault.contains(&expected), "{fault}");
        }
        let semi = spec
            .clone()
            .with_semi_sensitive("sex", Secrecy::Column("private".into()));
        assert_eq!(semi.qi(), spec.qi());
        semi.validate().unwrap_err();
        // What is given and taken back is as if it were not given.
        let back = spec.clone().with_output(Output::Detached);
        assert_eq!(back.with_output(Output::Rows), spec);
    }
}

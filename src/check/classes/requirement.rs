//! Privacy requirements by their definitions.

use std::fmt;

use super::published::{Class, Counts};
use super::reasoning::{Answer, eir_diverse};
use crate::check::ratio::Ratio;

/// What every equivalence class of a release must satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassRequirement {
    /// IR k-anonymity (Wang 2018, Def. 2.3 (1)): at least `k` individuals.
    IrK {
        /// Individuals.
        k: usize,
    },
    /// IR (k, l)-anonymity (Def. 2.3 (2)): at least `k` individuals and `l` sensitive values.
    IrKL {
        /// Individuals.
        k: usize,
        /// Different sensitive values.
        l: usize,
    },
    /// IR (α, β)-anonymity (Def. 2.3 (3)): no individual has more than α of the records of its class, and no
    /// sensitive value more than β of them.
    IrAlphaBeta {
        /// Bound on |R(p)| / |Q|.
        alpha: Ratio,
        /// Bound on |R(s)| / |Q|.
        beta: Ratio,
    },
    /// EIR l-diversity (Def. 3.3): one record of each individual, however chosen, shows at least `l` sensitive
    /// values.
    EirL {
        /// Different sensitive values.
        l: usize,
    },
    /// EIR (α, β)-anonymity (Def. 3.4): no individual has more than α of the records of its class, and among one
    /// record of each individual, however chosen, no sensitive value has more than β.
    EirAlphaBeta {
        /// Bound on |R(p)| / |Q|.
        alpha: Ratio,
        /// Bound on |P(s)| / n_Q.
        beta: Ratio,
    },
}

/// By how much a class misses a [`ClassRequirement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shortfall {
    /// Fewer individuals than `k`.
    Individuals {
        /// Individuals there are.
        individuals: usize,
    },
    /// Fewer sensitive values than `l`.
    Values {
        /// Different sensitive values there are.
        values: usize,
    },
    /// One individual has more than α of the records.
    IndividualShare {
        /// Its records, of all records.
        share: Ratio,
    },
    /// One sensitive value is shown by more than β of the records (IR) or of the individuals (EIR).
    ValueShare {
        /// Those with the value, of all.
        share: Ratio,
    },
    /// A reasoning set has fewer than `l` sensitive values.
    ReasoningSet,
    /// The search for a reasoning set with fewer than `l` sensitive values ended at its limit.
    Undecided,
}

impl ClassRequirement {
    /// The requirement that a function means by its bounds, which stand in the order of the list of all bounds.
    pub(crate) fn asked<'a>(
        function: &str,
        bounds: &[&str],
        parameter: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<Self> {
        let model = match (function, bounds) {
            ("anonymize_ir", ["k"]) => "ir_k_anonymity",
            ("anonymize_ir", ["k", "l"]) => "ir_kl_anonymity",
            ("anonymize_ir", ["alpha", "beta"]) => "ir_alpha_beta_anonymity",
            ("anonymize_eir", ["l"]) => "eir_l_diversity",
            ("anonymize_eir", ["alpha", "beta"]) => "eir_alpha_beta_anonymity",
            _ => return None,
        };
        Self::named(model, parameter)
    }

    /// The requirement of a model by its name, with parameters as they were written; `None` if there is no such
    /// requirement or a parameter cannot be read.
    pub fn named<'a>(name: &str, parameter: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let count = |name: &str| parameter(name)?.parse::<usize>().ok();
        let share = |name: &str| parameter(name)?.parse::<Ratio>().ok();
        Some(match name {
            "ir_k_anonymity" => Self::IrK { k: count("k")? },
            "ir_kl_anonymity" => Self::IrKL {
                k: count("k")?,
                l: count("l")?,
            },
            "ir_alpha_beta_anonymity" => Self::IrAlphaBeta {
                alpha: share("alpha")?,
                beta: share("beta")?,
            },
            "eir_l_diversity" => Self::EirL { l: count("l")? },
            "eir_alpha_beta_anonymity" => Self::EirAlphaBeta {
                alpha: share("alpha")?,
                beta: share("beta")?,
            },
            _ => return None,
        })
    }

    /// Whether `class`, which has the given counts, satisfies this.
    pub(crate) fn check(&self, class: &Class<'_>, counts: &Counts) -> Result<(), Shortfall> {
        match *self {
            Self::IrK { k } => at_least_individuals(k, counts),
            Self::IrKL { k, l } => {
                at_least_individuals(k, counts)?;
                require(counts.values >= l, || Shortfall::Values {
                    values: counts.values,
                })
            }
            Self::IrAlphaBeta { alpha, beta } => {
                individual_share(alpha, counts)?;
                value_share(beta, counts.most_records_with_a_value, counts.records)
            }
            Self::EirL { l } => match eir_diverse(&class.fingerprints(), l) {
                Answer::Holds => Ok(()),
                Answer::Fails => Err(Shortfall::ReasoningSet),
                Answer::Undecided => Err(Shortfall::Undecided),
            },
            // The reasoning set in which all who have the value are represented by it is the worst (Theorem 3.2).
            Self::EirAlphaBeta { alpha, beta } => {
                individual_share(alpha, counts)?;
                value_share(
                    beta,
                    counts.most_individuals_with_a_value,
                    counts.individuals,
                )
            }
        }
    }
}

fn at_least_individuals(k: usize, counts: &Counts) -> Result<(), Shortfall> {
    let individuals = counts.individuals;
    require(individuals >= k, || Shortfall::Individuals { individuals })
}

fn individual_share(alpha: Ratio, counts: &Counts) -> Result<(), Shortfall> {
    let (part, whole) = (counts.most_records_of_an_individual, counts.records);
    require(alpha.admits(part, whole), || Shortfall::IndividualShare {
        share: Ratio::of(part, whole),
    })
}

fn value_share(beta: Ratio, part: usize, whole: usize) -> Result<(), Shortfall> {
    require(beta.admits(part, whole), || Shortfall::ValueShare {
        share: Ratio::of(part, whole),
    })
}

fn require(holds: bool, shortfall: impl FnOnce() -> Shortfall) -> Result<(), Shortfall> {
    if holds { Ok(()) } else { Err(shortfall()) }
}

impl fmt::Display for ClassRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IrK { k } => write!(f, "IR {k}-anonymity"),
            Self::IrKL { k, l } => write!(f, "IR ({k}, {l})-anonymity"),
            Self::IrAlphaBeta { alpha, beta } => write!(f, "IR ({alpha}, {beta})-anonymity"),
            Self::EirL { l } => write!(f, "EIR {l}-diversity"),
            Self::EirAlphaBeta { alpha, beta } => write!(f, "EIR ({alpha}, {beta})-anonymity"),
        }
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |share: &Ratio| (share.numerator(), share.denominator());
        match self {
            Self::Individuals { individuals } => write!(f, "has {individuals} individuals"),
            Self::Values { values } => write!(f, "has {values} different sensitive values"),
            Self::IndividualShare { share } => {
                let (part, whole) = counted(share);
                write!(f, "has an individual with {part} of {whole} records")
            }
            Self::ValueShare { share } => {
                let (part, whole) = counted(share);
                write!(f, "has a sensitive value that {part} of {whole} show")
            }
            Self::ReasoningSet => f.write_str("has a reasoning set with too few sensitive values"),
            Self::Undecided => f.write_str("was not decided within the limit of the search"),
        }
    }
}

//! Identity-reserved and enhanced identity-reserved (α, β)-anonymity: bounds on the shares of an individual and of a
//! sensitive value in a class.

use std::collections::HashMap;

use super::{
    Closure, Infeasible, Member, Model, ModelEntry, Parameter, ParameterError, ParameterKind,
    Parameters, Ratio, Tally, Value,
};

/// IR (α, β)-anonymity in the list of models.
pub static IR_ENTRY: ModelEntry = ModelEntry {
    name: "ir_alpha_beta_anonymity",
    function: "anonymize_ir",
    help: "no individual has more than alpha, and no sensitive value more than beta, of a class's records",
    parameters: &[
        ALPHA,
        Parameter {
            name: "beta",
            kind: ParameterKind::Share,
            required: true,
            help: "largest share of a sensitive value in the records of a class",
        },
    ],
    build: |parameters| AlphaBeta::build(parameters, Of::Records),
};

/// EIR (α, β)-anonymity in the list of models.
pub static EIR_ENTRY: ModelEntry = ModelEntry {
    name: "eir_alpha_beta_anonymity",
    function: "anonymize_eir",
    help: "no individual has more than alpha of a class's records, and no sensitive value is held by more than beta of \
           its individuals",
    parameters: &[
        ALPHA,
        Parameter {
            name: "beta",
            kind: ParameterKind::Share,
            required: true,
            help: "largest share of a class's individuals who have a sensitive value in common",
        },
    ],
    build: |parameters| AlphaBeta::build(parameters, Of::Individuals),
};

const ALPHA: Parameter = Parameter {
    name: "alpha",
    kind: ParameterKind::Share,
    required: true,
    help: "largest share of an individual in the records of a class",
};

/// What β is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// |R(s)| / |Q|: IR (Wang 2018, Definition 2.3 (3)).
    Records,
    /// |P(s)| / n_Q: EIR (Wang 2018, Definition 3.4 by Theorem 3.2).
    Individuals,
}

/// (α, β)-anonymity.
///
/// # Guarantee
/// α bounds how much of a class is one individual, and so its number of individuals. β bounds how common a sensitive
/// value is: among the records (IR), or among the individuals (EIR), which is what an attacker reasons about.
///
/// A valid class may become invalid by one more individual, but not by a union with another valid one (G7 in
/// docs/theory/papers.md).
#[derive(Debug, Clone, Copy)]
struct AlphaBeta {
    alpha: Ratio,
    beta: Ratio,
    of: Of,
}

impl AlphaBeta {
    fn build(parameters: &Parameters, of: Of) -> Result<Box<dyn Model>, ParameterError> {
        Ok(Box::new(Self {
            alpha: parameters.ratio("alpha")?,
            beta: parameters.ratio("beta")?,
            of,
        }))
    }
}

impl Model for AlphaBeta {
    fn describe(&self) -> String {
        let name = match self.of {
            Of::Records => "IR",
            Of::Individuals => "EIR",
        };
        format!("{name} ({}, {})-anonymity", self.alpha, self.beta)
    }

    fn closure(&self) -> Closure {
        Closure {
            union: true,
            extension: false,
        }
    }

    fn min_individuals(&self) -> usize {
        let needed = |share: Ratio| share.ceil_of_inverse().unwrap_or(u64::MAX);
        let individuals = match self.of {
            Of::Records => needed(self.alpha),
            Of::Individuals => needed(self.alpha).max(needed(self.beta)),
        };
        usize::try_from(individuals).unwrap_or(usize::MAX)
    }

    fn tally(&self) -> Box<dyn Tally> {
        Box::new(Shares::new(*self))
    }

    /// Necessary conditions only: a table may meet them and still have no valid class (E8 in docs/theory/papers.md).
    fn feasible(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible> {
        let mut shares = Shares::new(*self);
        for member in members {
            shares.add(member);
        }
        let one_of = |n: u64| Ratio::new(1, n).filter(|_| n >= 2).map(Value::Ratio);
        if !self.alpha.at_least(1, shares.individuals) {
            return Err(Infeasible {
                parameter: "alpha",
                best: one_of(shares.individuals),
            });
        }
        let values = shares.values.len() as u64;
        if !self.beta.at_least(1, values) {
            return Err(Infeasible {
                parameter: "beta",
                best: one_of(values),
            });
        }
        Ok(())
    }

    /// With α above one half an individual with very many records is content with a few who have few and nothing in common
    /// with it. They are soon used up, and then β is hard to meet for whoever is left. With one half it must share a class
    /// with others like itself.
    fn stricter(&self) -> Option<Box<dyn Model>> {
        let half = Ratio::new(1, 2).filter(|half| self.of == Of::Individuals && *half < self.alpha);
        half.map(|alpha| Box::new(Self { alpha, ..*self }) as Box<dyn Model>)
    }
}

/// Counts of a class (Wang 2018, Algorithm 6, with |Q| and n_Q after the addition, E3 in docs/theory/papers.md).
struct Shares {
    model: AlphaBeta,
    individuals: u64,
    records: u64,
    most_records: u64,
    /// Records (IR) or individuals (EIR) with each value; a missing value is bounded like any other.
    values: HashMap<u32, u64>,
    most_common: u64,
}

impl Shares {
    fn new(model: AlphaBeta) -> Self {
        Self {
            model,
            individuals: 0,
            records: 0,
            most_records: 0,
            values: HashMap::new(),
            most_common: 0,
        }
    }
}

impl Tally for Shares {
    fn add(&mut self, member: Member<'_>) {
        self.individuals += 1;
        self.records += u64::from(member.records);
        self.most_records = self.most_records.max(u64::from(member.records));
        for (value, records) in member.fingerprint.iter().zip(member.counts) {
            let count = self.values.entry(*value).or_default();
            *count += match self.model.of {
                Of::Records => u64::from(*records),
                Of::Individuals => 1,
            };
            self.most_common = self.most_common.max(*count);
        }
    }

    fn satisfied(&mut self) -> bool {
        let whole = match self.model.of {
            Of::Records => self.records,
            Of::Individuals => self.individuals,
        };
        self.individuals > 0
            && self.model.alpha.at_least(self.most_records, self.records)
            && self.model.beta.at_least(self.most_common, whole)
    }

    /// A member that makes no value more common than is allowed in a class of the smallest size or of this size.
    fn helps(&self, member: Member<'_>) -> bool {
        let (whole, least) = match self.model.of {
            Of::Records => (self.records + u64::from(member.records), 0),
            Of::Individuals => (self.individuals + 1, self.model.min_individuals() as u64),
        };
        let mut pairs = member.fingerprint.iter().zip(member.counts);
        pairs.all(|(value, records)| {
            let more = match self.model.of {
                Of::Records => u64::from(*records),
                Of::Individuals => 1,
            };
            let count = self.values.get(value).copied().unwrap_or(0) + more;
            self.model.beta.at_least(count, whole.max(least))
        })
    }

    fn clear(&mut self) {
        self.individuals = 0;
        self.records = 0;
        self.most_records = 0;
        // A map that was large once takes long to clear.
        if self.values.capacity() > 1024 {
            self.values = HashMap::new();
        }
        self.values.clear();
        self.most_common = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helps(entry: &ModelEntry, class: &[&[u32]], fingerprint: &[u32]) -> bool {
        let mut parameters = Parameters::default();
        for (parameter, share) in entry.parameters.iter().zip(["0.5", "0.4"]) {
            parameters.set(parameter.name, parameter.parse(share).unwrap());
        }
        let member = |fingerprint| Member {
            records: 2,
            fingerprint,
            counts: &[1, 1],
            ..Member::default()
        };
        let mut tally = (entry.build)(&parameters).unwrap().tally();
        for fingerprint in class {
            tally.add(member(fingerprint));
        }
        tally.helps(member(fingerprint))
    }

    #[test]
    fn a_stricter_model_has_half_of_the_records() {
        let stricter = |entry: &ModelEntry, alpha: &str| {
            let mut parameters = Parameters::default();
            for (parameter, share) in entry.parameters.iter().zip([alpha, "0.4"]) {
                parameters.set(parameter.name, parameter.parse(share).unwrap());
            }
            let model = (entry.build)(&parameters).unwrap();
            model.stricter().map(|model| model.describe())
        };
        let half = "EIR (0.5, 0.4)-anonymity".to_owned();
        assert_eq!(stricter(&EIR_ENTRY, "0.7"), Some(half));
        assert_eq!(stricter(&EIR_ENTRY, "0.5"), None);
        assert_eq!(stricter(&IR_ENTRY, "0.7"), None);
    }

    #[test]
    fn members_help_that_make_no_value_too_common() {
        // Three individuals are the fewest; two of five may share a value.
        assert!(!helps(&EIR_ENTRY, &[&[0, 1]], &[0, 2]));
        assert!(helps(&EIR_ENTRY, &[&[0, 1]], &[2, 3]));
        assert!(helps(
            &EIR_ENTRY,
            &[&[0, 1], &[2, 3], &[4, 5], &[6, 7]],
            &[0, 8]
        ));
        // Two of four records are too many, two of six are not.
        assert!(!helps(&IR_ENTRY, &[&[0, 1]], &[0, 2]));
        assert!(helps(&IR_ENTRY, &[&[0, 1], &[2, 3]], &[0, 4]));
    }
}

//! Identity-reserved (k, l)-anonymity: every class has at least k individuals and l different sensitive values.

use std::collections::HashSet;

use super::ir_k::{K, enough_individuals};
use super::{
    Closure, Infeasible, Member, Model, ModelEntry, Parameter, ParameterKind, Tally, Value,
};
use crate::table::NULL_CODE;

/// IR (k, l)-anonymity in the list of models.
pub static ENTRY: ModelEntry = ModelEntry {
    name: "ir_kl_anonymity",
    function: "anonymize_ir",
    help: "every class has at least k individuals and l different sensitive values",
    parameters: &[
        K,
        Parameter {
            name: "l",
            kind: ParameterKind::Integer {
                min: 2,
                max: 1_000_000,
            },
            required: true,
            help: "smallest number of different sensitive values in a class",
        },
    ],
    build: |parameters| {
        Ok(Box::new(IrKl {
            k: parameters.integer("k")?,
            l: parameters.integer("l")?,
        }))
    },
};

/// IR (k, l)-anonymity (Wang 2018, Definition 2.3 (2)): n_Q ≥ k and m_Q ≥ l.
///
/// # Guarantee
/// As IR k-anonymity, and the records of a class show at least l values. One value may still be held by every
/// individual of the class; EIR l-diversity rules that out.
#[derive(Debug, Clone)]
struct IrKl {
    k: u64,
    l: u64,
}

impl Model for IrKl {
    fn describe(&self) -> String {
        format!("IR ({}, {})-anonymity", self.k, self.l)
    }

    fn closure(&self) -> Closure {
        Closure {
            union: true,
            extension: true,
        }
    }

    fn min_individuals(&self) -> usize {
        self.k as usize
    }

    fn tally(&self) -> Box<dyn Tally> {
        Box::new(Distinct {
            model: self.clone(),
            individuals: 0,
            values: HashSet::new(),
        })
    }

    fn feasible(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible> {
        let (mut individuals, mut values) = (0, HashSet::new());
        for member in members {
            individuals += 1;
            values.extend(known(&member));
        }
        enough_individuals(self.k, individuals)?;
        let reached = values.len() as u64;
        if reached >= self.l {
            return Ok(());
        }
        Err(Infeasible {
            parameter: "l",
            best: (reached >= 2).then_some(Value::Integer(reached)),
        })
    }
}

/// A missing value is never one of the l (X3 in docs/theory/papers.md).
fn known(member: &Member<'_>) -> impl Iterator<Item = u32> {
    member
        .fingerprint
        .iter()
        .copied()
        .filter(|v| *v != NULL_CODE)
}

struct Distinct {
    model: IrKl,
    individuals: u64,
    values: HashSet<u32>,
}

impl Tally for Distinct {
    fn add(&mut self, member: Member<'_>) {
        self.individuals += 1;
        self.values.extend(known(&member));
    }

    fn satisfied(&mut self) -> bool {
        self.individuals >= self.model.k && self.values.len() as u64 >= self.model.l
    }

    /// A member with a value that no other has, while values are needed.
    fn helps(&self, member: Member<'_>) -> bool {
        self.values.len() as u64 >= self.model.l
            || known(&member).any(|value| !self.values.contains(&value))
    }

    fn clear(&mut self) {
        self.individuals = 0;
        self.values.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_help_that_bring_a_value_until_there_are_enough() {
        let member = |fingerprint| Member {
            records: 1,
            fingerprint,
            counts: &[1, 1],
            ..Member::default()
        };
        let mut tally = IrKl { k: 3, l: 3 }.tally();
        tally.add(member(&[0, 1]));
        assert!(tally.helps(member(&[1, 2])) && !tally.helps(member(&[1, NULL_CODE])));
        tally.add(member(&[2]));
        assert!(tally.helps(member(&[1])));
    }
}

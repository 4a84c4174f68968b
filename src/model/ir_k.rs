//! Identity-reserved k-anonymity: every class has at least k individuals, however many records they have.

use super::{
    Closure, Infeasible, Member, Model, ModelEntry, Parameter, ParameterKind, Tally, Value,
};

/// IR k-anonymity in the list of models.
pub static ENTRY: ModelEntry = ModelEntry {
    name: "ir_k_anonymity",
    function: "anonymize_ir",
    help: "every class has at least k individuals",
    parameters: &[K],
    build: |parameters| {
        Ok(Box::new(IrK {
            k: parameters.integer("k")?,
        }))
    },
};

/// The parameter k.
pub(super) const K: Parameter = Parameter {
    name: "k",
    kind: ParameterKind::Integer {
        min: 2,
        max: 1_000_000,
    },
    required: true,
    help: "smallest number of individuals in a class",
};

/// IR k-anonymity (Wang 2018, Definition 2.3 (1)): n_Q ≥ k.
///
/// # Guarantee
/// Whoever knows all quasi-identifiers of an individual cannot tell it from k − 1 others. What they have in common in
/// their sensitive values is not bounded.
#[derive(Debug, Clone)]
struct IrK {
    k: u64,
}

impl Model for IrK {
    fn describe(&self) -> String {
        format!("IR {}-anonymity", self.k)
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
        Box::new(Count {
            k: self.k,
            individuals: 0,
        })
    }

    fn feasible(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible> {
        enough_individuals(self.k, members.count() as u64)
    }
}

/// Whether there are as many individuals as a class needs.
pub(super) fn enough_individuals(k: u64, individuals: u64) -> Result<(), Infeasible> {
    if individuals >= k {
        return Ok(());
    }
    Err(Infeasible {
        parameter: "k",
        best: (individuals >= 2).then_some(Value::Integer(individuals)),
    })
}

struct Count {
    k: u64,
    individuals: u64,
}

impl Tally for Count {
    fn add(&mut self, _: Member<'_>) {
        self.individuals += 1;
    }

    fn satisfied(&mut self) -> bool {
        self.individuals >= self.k
    }

    fn clear(&mut self) {
        self.individuals = 0;
    }
}

//! (k, kᵐ)-anonymity, a baseline: its part about quasi-identifiers, that every class has at least k individuals.

use super::{
    Closure, Infeasible, Member, Model, ModelEntry, Parameter, ParameterError, ParameterKind,
    Parameters, Ratio, Tally, ir_k,
};

/// (k, kᵐ)-anonymity in the list of models.
pub static ENTRY: ModelEntry = ModelEntry {
    name: "kkm_anonymity",
    function: "anonymize_kkm",
    help: "baseline: classes of k individuals, in which any m labels of one are those of k",
    parameters: &[ir_k::K, M, DELTA],
    build: |parameters| Ok(Box::new(KkmAnonymity::try_new(parameters)?)),
};

const M: Parameter = Parameter {
    name: "m",
    kind: ParameterKind::Integer { min: 1, max: 5 },
    required: true,
    help: "how many sensitive values of an individual a reader may know",
};

const DELTA: Parameter = Parameter {
    name: "delta",
    kind: ParameterKind::Share,
    required: true,
    help: "classes are merged as long as the QID-NCP of the table is at most this",
};

/// (k, kᵐ)-anonymity of classes (Poulis et al. 2013).
///
/// # Guarantee
/// Whoever knows the quasi-identifiers and up to m sensitive values of an individual cannot tell it from k − 1 others. What
/// else they have in common is not bounded: all of a class may have one value.
#[derive(Debug)]
struct KkmAnonymity {
    classes: Box<dyn Model>,
    k: u64,
    m: u64,
    delta: Ratio,
}

impl KkmAnonymity {
    fn try_new(parameters: &Parameters) -> Result<Self, ParameterError> {
        Ok(Self {
            classes: (ir_k::ENTRY.build)(parameters)?,
            k: parameters.integer("k")?,
            m: parameters.integer("m")?,
            delta: parameters.ratio("delta")?,
        })
    }
}

impl Model for KkmAnonymity {
    fn describe(&self) -> String {
        let Self { k, m, delta, .. } = self;
        format!("({k}, {k}^{m})-anonymity up to a QID-NCP of {delta}")
    }

    fn closure(&self) -> Closure {
        self.classes.closure()
    }

    fn min_individuals(&self) -> usize {
        self.classes.min_individuals()
    }

    fn tally(&self) -> Box<dyn Tally> {
        self.classes.tally()
    }

    fn feasible(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible> {
        self.classes.feasible(members)
    }
}

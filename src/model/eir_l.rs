//! Enhanced identity-reserved l-diversity: whatever record an attacker picks of each individual in a class, the picks
//! show at least l different sensitive values.

use std::collections::HashSet;

use super::hitting_set::{Decision, Family};
use super::{
    Closure, Infeasible, Member, Model, ModelEntry, Parameter, ParameterError, ParameterKind,
    Parameters, Tally, Value,
};

/// EIR l-diversity in the list of models.
pub static ENTRY: ModelEntry = ModelEntry {
    name: "eir_l_diversity",
    function: "anonymize_eir",
    help: "any choice of one record per individual of a class shows at least l different sensitive values",
    parameters: &[Parameter {
        name: "l",
        kind: ParameterKind::Integer { min: 2, max: 1000 },
        required: true,
        help: "smallest number of different sensitive values in any choice of one record per individual",
    }],
    build: |parameters| Ok(Box::new(EirDiversity::try_new(parameters)?)),
};

/// Words of memory one decision about a class may look at: about a millisecond.
const CLASS_BUDGET: u64 = 1 << 21;

/// Words of memory one decision about a whole table may look at: about a tenth of a second.
const TABLE_BUDGET: u64 = 1 << 27;

/// Words of memory for the bit masks of a whole table.
const TABLE_WORDS: usize = 1 << 23;

/// EIR l-diversity (Wang 2018, Definition 3.3).
///
/// # Guarantee
/// A class satisfies it exactly if no l − 1 sensitive values hit all its fingerprints (Theorem 3.1, which holds in
/// both directions, docs/theory/papers.md E2). It bounds the number of *different* values only, not their frequencies (E10).
///
/// An individual without sensitive values has no record to choose and counts for nothing (E4).
#[derive(Debug, Clone)]
pub struct EirDiversity {
    l: usize,
}

impl EirDiversity {
    fn try_new(parameters: &Parameters) -> Result<Self, ParameterError> {
        let l = usize::try_from(parameters.integer("l")?).map_err(|_| ParameterError {
            parameter: "l".to_owned(),
            message: "is too large".to_owned(),
        })?;
        Ok(Self { l })
    }
}

impl Model for EirDiversity {
    fn describe(&self) -> String {
        format!("EIR {}-diversity", self.l)
    }

    fn closure(&self) -> Closure {
        Closure {
            union: true,
            extension: true,
        }
    }

    fn min_individuals(&self) -> usize {
        self.l
    }

    fn tally(&self) -> Box<dyn Tally> {
        Box::new(EirTally::new(self.l))
    }

    /// A class exists exactly if all members together are one, because more members never hurt (docs/theory/papers.md E8).
    ///
    /// The search has a budget; where that is too small, the best value proven so far is reported, which is then a
    /// lower bound of what can be reached.
    fn feasible(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible> {
        let mut family = Family::new();
        let mut seen = HashSet::new();
        let mut packing = Packing::default();
        for member in members {
            let fingerprint = member.certain();
            if fingerprint.is_empty()
                || family.mask_words() >= TABLE_WORDS
                || seen.contains(fingerprint)
            {
                continue;
            }
            seen.insert(fingerprint.to_vec());
            packing.add(family.add(fingerprint));
            if packing.disjoint >= self.l {
                return Ok(());
            }
        }
        drop(seen);

        // Small fingerprints first leave room for more disjoint ones.
        let mut by_size: Vec<usize> = (0..family.len()).collect();
        by_size.sort_by_key(|individual| family.of(*individual).len());
        let mut small_first = Packing::default();
        for individual in by_size {
            small_first.add(family.of(individual));
        }
        let mut proven = packing.disjoint.max(small_first.disjoint);
        while proven < self.l {
            if !family.too_many_for(proven)
                && family.decide(proven, TABLE_BUDGET) != Decision::Absent
            {
                return Err(Infeasible {
                    parameter: "l",
                    best: (proven >= 2).then_some(Value::Integer(proven as u64)),
                });
            }
            proven += 1;
        }
        Ok(())
    }
}

/// Pairwise disjoint fingerprints, taken greedily: every hitting set has a value of each.
#[derive(Debug, Clone, Default)]
struct Packing {
    used: Vec<bool>,
    disjoint: usize,
}

impl Packing {
    fn add(&mut self, values: &[u32]) {
        let used = |value: &u32| self.used.get(*value as usize).is_some_and(|used| *used);
        if values.iter().any(used) {
            return;
        }
        self.disjoint += 1;
        for value in values {
            let v = *value as usize;
            if self.used.len() <= v {
                self.used.resize(v + 1, false);
            }
            self.used[v] = true;
        }
    }

    fn clear(&mut self) {
        self.used.clear();
        self.disjoint = 0;
    }
}

/// The fingerprints of a class, with what is already known about its hitting sets.
#[derive(Debug)]
struct EirTally {
    l: usize,
    family: Family,
    packing: Packing,
    /// Fewer than l values that hit all members, while `refuted`.
    witness: Vec<u32>,
    /// Whether the witness still shows that the class is not satisfied.
    refuted: bool,
    /// Once satisfied, always satisfied.
    satisfied: bool,
    /// After a search was given up, the class must grow to this size before the next.
    retry_at: usize,
}

impl EirTally {
    fn new(l: usize) -> Self {
        Self {
            l,
            family: Family::new(),
            packing: Packing::default(),
            witness: vec![],
            refuted: true,
            satisfied: false,
            retry_at: 0,
        }
    }

    fn decide(&mut self) -> bool {
        let picks = self.l.saturating_sub(1);
        let members = self.family.len();
        if members < self.retry_at {
            return false;
        }
        match self.family.decide(picks, CLASS_BUDGET) {
            Decision::Absent => true,
            Decision::Found => {
                self.witness.clear();
                self.witness.extend_from_slice(self.family.witness());
                self.refuted = true;
                false
            }
            Decision::Exhausted => {
                self.retry_at = members + members / 16 + 1;
                false
            }
        }
    }
}

impl Tally for EirTally {
    fn add(&mut self, member: Member<'_>) {
        if self.satisfied || member.certain().is_empty() {
            return;
        }
        let values = self.family.add(member.certain());
        self.packing.add(values);
        if self.refuted && !values.iter().any(|value| self.witness.contains(value)) {
            // One more value hits the new member as well, as long as there is room for it.
            self.refuted = self.witness.len() + 1 < self.l;
            if self.refuted {
                let last = self.family.len() - 1;
                let values = self.family.of(last).iter().copied();
                self.witness
                    .extend(values.max_by_key(|value| self.family.frequency(*value)));
            }
        }
    }

    fn satisfied(&mut self) -> bool {
        self.satisfied = self.satisfied
            || !self.refuted
                && self.family.len() >= self.l
                && (self.packing.disjoint >= self.l
                    || self.family.too_many_for(self.l.saturating_sub(1))
                    || self.decide());
        self.satisfied
    }

    /// A member that the witness does not hit calls for one more value.
    fn helps(&self, member: Member<'_>) -> bool {
        let hit = |code: &u32| {
            let value = self.family.value(*code);
            value.is_some_and(|value| self.witness.contains(&value))
        };
        let values = member.certain();
        !(values.is_empty() || self.refuted && values.iter().any(hit))
    }

    fn clear(&mut self) {
        self.family.clear();
        self.packing.clear();
        self.witness.clear();
        self.refuted = true;
        self.satisfied = false;
        self.retry_at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    fn model(l: u64) -> Box<dyn Model> {
        let mut parameters = Parameters::default();
        parameters.set("l", Value::Integer(l));
        (ENTRY.build)(&parameters).unwrap()
    }

    fn member(fingerprint: &[u32]) -> Member<'_> {
        Member {
            records: fingerprint.len() as u32,
            fingerprint,
            counts: fingerprint,
            ..Member::default()
        }
    }

    fn satisfied(l: u64, class: &[&[u32]]) -> bool {
        let mut tally = model(l).tally();
        for fingerprint in class {
            tally.add(member(fingerprint));
        }
        tally.satisfied()
    }

    fn feasible(l: u64, table: &[&[u32]]) -> Result<(), Infeasible> {
        model(l).feasible(&mut table.iter().map(|fingerprint| member(fingerprint)))
    }

    #[test]
    fn classes_of_the_paper() {
        // Table 3, Q2: everybody has hypertension. Table 4, Q1 and Q2.
        assert!(!satisfied(2, &[&[0, 1], &[0], &[0, 2]]));
        assert!(satisfied(3, &[&[0, 2], &[3, 1], &[4]]));
        assert!(satisfied(3, &[&[0, 1], &[5], &[0], &[6]]));
        assert!(!satisfied(4, &[&[0, 1], &[5], &[0], &[6]]));
        // On the way to Q1: {leukaemia, heart} and {syphilis} are 2-diverse, not 3-diverse.
        assert!(satisfied(2, &[&[3, 1], &[4]]));
        assert!(!satisfied(3, &[&[3, 1], &[4]]));
    }

    #[test]
    fn the_counter_example_is_two_diverse() {
        // docs/theory/papers.md E1: Algorithm 5 fed by Algorithm 3 calls this class 3-diverse.
        let class: &[&[u32]] = &[&[0, 1], &[0, 2], &[1, 3], &[2, 4]];
        assert!(satisfied(2, class));
        assert!(!satisfied(3, class));
        assert_eq!(
            feasible(3, class),
            Err(Infeasible {
                parameter: "l",
                best: Some(Value::Integer(2))
            })
        );
    }

    #[test]
    fn an_empty_fingerprint_counts_for_nothing() {
        assert!(!satisfied(2, &[&[]]));
        assert!(!satisfied(2, &[&[], &[], &[1]]));
        assert!(satisfied(2, &[&[], &[2], &[1]]));
        assert!(feasible(2, &[&[], &[1]]).is_err());
        assert_eq!(feasible(2, &[]).unwrap_err().best, None);
    }

    #[test]
    fn members_help_that_few_values_do_not_hit() {
        let mut tally = model(3).tally();
        tally.add(member(&[0, 1]));
        tally.add(member(&[0]));
        assert!(!tally.satisfied());
        assert!(!tally.helps(member(&[0, 2])) && !tally.helps(member(&[])));
        assert!(tally.helps(member(&[2, 3])));
    }

    #[test]
    fn what_is_known_step_by_step_equals_what_is_found_at_once() {
        let mut state = 7u64;
        let mut random = |bound: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for round in 0..1500 {
            let l = 2 + round % 6;
            let mut tally = EirTally::new(l as usize);
            let mut family = Family::new();
            let mut class: Vec<Vec<u32>> = vec![];
            for _ in 0..30 {
                let mut fingerprint: Vec<u32> = (0..1 + random(5))
                    .map(|_| random(9).min(random(12)) as u32)
                    .collect();
                fingerprint.sort_unstable();
                fingerprint.dedup();
                tally.add(member(&fingerprint));
                family.add(&fingerprint);
                class.push(fingerprint);
                let truth = family.decide(l as usize - 1, u64::MAX) == Decision::Absent;
                // Not every step is asked about, as when whole classes are merged.
                if random(3) > 0 {
                    assert_eq!(tally.satisfied(), truth, "{l} {class:?}");
                }
            }
            let all: Vec<&[u32]> = class.iter().map(Vec::as_slice).collect();
            assert_eq!(feasible(l, &all).is_ok(), tally.satisfied());
        }
    }

    #[test]
    fn the_best_value_is_the_largest_feasible() {
        let ring: Vec<[u32; 2]> = (0..12).map(|i| [i, (i + 1) % 12]).collect();
        let table: Vec<&[u32]> = ring.iter().map(|set| &set[..]).collect();
        assert!(feasible(6, &table).is_ok());
        assert_eq!(
            feasible(1000, &table).unwrap_err().best,
            Some(Value::Integer(6))
        );
        assert_eq!(feasible(2, &[&[1, 2], &[1]]).unwrap_err().best, None);
    }
}

//! Mending: a group at fault takes in others until it satisfies all four conditions.

mod slack;

use std::collections::VecDeque;

use super::counter::{Bound, Fault, Rules, Tally};
use super::groups::DivideError;
use crate::algorithm::Cancel;
use slack::Rooms;

/// Groups that are looked at where no index says which one is best.
const CANDIDATES: usize = 4;

/// Groups of more than this many times the mean size at the beginning are taken in only where smaller ones do not help.
const LARGE: usize = 8;

/// Work spent per individual before all groups that are still at fault become one.
const PATIENCE: u64 = 64;

/// A worklist of groups at fault (docs/theory/papers.md S4).
///
/// Bounds on shares hold for a union if they hold for both parts, so taking in a sound group always brings a group
/// nearer to them, and all individuals together satisfy them. γ has no such rule: every union is tested for all four.
///
/// # Runtime
/// Each step looks at a few groups, or asks an ordered index of the room that groups leave to the bound at fault. Once
/// [`PATIENCE`] times the number of individuals have been counted, all groups at fault become one, which then takes in
/// others; every individual is counted once more at most.
pub(super) struct Mender<'a> {
    rules: &'a Rules<'a>,
    cancel: &'a Cancel,
    groups: Vec<Vec<u32>>,
    /// Whether a group may be taken in: not while it is open, nor after it was taken in.
    available: Vec<bool>,
    /// Available groups in turn, among others that no longer are.
    turn: VecDeque<u32>,
    in_turn: Vec<bool>,
    /// Whether a group satisfies all conditions.
    sound: Vec<bool>,
    rooms: Rooms,
    tally: &'a mut Tally,
    individuals: usize,
    spent: u64,
}

impl<'a> Mender<'a> {
    pub fn new(
        rules: &'a Rules<'a>,
        groups: Vec<Vec<u32>>,
        tally: &'a mut Tally,
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            cancel,
            individuals: groups.iter().map(Vec::len).sum(),
            available: vec![true; groups.len()],
            in_turn: vec![true; groups.len()],
            sound: vec![true; groups.len()],
            turn: (0..groups.len() as u32).collect(),
            rooms: Rooms::new(
                LARGE * groups.iter().map(Vec::len).sum::<usize>() / groups.len().max(1),
            ),
            tally,
            spent: 0,
            groups,
            rules,
        }
    }

    /// Mends the groups at fault; `None` if in the end one group is left that violates γ.
    pub fn mend(mut self, faulty: Vec<u32>) -> Result<Option<Vec<Vec<u32>>>, DivideError> {
        for group in &faulty {
            self.sound[*group as usize] = false;
        }
        let mut faulty = VecDeque::from(faulty);
        while let Some(group) = faulty.pop_front() {
            self.cancel.check()?;
            if !self.available[group as usize] {
                continue;
            }
            let exhausted = self.spent > PATIENCE * self.individuals as u64;
            self.open(group);
            if exhausted {
                let rest: Vec<u32> = faulty.drain(..).collect();
                for other in rest {
                    if self.available[other as usize] {
                        self.take_in(group, other);
                    }
                }
            }
            if !self.grow(group, &faulty, exhausted)? {
                return Ok(None);
            }
            self.close(group);
        }
        let groups = self.groups.into_iter().zip(self.available);
        let kept = groups.filter(|(_, available)| *available);
        Ok(Some(kept.map(|(members, _)| members).collect()))
    }

    fn open(&mut self, group: u32) {
        self.available[group as usize] = false;
        self.rooms.remove(group);
        self.tally.clear();
        self.count(group);
    }

    fn close(&mut self, group: u32) {
        self.available[group as usize] = true;
        self.sound[group as usize] = true;
        self.rooms.insert(self.rules, self.tally, group);
        if !std::mem::replace(&mut self.in_turn[group as usize], true) {
            self.turn.push_back(group);
        }
    }

    fn count(&mut self, group: u32) {
        let members = &self.groups[group as usize];
        self.tally.add(self.rules, members);
        self.spent += members.len() as u64;
    }

    /// The open group takes in another.
    fn take_in(&mut self, group: u32, other: u32) {
        self.available[other as usize] = false;
        self.rooms.remove(other);
        self.count(other);
        let members = std::mem::take(&mut self.groups[other as usize]);
        self.groups[group as usize].extend(members);
    }

    /// Lets the open group take in others until it has no fault; whether that succeeded.
    fn grow(
        &mut self,
        group: u32,
        faulty: &VecDeque<u32>,
        exhausted: bool,
    ) -> Result<bool, DivideError> {
        let mut fault = self.tally.fault(self.rules);
        while let Some(at_fault) = fault {
            // Looking for all faults of a very large group after each small addition would take quadratic time.
            let size = self.tally.individuals();
            let enough = if exhausted { size + size / 32 } else { size };
            loop {
                self.cancel.check()?;
                let Some(other) = self.partner(at_fault, faulty) else {
                    return Ok(self.tally.fault(self.rules).is_none());
                };
                self.take_in(group, other);
                let healed = !self.tally.still(self.rules, at_fault);
                if healed && self.tally.individuals() >= enough {
                    break;
                }
            }
            fault = self.tally.fault(self.rules);
            self.spent += self.tally.values() as u64;
        }
        Ok(true)
    }

    /// Which group to take in.
    fn partner(&mut self, fault: Fault, faulty: &VecDeque<u32>) -> Option<u32> {
        if let Fault::Bound(bound) = fault
            && self.index(bound)
            && let needed = -self.tally.slack(self.rules, bound)
            && let Some(best) = self.rooms.best(bound, needed)
        {
            return Some(best);
        }
        // Only which group is taken in depends on these numbers, not whether the union satisfies the bounds.
        let mut best: Option<(f64, u32)> = None;
        for candidate in self.candidates(faulty) {
            let members = &self.groups[candidate as usize];
            self.spent += members.len() as u64;
            let (heals, room) = match fault {
                Fault::Bound(bound) => {
                    let room = slack::of(self.rules, bound, members);
                    let union = self.tally.slack(self.rules, bound) + room;
                    (union >= 0, union as f64)
                }
                Fault::Gamma => {
                    let (holds, probability) = self.tally.gamma_with(self.rules, members);
                    (holds, -probability)
                }
            };
            if heals {
                return Some(candidate);
            }
            if best.is_none_or(|(most, _)| most < room) {
                best = Some((room, candidate));
            }
        }
        best.map(|(_, group)| group)
    }

    /// Whether there is an index for the bound; makes one for a bound that concerns many groups.
    fn index(&mut self, bound: Bound) -> bool {
        if self.rooms.has(bound) {
            return true;
        }
        let groups = self.groups.len();
        if !self.rules.is_common(bound) || self.rooms.is_full(groups, self.individuals) {
            return false;
        }
        self.spent += self.individuals as u64;
        let (available, sound) = (&self.available, &self.sound);
        // A group with another fault may leave room here and need it there: two of them could grow for ever.
        let of = |group: usize| available[group] && sound[group];
        self.rooms.add(self.rules, bound, &self.groups, of);
        true
    }

    /// A few available groups: some that are at fault, because they need another anyway, then some in turn.
    fn candidates(&mut self, faulty: &VecDeque<u32>) -> Vec<u32> {
        let waiting = faulty.iter().take(2 * CANDIDATES).copied();
        let mut candidates: Vec<u32> = waiting
            .filter(|group| self.available[*group as usize])
            .take(CANDIDATES)
            .collect();
        let mut seen = 0;
        while seen < CANDIDATES {
            let Some(group) = self.turn.pop_front() else {
                break;
            };
            if !self.available[group as usize] {
                self.in_turn[group as usize] = false;
                continue;
            }
            self.turn.push_back(group);
            seen += 1;
            if !candidates.contains(&group) {
                candidates.push(group);
            }
        }
        candidates
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::Prior;
    use super::super::example::{self, satisfies};
    use super::*;

    #[test]
    fn without_patience_the_groups_at_fault_become_one() {
        let mut random = ChaCha8Rng::seed_from_u64(51);
        let mut mended = 0;
        for round in 0..3000 {
            let (individuals, division, mut requirements) = example::random(&mut random, 60);
            requirements.gamma = None;
            let prior = Prior::of(&individuals).unwrap();
            let tuples = individuals.sub_tuples(&division).unwrap();
            let rules = Rules::new(requirements, &tuples, &individuals, &prior);
            let all: Vec<u32> = (0..individuals.len() as u32).collect();
            let holds =
                |group: &[u32]| satisfies(&individuals, &division, &prior, &requirements, group);
            if !holds(&all) {
                continue;
            }
            let groups: Vec<Vec<u32>> = all.chunks(1 + round % 5).map(<[u32]>::to_vec).collect();
            let faulty = (0u32..).zip(&groups).filter(|(_, group)| !holds(group));
            let faulty: Vec<u32> = faulty.map(|(number, _)| number).collect();
            let cancel = Cancel::default();
            for spent in [0, u64::MAX / 2] {
                let mut tally = rules.tally();
                let mut mender = Mender::new(&rules, groups.clone(), &mut tally, &cancel);
                mender.spent = spent;
                let found = mender.mend(faulty.clone()).unwrap().unwrap();
                assert!(found.iter().all(|group| holds(group)));
                let mut everybody = found.concat();
                everybody.sort_unstable();
                assert_eq!(everybody, all);
                mended += 1;
            }
        }
        assert!(mended > 1000, "{mended}");
    }
}

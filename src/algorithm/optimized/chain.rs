//! Chains of exchanges: an individual takes the place of another, who takes the place of a third, who goes to a class
//! that can take one more or takes the place of the first.
//!
//! ```text
//!   move    a ─► B          swap    a ⇄ b          exchange of three    a ─► b ─► c ─► a
//! ```
//!
//! Of every chain that gains, some rotation gains from its first step on. So a chain is followed only while it gains.

use super::search::Search;

/// Changes of one individual that the model is asked about, best first.
const TRIES: usize = 6;
/// Second members of a chain from which a third is looked for.
const BRANCHES: usize = 4;
/// Of a class with more members only so many are considered for an exchange.
const PARTNERS: usize = 48;

/// Individuals of which each takes the place of the next.
struct Chain {
    gain: i128,
    members: Vec<u32>,
    /// Where the last goes if not to the place of the first.
    end: Option<u32>,
}

/// The best chains of one individual.
struct Best {
    chains: Vec<Chain>,
    first: u32,
    /// What its class gains if it goes.
    release: Option<i128>,
}

impl Best {
    fn note(&mut self, gain: i128, members: &[u32], last: Option<u32>, end: Option<u32>) {
        let full = self.chains.get(TRIES - 1);
        if gain <= 0 || full.is_some_and(|worst| worst.gain >= gain) {
            return;
        }
        let at = self.chains.partition_point(|other| other.gain >= gain);
        let members = members.iter().copied().chain(last).collect();
        self.chains.insert(at, Chain { gain, members, end });
        self.chains.truncate(TRIES);
    }
}

impl Search<'_> {
    /// Changes the class of an individual, if need be in exchange for others, if that loses less.
    pub(super) fn improve(&mut self, individual: u32) -> bool {
        let class = self.groups.class_of(individual);
        let release = self
            .may_be_spare(individual)
            .then(|| self.groups.cost(class) - self.groups.cost_without(individual));
        let mut best = Best {
            chains: vec![],
            first: individual,
            release,
        };
        let seconds = self.follow(&[individual], 0, &mut best);
        for (gain, second) in seconds {
            self.follow(&[individual, second], gain, &mut best);
        }
        for chain in best.chains {
            if self.is_allowed(&chain) {
                self.apply(&chain);
                return true;
            }
        }
        false
    }

    /// Notes where the last of a chain could go; returns whose place it could take in a longer one.
    fn follow(&mut self, chain: &[u32], gained: i128, best: &mut Best) -> Vec<(i128, u32)> {
        let [first, .., last] = *chain else {
            return self.follow(&[best.first, best.first], gained, best);
        };
        let chain = if first == last { &chain[..1] } else { chain };
        self.begin_list();
        for member in chain {
            self.unlist(self.groups.class_of(*member));
        }
        let mut near = vec![];
        self.list_near(last, &mut near);
        let own = self.groups.cost(self.groups.class_of(first));
        let release = best.release.unwrap_or(0).max(0);
        let mut next: Vec<(i128, u32)> = vec![];
        let mut steps = 0;
        for class in near {
            let before = gained + self.groups.cost(class);
            if let Some(release) = best.release {
                let gain = before - self.groups.cost_with(class, last) + release;
                best.note(gain, chain, None, Some(class));
            }
            let others = self.groups.members(class);
            steps += others.len().min(PARTNERS);
            for other in others.iter().take(PARTNERS) {
                // Most exchanges are seen to be bad before they are computed.
                let hope = before - self.groups.cost_exchanged_at_least(*other, last);
                let back = own - self.groups.cost_exchanged_at_least(first, *other);
                if hope + back.max(release) <= 0 {
                    continue;
                }
                let gain = before - self.groups.cost_exchanged(*other, last);
                if gain + back > 0 {
                    let back = own - self.groups.cost_exchanged(first, *other);
                    best.note(gain + back, chain, Some(*other), None);
                }
                if gain + release > 0 {
                    let at = next.partition_point(|(other, _)| *other >= gain);
                    if at < BRANCHES {
                        next.insert(at, (gain, *other));
                        next.truncate(BRANCHES);
                    }
                }
            }
        }
        self.work(steps);
        next
    }

    fn is_allowed(&mut self, chain: &Chain) -> bool {
        let members = &chain.members;
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            return false;
        };
        let mut steps = members[1..].iter().zip(members);
        steps.all(|(less, more)| self.exchanges(*less, *more))
            && match chain.end {
                Some(class) => self.is_spare(*first) && self.accepts(class, *last),
                None => self.exchanges(*first, *last),
            }
    }

    fn apply(&mut self, chain: &Chain) {
        let members = &chain.members;
        let class_of = |individual: &u32| self.groups.class_of(*individual);
        let classes: Vec<u32> = members.iter().map(class_of).collect();
        let last = members.last().copied();
        let came = if chain.end.is_some() { None } else { last };
        self.replace(classes[0], Some(members[0]), came);
        for (at, class) in classes.iter().enumerate().skip(1) {
            self.replace(*class, Some(members[at]), Some(members[at - 1]));
        }
        if let Some(class) = chain.end {
            self.replace(class, None, last);
        }
    }
}

//! Counting the members of one group at a time against the bounds.

use super::exact;
use super::individuals::{CodedIndividuals, Prior, SubTuples};
use super::requirement::{FINEST, GroupBounds, Shortfall};
use crate::model::Ratio;

/// The bounds with all that deciding them needs: what a group is tested against.
pub(super) struct Rules<'a> {
    pub requirements: GroupBounds,
    pub tuples: &'a [SubTuples],
    pub sensitive: &'a [u32],
    prior: &'a Prior,
    /// Values whose share of the whole table is more than δ: a group without them is too far from it.
    heavy: Vec<u32>,
}

/// A bound on one value, which is met if its slack is not negative. Slacks of two groups add up to that of their union,
/// so a group that exceeds a bound needs another with at least that much room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bound {
    /// A sensitive value has a share of at most β.
    Beta { value: u32 },
    /// A sub-tuple has a share of at most α.
    Alpha { table: u32, tuple: u32 },
    /// A sensitive value's share is at most δ above that of the whole table.
    Above { value: u32 },
    /// A sensitive value's share is at most δ below that of the whole table, also where the group lacks it.
    Below { value: u32 },
}

/// What a group violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Bound(Bound),
    Gamma,
}

/// How often values occur in a group, and how often the most frequent one does.
struct Counter {
    counts: Vec<u32>,
    present: Vec<u32>,
    modal: u32,
}

/// The counts of one group.
pub(super) struct Tally {
    individuals: u64,
    tuples: Vec<Counter>,
    sensitive: Counter,
}

impl Counter {
    fn new(values: usize) -> Self {
        Self {
            counts: vec![0; values],
            present: vec![],
            modal: 0,
        }
    }

    fn add(&mut self, value: u32) {
        let count = &mut self.counts[value as usize];
        if *count == 0 {
            self.present.push(value);
        }
        *count += 1;
        if *count > self.most() {
            self.modal = value;
        }
    }

    fn most(&self) -> u32 {
        self.counts.get(self.modal as usize).copied().unwrap_or(0)
    }

    fn of(&self, value: u32) -> u32 {
        self.counts[value as usize]
    }

    /// How often the most frequent value would occur with these values added.
    fn most_with(&mut self, values: impl Iterator<Item = u32> + Clone) -> u32 {
        let mut most = self.most();
        for value in values.clone() {
            let count = &mut self.counts[value as usize];
            *count += 1;
            most = most.max(*count);
        }
        for value in values {
            self.counts[value as usize] -= 1;
        }
        most
    }

    fn clear(&mut self) {
        for value in self.present.drain(..) {
            self.counts[value as usize] = 0;
        }
        self.modal = 0;
    }
}

impl<'a> Rules<'a> {
    pub fn new(
        requirements: GroupBounds,
        tuples: &'a [SubTuples],
        individuals: &'a CodedIndividuals,
        prior: &'a Prior,
    ) -> Self {
        let heavy = match requirements.delta {
            Some(delta) => (0u32..)
                .zip(prior.counts())
                .filter(|(_, count)| !delta.at_least(**count, prior.individuals()))
                .map(|(value, _)| value)
                .collect(),
            None => vec![],
        };
        Self {
            requirements,
            tuples,
            sensitive: individuals.sensitive(),
            prior,
            heavy,
        }
    }

    /// The same, but for the bounds.
    pub fn with(&self, requirements: GroupBounds) -> Rules<'_> {
        Rules {
            requirements,
            heavy: self.heavy.clone(),
            ..*self
        }
    }

    /// Whether a bound is likely to be at fault in many groups: values whose share of all is half of what is allowed.
    pub fn is_common(&self, bound: Bound) -> bool {
        let half = |allowed: Option<Ratio>, count: u64, of: u64| {
            allowed.is_some_and(|allowed| !allowed.at_least(2 * count, of))
        };
        let before = |value: u32| self.prior.counts()[value as usize];
        let all = self.prior.individuals();
        match bound {
            Bound::Alpha { table, tuple } => {
                let count = self.tuples[table as usize].counts[tuple as usize];
                half(self.requirements.alpha, count, self.sensitive.len() as u64)
            }
            Bound::Beta { value } => half(Some(self.requirements.beta), before(value), all),
            Bound::Above { value } => half(self.requirements.delta, before(value), all),
            Bound::Below { .. } => true,
        }
    }

    pub fn tally(&self) -> Tally {
        Tally {
            individuals: 0,
            tuples: self
                .tuples
                .iter()
                .map(|t| Counter::new(t.counts.len()))
                .collect(),
            sensitive: Counter::new(self.prior.counts().len()),
        }
    }

    /// Whether a bound speaks of this individual's values.
    pub fn concerns(&self, bound: Bound, individual: u32) -> bool {
        let i = individual as usize;
        match bound {
            Bound::Alpha { table, tuple } => self.tuples[table as usize].codes[i] == tuple,
            Bound::Beta { value } | Bound::Above { value } | Bound::Below { value } => {
                self.sensitive[i] == value
            }
        }
    }

    /// How much room a bound leaves to a group of whose `individuals` it speaks of `count`; negative if exceeded.
    ///
    /// Requirements::check and Prior::try_new see to it that 128 bits are enough.
    pub fn slack(&self, bound: Bound, individuals: u64, count: u64) -> i128 {
        let (n, c) = (i128::from(individuals), i128::from(count));
        let share =
            |bound: Ratio| i128::from(bound.numerator()) * n - i128::from(bound.denominator()) * c;
        let distance = |value: u32, sign: i128| match self.requirements.delta {
            Some(delta) => {
                let whole = i128::from(self.prior.individuals());
                let before = i128::from(self.prior.counts()[value as usize]);
                let allowed = i128::from(delta.numerator()) * whole * n;
                allowed + sign * i128::from(delta.denominator()) * (before * n - c * whole)
            }
            None => 0,
        };
        match bound {
            Bound::Alpha { .. } => self.requirements.alpha.map_or(0, share),
            Bound::Beta { .. } => share(self.requirements.beta),
            Bound::Above { value } => distance(value, 1),
            Bound::Below { value } => distance(value, -1),
        }
    }
}

impl Tally {
    pub fn individuals(&self) -> u64 {
        self.individuals
    }

    pub fn add(&mut self, rules: &Rules<'_>, members: &[u32]) {
        self.individuals += members.len() as u64;
        for (counter, tuples) in self.tuples.iter_mut().zip(rules.tuples) {
            for member in members {
                counter.add(tuples.codes[*member as usize]);
            }
        }
        for member in members {
            self.sensitive.add(rules.sensitive[*member as usize]);
        }
    }

    /// Counts these members and no others.
    pub fn count(&mut self, rules: &Rules<'_>, members: &[u32]) {
        self.clear();
        self.add(rules, members);
    }

    pub fn clear(&mut self) {
        self.individuals = 0;
        self.tuples.iter_mut().for_each(Counter::clear);
        self.sensitive.clear();
    }

    /// How much room a bound leaves to the group.
    pub fn slack(&self, rules: &Rules<'_>, bound: Bound) -> i128 {
        let count = match bound {
            Bound::Alpha { table, tuple } => self.tuples[table as usize].of(tuple),
            Bound::Beta { value } | Bound::Above { value } | Bound::Below { value } => {
                self.sensitive.of(value)
            }
        };
        rules.slack(bound, self.individuals, u64::from(count))
    }

    /// Whether the group still has a fault that it had.
    pub fn still(&self, rules: &Rules<'_>, fault: Fault) -> bool {
        match fault {
            Fault::Bound(bound) => self.slack(rules, bound) < 0,
            Fault::Gamma => !self.gamma_holds(rules),
        }
    }

    /// What the group violates of all four conditions; `None` if it satisfies them.
    pub fn fault(&self, rules: &Rules<'_>) -> Option<Fault> {
        let violated = self.bounds(rules).map(Fault::Bound);
        violated.or_else(|| (!self.gamma_holds(rules)).then_some(Fault::Gamma))
    }

    /// The first violated bound of β and α, or else the most violated one of δ.
    fn bounds(&self, rules: &Rules<'_>) -> Option<Bound> {
        let beta = Bound::Beta {
            value: self.sensitive.modal,
        };
        let alphas = (0u32..)
            .zip(&self.tuples)
            .map(|(table, counter)| Bound::Alpha {
                table,
                tuple: counter.modal,
            });
        let exceeded = |bound: &Bound| self.slack(rules, *bound) < 0;
        let shares = [beta].into_iter().chain(alphas);
        // A group without members has no modal values.
        let mut shares = shares.take(if self.individuals > 0 { usize::MAX } else { 0 });
        shares.find(exceeded).or_else(|| self.delta(rules))
    }

    fn delta(&self, rules: &Rules<'_>) -> Option<Bound> {
        let delta = rules.requirements.delta?;
        // Shares of at most δ cannot be δ above another.
        let above = match delta.at_least(u64::from(self.sensitive.most()), self.individuals) {
            true => [].as_slice(),
            false => &self.sensitive.present,
        };
        let above = above.iter().map(|value| Bound::Above { value: *value });
        let below = rules
            .heavy
            .iter()
            .map(|value| Bound::Below { value: *value });
        let slacks = above
            .chain(below)
            .map(|bound| (self.slack(rules, bound), bound));
        slacks
            .filter(|(slack, _)| *slack < 0)
            .min()
            .map(|(_, bound)| bound)
    }

    /// Π c / n^(k + 1) ≤ γ (Yao 2021, Eq. 7).
    pub fn gamma_holds(&self, rules: &Rules<'_>) -> bool {
        rules.requirements.gamma.is_none_or(|gamma| {
            let combinations = self.factors().map(|_| self.individuals);
            exact::at_most(
                self.factors().chain([gamma.denominator()]),
                combinations.chain([gamma.numerator()]),
            )
        })
    }

    /// The counts of the most frequent sub-tuples and of the most frequent sensitive value.
    fn factors(&self) -> impl Iterator<Item = u64> {
        let counters = self.tuples.iter().chain([&self.sensitive]);
        counters.map(|counter| u64::from(counter.most()))
    }

    /// Whether γ would hold with these members added, and the combinations' probability then, roughly.
    pub fn gamma_with(&mut self, rules: &Rules<'_>, members: &[u32]) -> (bool, f64) {
        let individuals = self.individuals + members.len() as u64;
        let of = |codes: &'_ [u32], counter: &mut Counter| {
            let values = members.iter().map(|member| codes[*member as usize]);
            u64::from(counter.most_with(values))
        };
        let mut counts: Vec<u64> = vec![];
        for (counter, tuples) in self.tuples.iter_mut().zip(rules.tuples) {
            counts.push(of(&tuples.codes, counter));
        }
        counts.push(of(rules.sensitive, &mut self.sensitive));
        let holds = rules.requirements.gamma.is_none_or(|gamma| {
            let all = counts.iter().map(|_| individuals);
            exact::at_most(
                counts.iter().copied().chain([gamma.denominator()]),
                all.chain([gamma.numerator()]),
            )
        });
        let shares = counts
            .iter()
            .map(|count| *count as f64 / individuals as f64);
        (holds, shares.product())
    }

    /// How many sensitive values the group has.
    pub fn values(&self) -> usize {
        self.sensitive.present.len()
    }

    /// An upper bound of Π c / n^(k + 1) with twelve decimals.
    pub fn gamma(&self) -> Option<Ratio> {
        let holds = |parts: u64| {
            let combinations = self.factors().map(|_| self.individuals);
            exact::at_most(self.factors().chain([FINEST]), combinations.chain([parts]))
        };
        decimal(least(FINEST, holds))
    }

    /// Why the group, as a whole table or block, cannot be divided: every bound on shares that it exceeds.
    ///
    /// Bounds on shares hold for a union if they hold for its parts, so they hold for no parts of a group that exceeds
    /// them (docs/theory/papers.md S3).
    pub fn shortfalls(&self, rules: &Rules<'_>) -> Vec<Shortfall> {
        let share = |count: u32| Ratio::new(u64::from(count), self.individuals);
        let mut shortfalls = vec![];
        let beta = Bound::Beta {
            value: self.sensitive.modal,
        };
        if self.slack(rules, beta) < 0 {
            shortfalls.extend(share(self.sensitive.most()).map(|best| Shortfall::Beta { best }));
        }
        for (table, counter) in self.tuples.iter().enumerate() {
            let bound = Bound::Alpha {
                table: table as u32,
                tuple: counter.modal,
            };
            if self.slack(rules, bound) < 0 {
                let best = share(counter.most());
                shortfalls.extend(best.map(|best| Shortfall::Alpha { table, best }));
            }
        }
        if self.delta(rules).is_some() {
            let best = self.least_delta(rules);
            shortfalls.extend(best.map(|best| Shortfall::Delta { best }));
        }
        shortfalls
    }

    /// The smallest δ of twelve decimals that the group satisfies.
    fn least_delta(&self, rules: &Rules<'_>) -> Option<Ratio> {
        let holds = |parts: u64| {
            let requirements = GroupBounds {
                delta: decimal(parts),
                ..rules.requirements
            };
            let rules = Rules {
                requirements,
                heavy: (0..rules.prior.counts().len() as u32).collect(),
                ..*rules
            };
            self.delta(&rules).is_none()
        };
        decimal(least(FINEST, holds))
    }
}

/// The smallest number from 1 to `most` for which `holds`, which holds for all larger ones too.
fn least(most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// That many parts of [`FINEST`].
fn decimal(parts: u64) -> Option<Ratio> {
    Ratio::new(parts, FINEST)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::example::{self, satisfies};
    use super::*;

    /// The groups of Table 3.
    const G1: [u32; 4] = [0, 1, 2, 3];
    const G2: [u32; 4] = [4, 5, 6, 7];

    /// Whether a group of Table 3 satisfies these bounds, 1 for those that do not matter.
    fn holds(members: &[u32], bounds: [(u64, u64); 4]) -> bool {
        let individuals = example::table_1();
        let prior = Prior::of(&individuals).unwrap();
        let tuples = individuals.sub_tuples(&example::table_4()).unwrap();
        let [alpha, beta, gamma, delta] = bounds.map(|(n, d)| Ratio::new(n, d).unwrap());
        let requirements = GroupBounds {
            alpha: Some(alpha),
            beta,
            gamma: Some(gamma),
            delta: Some(delta),
        };
        let rules = Rules::new(requirements, &tuples, &individuals, &prior);
        let mut tally = rules.tally();
        tally.count(&rules, members);
        tally.fault(&rules).is_none()
    }

    /// Whether a bound is the smallest that holds.
    fn is_least(members: &[u32], place: usize, (numerator, denominator): (u64, u64)) -> bool {
        let with = |bound| {
            let mut bounds = [(1, 1); 4];
            bounds[place] = bound;
            holds(members, bounds)
        };
        with((numerator, denominator)) && !with((numerator * 1000 - 1, denominator * 1000))
    }

    #[test]
    fn definitions_1_to_4_of_table_3() {
        // Definition 1: 6 of 24 combinations hold Alice's quasi-identifiers, a quarter; Section 5.2's 1/16 is another
        // number (docs/theory/papers.md S7). Two of the four in the second group are male doctors.
        assert!(is_least(&G1, 0, (1, 4)));
        assert!(is_least(&G2, 0, (1, 2)));
        // Definition 2: 4,500 twice in four.
        assert!(is_least(&G1, 1, (1, 2)));
        assert!(is_least(&G2, 1, (1, 4)));
        // Definition 3: 1/4 · 1/4 · 2/4, and 1/4 · 2/4 · 1/4.
        assert!(is_least(&G1, 2, (1, 32)));
        assert!(is_least(&G2, 2, (1, 32)));
        // Definition 4: 4,500 has a share of 2/8 before; of 2/4 in the first group, of 0 in the second.
        assert!(is_least(&G1, 3, (1, 4)));
        assert!(is_least(&G2, 3, (1, 4)));
    }

    #[test]
    fn rooms_add_up() {
        let mut random = ChaCha8Rng::seed_from_u64(31);
        for _ in 0..500 {
            let (individuals, division, mut requirements) = example::random(&mut random, 40);
            requirements.alpha.get_or_insert(example::ratio("0.4"));
            requirements.delta.get_or_insert(example::ratio("0.1"));
            let prior = Prior::of(&individuals).unwrap();
            let tuples = individuals.sub_tuples(&division).unwrap();
            let rules = Rules::new(requirements, &tuples, &individuals, &prior);
            let all: Vec<u32> = (0..individuals.len() as u32).collect();
            let (left, right) = all.split_at(random.random_range(0..=all.len()));
            let value = random.random_range(0..prior.counts().len() as u32);
            let tuple = random.random_range(0..tuples[0].counts.len() as u32);
            let mut tally = rules.tally();
            for bound in [
                Bound::Alpha { table: 0, tuple },
                Bound::Beta { value },
                Bound::Above { value },
                Bound::Below { value },
            ] {
                let mut slack = |members: &[u32]| {
                    tally.count(&rules, members);
                    tally.slack(&rules, bound)
                };
                assert_eq!(slack(left) + slack(right), slack(&all));
            }
        }
    }

    #[test]
    fn faults_agree_with_the_definitions() {
        let mut random = ChaCha8Rng::seed_from_u64(32);
        let mut sound = 0;
        for _ in 0..4000 {
            let (individuals, division, requirements) = example::random(&mut random, 30);
            let prior = Prior::of(&individuals).unwrap();
            let tuples = individuals.sub_tuples(&division).unwrap();
            let rules = Rules::new(requirements, &tuples, &individuals, &prior);
            let mut members: Vec<u32> = (0..individuals.len() as u32).collect();
            members.retain(|_| random.random_bool(0.6));
            if members.is_empty() {
                continue;
            }
            let mut tally = rules.tally();
            tally.count(&rules, &members);
            let expected = satisfies(&individuals, &division, &prior, &requirements, &members);
            assert_eq!(tally.fault(&rules).is_none(), expected);
            sound += usize::from(expected);
            // Trying members on leaves no trace, and says what adding them would.
            let (first, rest) = members.split_at(members.len() / 2);
            if !first.is_empty() {
                let whole = tally.gamma_holds(&rules);
                tally.count(&rules, first);
                let before = tally.gamma();
                let (would, _) = tally.gamma_with(&rules, rest);
                assert_eq!(would, whole);
                assert_eq!(tally.gamma(), before);
            }
        }
        assert!(sound > 500, "{sound}");
    }
}

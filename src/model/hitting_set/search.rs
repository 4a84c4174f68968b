//! The search tree of a hitting-set decision.
//!
//! Functions are generic over the words per mask: one and two, the common widths, get code of their own, and zero
//! stands for "as many as there are".

use super::{Decision, Family};

/// Buffers of the search, kept so that a decision allocates nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    /// Un-hit individuals per depth, `stride` words each.
    pub(super) unhit: Vec<u64>,
    /// Branch values of all open depths.
    pub(super) candidates: Vec<u32>,
    /// Values whose branches were tried in vain.
    pub(super) excluded: Vec<bool>,
    /// How many un-hit individuals each frequent value hits, at the current depth.
    pub(super) residual: Vec<u32>,
    /// How many values have each residual count; all zero between uses.
    pub(super) histogram: Vec<u32>,
    /// The values picked so far.
    pub(super) picked: Vec<u32>,
    pub(super) budget: u64,
}

impl Family {
    /// Whether `picks` values hit the individuals that are un-hit at this depth.
    pub(super) fn branch<const S: usize>(&mut self, depth: usize, picks: usize) -> Decision {
        let stride = if S == 0 { self.stride } else { S };
        let at = depth * stride;
        let n = count_ones(&self.search.unhit[at..at + stride]);
        if n == 0 {
            return Decision::Found;
        }
        if picks == 0 {
            return Decision::Absent;
        }
        match self.count_residuals::<S>(at, n, picks) {
            Residuals::AllHitBy(value) => {
                self.search.picked.push(value);
                return Decision::Found;
            }
            Residuals::TooFew => return Decision::Absent,
            Residuals::Counted => {}
        }
        if self.search.budget == 0 {
            return Decision::Exhausted;
        }

        let start = self.search.candidates.len();
        self.push_candidates::<S>(at);
        let end = self.search.candidates.len();
        self.search.unhit.resize(at + 2 * stride, 0);
        let mut decision = Decision::Absent;
        for c in start..end {
            let value = self.search.candidates[c];
            let mask = &self.masks[value as usize * stride..][..stride];
            let (above, below) = self.search.unhit[at..].split_at_mut(stride);
            for ((below, above), mask) in below.iter_mut().zip(above).zip(mask) {
                *below = *above & !mask;
            }
            self.search.picked.push(value);
            decision = self.branch::<S>(depth + 1, picks - 1);
            if decision != Decision::Absent {
                break;
            }
            self.search.picked.pop();
            self.search.excluded[value as usize] = true;
        }
        for c in start..end {
            self.search.excluded[self.search.candidates[c] as usize] = false;
        }
        self.search.candidates.truncate(start);
        decision
    }

    /// Counts how many of the `n` un-hit individuals each value hits that hits two or more of all individuals.
    fn count_residuals<const S: usize>(&mut self, at: usize, n: u32, picks: usize) -> Residuals {
        let stride = if S == 0 { self.stride } else { S };
        let unhit = &self.search.unhit[at..at + stride];
        if n == 1 {
            let individual = first_one(unhit);
            return Residuals::AllHitBy(self.members[self.offsets[individual] as usize]);
        }
        let frequent = &self.order[..self.at_least.get(2).map_or(0, |count| *count as usize)];
        if picks == 1 {
            for value in frequent {
                if self.frequency[*value as usize] < n {
                    break;
                }
                let mask = &self.masks[*value as usize * stride..][..stride];
                if unhit.iter().zip(mask).all(|(u, m)| u & !m == 0) {
                    return Residuals::AllHitBy(*value);
                }
            }
            return Residuals::TooFew;
        }
        let words = (frequent.len() * stride + self.members.len() / 8) as u64;
        self.search.budget = self.search.budget.saturating_sub(words);
        let mut all = None;
        let mut most = 0;
        for value in frequent {
            let mask = &self.masks[*value as usize * stride..][..stride];
            let hits: u32 = unhit
                .iter()
                .zip(mask)
                .map(|(u, m)| (u & m).count_ones())
                .sum();
            self.search.residual[*value as usize] = hits;
            self.search.histogram[hits as usize] += 1;
            most = most.max(hits);
            if hits == n {
                all = Some(*value);
            }
        }
        let reach = reach(&mut self.search.histogram[..=most as usize], picks);
        match all {
            Some(value) => Residuals::AllHitBy(value),
            None if reach < n as usize => Residuals::TooFew,
            None => Residuals::Counted,
        }
    }

    /// Pushes the values to branch on: those of the un-hit individual that leaves the fewest.
    fn push_candidates<const S: usize>(&mut self, at: usize) {
        let stride = if S == 0 { self.stride } else { S };
        let unhit = &self.search.unhit[at..at + stride];
        let (mut fewest, mut chosen) = (usize::MAX, 0);
        'words: for (word, bits) in unhit.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let individual = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let (mut useful, mut dominated) = (0, false);
                for value in self.of(individual) {
                    let v = *value as usize;
                    dominated |= self.search.excluded[v];
                    useful += usize::from(
                        self.frequency[v] >= 2
                            && !self.search.excluded[v]
                            && self.search.residual[v] >= 2,
                    );
                }
                // A value that hits nobody else is as good as any other such value, and no better than one tried.
                let branches = if dominated { useful } else { useful.max(1) };
                if branches < fewest {
                    (fewest, chosen) = (branches, individual);
                    if branches <= 1 {
                        break 'words;
                    }
                }
            }
        }

        let own = self.offsets[chosen] as usize..self.offsets[chosen + 1] as usize;
        let residual = |value: u32| match self.frequency[value as usize] {
            0 | 1 => 1,
            _ => self.search.residual[value as usize],
        };
        let start = self.search.candidates.len();
        let mut candidates = std::mem::take(&mut self.search.candidates);
        candidates.extend(
            self.members[own.clone()]
                .iter()
                .filter(|v| !self.search.excluded[**v as usize]),
        );
        candidates[start..].sort_unstable_by_key(|v| (std::cmp::Reverse(residual(*v)), *v));
        let mask = |value: u32| &self.masks[value as usize * stride..][..stride];
        let dominates = |by: u32, value: u32| {
            let pair = mask(value).iter().zip(mask(by)).zip(unhit);
            pair.fold(0, |rest, ((v, b), u)| rest | (v & !b & u)) == 0
        };
        let mut kept = start;
        for c in start..candidates.len() {
            let value = candidates[c];
            let excluded = self.members[own.clone()]
                .iter()
                .filter(|v| self.search.excluded[**v as usize]);
            if !candidates[start..kept]
                .iter()
                .chain(excluded)
                .any(|by| dominates(*by, value))
            {
                candidates[kept] = value;
                kept += 1;
            }
        }
        candidates.truncate(kept);
        self.search.candidates = candidates;
    }
}

enum Residuals {
    /// This value hits all that is left.
    AllHitBy(u32),
    /// The best values together hit too few.
    TooFew,
    /// Undecided.
    Counted,
}

/// How many individuals the best `picks` values hit at most; empties the histogram.
fn reach(histogram: &mut [u32], picks: usize) -> usize {
    let (mut left, mut hit) = (picks, 0);
    for (hits, values) in histogram.iter_mut().enumerate().rev() {
        let used = left.min(*values as usize);
        hit += used * hits.max(1);
        left -= used;
        *values = 0;
    }
    // Values outside the histogram hit one individual each.
    hit + left
}

fn count_ones(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}

fn first_one(words: &[u64]) -> usize {
    words
        .iter()
        .position(|word| *word != 0)
        .map_or(0, |w| w * 64 + words[w].trailing_zeros() as usize)
}

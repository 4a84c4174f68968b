//! A hierarchy built from which values occur together.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::table::Fingerprints;

/// Rows of a hierarchy over values by how often individuals have them together.
///
/// Level by level, from the values up: the most frequent item that is in no group begins one; then, as long as the group
/// has fewer than `fan_out` items, it takes the free item that occurs together with its items most often, relative to how
/// often it occurs at all. If none occurs together with them, the next most frequent ones are taken. The groups are the
/// items of the next level, and an individual has a group if it has one of its items. Ties go to the smaller code.
///
/// Individuals with related conditions then share groups, and what is generalized for one of their values covers the
/// others. A group is labelled by its most frequent value and the number of the others, the root by `*`.
///
/// The rows depend on the data: they show which values are frequent and which go together.
pub fn co_occurrence<S: AsRef<str>>(
    fingerprints: &Fingerprints,
    values: &[S],
    fan_out: usize,
) -> Vec<Vec<String>> {
    let fan_out = fan_out.max(2);
    let mut rows: Vec<Vec<String>> = values.iter().map(|v| vec![v.as_ref().to_owned()]).collect();
    // The item of each value, and the values of each item, the most frequent one first.
    let mut item_of: Vec<u32> = (0..values.len() as u32).collect();
    let mut items: Vec<Vec<u32>> = (0..values.len() as u32).map(|value| vec![value]).collect();
    while items.len() > fan_out {
        let level = Level::count(fingerprints, &item_of, items.len());
        let groups = level.groups(fan_out);
        items = groups
            .iter()
            .map(|group| {
                group
                    .iter()
                    .flat_map(|item| items[*item as usize].clone())
                    .collect()
            })
            .collect();
        for (number, members) in items.iter().enumerate() {
            let first = values[members[0] as usize].as_ref();
            let label = match members.len() {
                1 => first.to_owned(),
                n => format!("{first} and {} more", n - 1),
            };
            for value in members {
                item_of[*value as usize] = number as u32;
                rows[*value as usize].push(label.clone());
            }
        }
    }
    for row in &mut rows {
        row.push("*".to_owned());
    }
    rows
}

/// How often items occur, alone and together.
struct Level {
    frequency: Vec<u64>,
    /// Other items of individuals that have an item, with how many do.
    partners: Vec<Vec<(u32, u64)>>,
}

impl Level {
    fn count(fingerprints: &Fingerprints, item_of: &[u32], items: usize) -> Self {
        let mut frequency = vec![0; items];
        let mut together: HashMap<(u32, u32), u64> = HashMap::new();
        let mut held: Vec<u32> = vec![];
        for individual in 0..fingerprints.len() as u32 {
            held.clear();
            let known = |code: &&u32| (**code as usize) < item_of.len();
            let codes = fingerprints.of(individual).iter().filter(known);
            held.extend(codes.map(|code| item_of[*code as usize]));
            held.sort_unstable();
            held.dedup();
            for (at, item) in held.iter().enumerate() {
                frequency[*item as usize] += 1;
                for other in &held[at + 1..] {
                    *together.entry((*item, *other)).or_default() += 1;
                }
            }
        }
        let mut partners = vec![vec![]; items];
        for ((a, b), count) in together {
            partners[a as usize].push((b, count));
            partners[b as usize].push((a, count));
        }
        for partners in &mut partners {
            partners.sort_unstable();
        }
        Self {
            frequency,
            partners,
        }
    }

    fn groups(&self, fan_out: usize) -> Vec<Vec<u32>> {
        let mut by_frequency: Vec<u32> = (0..self.frequency.len() as u32).collect();
        by_frequency.sort_by_key(|item| Reverse(self.frequency[*item as usize]));
        let mut free = vec![true; self.frequency.len()];
        let mut groups = vec![];
        for first in &by_frequency {
            if !free[*first as usize] {
                continue;
            }
            let mut group = vec![];
            let mut together: HashMap<u32, u64> = HashMap::new();
            let mut next = Some(*first);
            while let Some(item) = next {
                free[item as usize] = false;
                group.push(item);
                if group.len() == fan_out {
                    break;
                }
                for (partner, count) in &self.partners[item as usize] {
                    *together.entry(*partner).or_default() += count;
                }
                next = self.nearest(&together, &free).or_else(|| {
                    by_frequency
                        .iter()
                        .copied()
                        .find(|item| free[*item as usize])
                });
            }
            groups.push(group);
        }
        groups
    }

    /// The free item that is most often together with a group, relative to its own frequency.
    fn nearest(&self, together: &HashMap<u32, u64>, free: &[bool]) -> Option<u32> {
        let candidates = together.iter().filter(|(item, _)| free[**item as usize]);
        let best = candidates.max_by(|(a, in_a), (b, in_b)| {
            let of = |item: u32| u128::from(self.frequency[item as usize]);
            let shares = (u128::from(**in_a) * of(**b)).cmp(&(u128::from(**in_b) * of(**a)));
            shares.then(in_a.cmp(in_b)).then(b.cmp(a))
        });
        best.map(|(item, _)| *item)
    }
}

//! One recoding of a block: its classes, whether they are valid, what they lose.

use std::collections::HashMap;

use crate::algorithm::full_domain::{Group, Mix, by_values, loss, satisfied};
use crate::algorithm::trees::Tree;
use crate::algorithm::{Cancel, Cancelled, Classes};
use crate::model::{Model, Ratio, Tally};
use crate::table::Block;

/// A level for each column.
pub(super) type Recoding = Vec<u32>;

/// Recodes a block.
pub(super) struct Recoder<'a> {
    block: &'a Block,
    model: &'a dyn Model,
    trees: &'a [Tree],
    suppress: Option<Ratio>,
    cancel: &'a Cancel,
    tally: Box<dyn Tally>,
    /// Individuals with the same values.
    tuples: Vec<Group>,
    /// For each column and level, what every node becomes.
    labels: Vec<Vec<Vec<u32>>>,
}

/// Tuples between two looks at the cancel flag.
const BATCH: usize = 1 << 16;

impl<'a> Recoder<'a> {
    pub fn new(
        block: &'a Block,
        model: &'a dyn Model,
        trees: &'a [Tree],
        suppress: Option<Ratio>,
        cancel: &'a Cancel,
    ) -> Result<Self, Cancelled> {
        cancel.check()?;
        Ok(Self {
            block,
            model,
            trees,
            suppress,
            cancel,
            tally: model.tally(),
            tuples: by_values(trees, block.len() as u32),
            labels: trees.iter().map(labels).collect(),
        })
    }

    /// The highest level of each column.
    pub fn levels(&self) -> Vec<u32> {
        self.trees.iter().map(Tree::levels).collect()
    }

    /// Whether a class stays valid with more members.
    pub fn grows(&self) -> bool {
        self.model.closure().extension
    }

    /// Whether all classes are valid but those that may be suppressed.
    pub fn is_valid(&mut self, recoding: &Recoding) -> Result<bool, Cancelled> {
        let classes = self.groups(recoding)?;
        let all = self.block.len() as u64;
        let may_be = |out: u64| match self.suppress {
            None => out == 0,
            Some(share) => share.at_least(out, all),
        };
        let size = |class: &[u32]| -> usize {
            let tuples = class.iter().map(|t| &self.tuples[*t as usize]);
            tuples.map(|t| t.members.len()).sum()
        };
        // Small classes are seen at once, and there are many where columns are hardly generalized.
        let enough = self.model.min_individuals();
        let sizes: Vec<usize> = classes.iter().map(|c| size(c)).collect();
        let small = sizes.iter().filter(|s| **s < enough);
        let mut out = small.map(|s| *s as u64).sum();
        for (class, size) in classes
            .iter()
            .zip(sizes)
            .filter(|(_, size)| *size >= enough)
        {
            if !may_be(out) {
                return Ok(false);
            }
            self.cancel.check()?;
            if !satisfied(
                self.block,
                self.model,
                self.tally.as_mut(),
                members(&self.tuples, class),
            ) {
                out += size as u64;
            }
        }
        Ok(may_be(out) && out < all)
    }

    /// What all records lose; a suppressed one loses all its cells.
    pub fn loss(&mut self, recoding: &Recoding) -> Result<u128, Cancelled> {
        let mut lost = 0;
        for class in self.groups(recoding)? {
            self.cancel.check()?;
            let own = members(&self.tuples, &class);
            let valid = self.suppress.is_none()
                || satisfied(self.block, self.model, self.tally.as_mut(), own);
            let each = match valid {
                true => u128::from(loss(self.trees, &self.labels_of(&class, recoding))),
                false => u128::from(self.block.full()) * self.trees.len() as u128,
            };
            let records = members(&self.tuples, &class).map(|i| self.block.records(i));
            lost += each * records.map(u128::from).sum::<u128>();
        }
        Ok(lost)
    }

    /// What the recoding publishes.
    pub fn classes(&mut self, recoding: &Recoding) -> Result<Classes, Cancelled> {
        let mut all: Vec<(Vec<u32>, Vec<Option<u32>>)> = vec![];
        let mut suppressed = vec![];
        for class in self.groups(recoding)? {
            self.cancel.check()?;
            let mut own: Vec<u32> = members(&self.tuples, &class).collect();
            own.sort_unstable();
            let counted = own.iter().copied();
            if satisfied(self.block, self.model, self.tally.as_mut(), counted) {
                let labels = self.labels_of(&class, recoding);
                let given = self
                    .trees
                    .iter()
                    .zip(labels)
                    .map(|(tree, label)| tree.given(label));
                all.push((own, given.collect()));
            } else {
                suppressed.extend(own);
            }
        }
        all.sort_unstable();
        suppressed.sort_unstable();
        let (classes, nodes) = all.into_iter().unzip();
        Ok(Classes {
            classes,
            suppressed,
            nodes,
        })
    }

    fn labels_of(&self, class: &[u32], recoding: &Recoding) -> Vec<u32> {
        let first = class.first().map(|t| &self.tuples[*t as usize].labels);
        let starts = first.into_iter().flatten();
        let tables = self.labels.iter().zip(recoding);
        let tables = tables.map(|(levels, level)| &levels[*level as usize]);
        tables
            .zip(starts)
            .map(|(table, start)| table[*start as usize])
            .collect()
    }

    /// The tuples of each class, in the order of their first tuples.
    fn groups(&self, recoding: &Recoding) -> Result<Vec<Vec<u32>>, Cancelled> {
        self.cancel.check()?;
        let mut keys = vec![0u64; self.tuples.len()];
        // Keys lie below this number; they are numbered anew before it overflows.
        let mut range = 1u64;
        for (column, level) in recoding.iter().enumerate() {
            let nodes = u64::from(self.trees[column].hierarchy().len());
            if range.checked_mul(nodes).is_none() {
                range = self.renumber(&mut keys)?;
            }
            range = range.saturating_mul(nodes);
            let table = &self.labels[column][*level as usize];
            for (key, tuple) in keys.iter_mut().zip(&self.tuples) {
                *key = *key * nodes + u64::from(table[tuple.labels[column] as usize]);
            }
            self.cancel.check()?;
        }
        let classes = self.renumber(&mut keys)?;
        let mut groups = vec![vec![]; classes as usize];
        for (tuple, key) in (0u32..).zip(keys) {
            groups[key as usize].push(tuple);
        }
        Ok(groups)
    }

    /// Numbers different keys from 0 in the order in which they come; returns how many there are.
    fn renumber(&self, keys: &mut [u64]) -> Result<u64, Cancelled> {
        let mut numbers: HashMap<u64, u64, Mix> = HashMap::default();
        for batch in keys.chunks_mut(BATCH) {
            self.cancel.check()?;
            for key in batch {
                let next = numbers.len() as u64;
                *key = *numbers.entry(*key).or_insert(next);
            }
        }
        Ok(numbers.len() as u64)
    }
}

fn members<'a>(tuples: &'a [Group], class: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
    let tuples = class.iter().map(|t| &tuples[*t as usize]);
    tuples.flat_map(|tuple| tuple.members.iter().copied())
}

/// For each level, what every node becomes.
fn labels(tree: &Tree) -> Vec<Vec<u32>> {
    let mut levels = vec![(0..tree.hierarchy().len()).collect::<Vec<u32>>()];
    for level in 1..=tree.levels() {
        let up = tree.step_up(level);
        if let Some(below) = levels.last() {
            levels.push(below.iter().map(|node| up[*node as usize]).collect());
        }
    }
    levels
}

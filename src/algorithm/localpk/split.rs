//! One specialization: members to children, and back where that is not valid.

use super::borrowed::borrowed_members;
use crate::algorithm::full_domain::satisfied;
use crate::algorithm::trees::Tree;
use crate::model::{Member, Model, Tally};
use crate::table::Block;

/// A valid group: individuals and a node of each column's tree that covers them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub labels: Vec<u32>,
    /// In ascending order.
    pub members: Vec<u32>,
    /// The column by which what is left here was specialized in vain.
    pub exhausted: Option<usize>,
}

/// A group after it was specialized in one column. Every part is valid.
#[derive(Debug)]
pub(super) struct Split {
    /// At least one.
    pub children: Vec<Group>,
    /// Those who stay, if any.
    pub left: Option<Group>,
}

/// Who goes back where those who are left are no valid group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Back {
    /// As many members of children as make up a class with those who are left, the nearest ones.
    Borrow,
    /// Whole children, the smallest first.
    Children,
}

/// A child and its members.
pub(super) type Child = (u32, Vec<u32>);

/// Specializes groups of a block.
pub(super) struct Splitter<'a> {
    block: &'a Block,
    model: &'a dyn Model,
    trees: &'a [Tree],
    tally: Box<dyn Tally>,
    /// For each column and depth, the ancestor of every node at that depth.
    ancestors: Vec<Vec<Vec<u32>>>,
    /// A number for each node of a column: where its members are collected, or how many they are. 0 between calls.
    numbers: Vec<u32>,
}

impl<'a> Splitter<'a> {
    pub fn new(block: &'a Block, model: &'a dyn Model, trees: &'a [Tree]) -> Self {
        let nodes = trees.iter().map(|tree| tree.hierarchy().len()).max();
        Self {
            block,
            model,
            trees,
            tally: model.tally(),
            ancestors: trees.iter().map(ancestors).collect(),
            numbers: vec![0; nodes.unwrap_or(0) as usize],
        }
    }

    /// The first split that succeeds: by the first way in any column, then by the next.
    pub fn first_split(
        &mut self,
        group: &Group,
        columns: &[usize],
        ways: &[Back],
    ) -> Option<Split> {
        let mut tries = ways
            .iter()
            .flat_map(|way| columns.iter().map(move |c| (*c, *way)));
        tries.find_map(|(column, way)| self.split(group, column, way))
    }

    /// Specializes one column of a group one level down; `None` if no child could remain.
    fn split(&mut self, group: &Group, column: usize, back: Back) -> Option<Split> {
        let (children, mut left) = self.children(group, column);
        let (mut valid, invalid): (Vec<Child>, Vec<Child>) = children
            .into_iter()
            .partition(|(_, members)| self.is_valid(members));
        left.extend(invalid.into_iter().flat_map(|(_, members)| members));
        // An empty rest needs nobody (docs/theory/papers.md P4).
        if valid.is_empty() || (!left.is_empty() && !self.complete(&mut left, &mut valid, back)) {
            return None;
        }
        let children = valid.into_iter().map(|(node, members)| {
            let mut labels = group.labels.clone();
            labels[column] = node;
            Group {
                labels,
                members,
                exhausted: None,
            }
        });
        left.sort_unstable();
        Some(Split {
            children: children.collect(),
            left: (!left.is_empty()).then(|| Group {
                labels: group.labels.clone(),
                members: left,
                exhausted: Some(column),
            }),
        })
    }

    /// Moves members of valid children to those who are left until these are valid, too; whether a child remains.
    fn complete(&mut self, left: &mut Vec<u32>, valid: &mut Vec<Child>, back: Back) -> bool {
        if self.is_valid(left) {
            return true;
        }
        match back {
            Back::Borrow => self.join_borrowed(left, valid),
            Back::Children => self.join_children(left, valid),
        }
    }

    /// Who goes back must not depend on sensitive values: that is what a minimality attack reads (docs/theory/papers.md P5).
    fn join_borrowed(&mut self, left: &mut Vec<u32>, valid: &mut [Child]) -> bool {
        let Some(borrowed) =
            borrowed_members(self.trees, left, valid, self.model.min_individuals())
        else {
            return false;
        };
        let stay = |members: &[u32]| -> Vec<u32> {
            let stays = |m: &&u32| borrowed.binary_search(m).is_err();
            members.iter().filter(stays).copied().collect()
        };
        let remaining: Vec<Vec<u32>> = valid.iter().map(|(_, members)| stay(members)).collect();
        let all: Vec<u32> = left.iter().chain(&borrowed).copied().collect();
        let changed = |((_, before), after): (&Child, &Vec<u32>)| before.len() != after.len();
        let holds = self.is_valid(&all)
            && valid
                .iter()
                .zip(&remaining)
                .all(|pair| !changed(pair) || self.is_valid(pair.1));
        if holds {
            *left = all;
            for ((_, members), remaining) in valid.iter_mut().zip(remaining) {
                *members = remaining;
            }
        }
        holds
    }

    fn join_children(&mut self, left: &mut Vec<u32>, valid: &mut Vec<Child>) -> bool {
        let mut smallest: Vec<(usize, u32)> = valid.iter().map(|(n, m)| (m.len(), *n)).collect();
        smallest.sort_unstable();
        self.tally.clear();
        let mut satisfied = self.count(left);
        for (_, node) in smallest {
            if satisfied {
                break;
            }
            if let Some(at) = valid.iter().position(|(n, _)| *n == node) {
                let (_, members) = valid.remove(at);
                satisfied = self.count(&members);
                left.extend(members);
            }
        }
        !valid.is_empty()
    }

    /// The members of each child in the order of the tree, and those whose own values take up the whole node.
    fn children(&mut self, group: &Group, column: usize) -> (Vec<Child>, Vec<u32>) {
        let (tree, label) = (&self.trees[column], group.labels[column]);
        let below = &self.ancestors[column][tree.hierarchy().depth(label) as usize + 1];
        let (mut children, mut left): (Vec<Child>, Vec<u32>) = (vec![], vec![]);
        for member in &group.members {
            let start = tree.start(*member);
            if start == label {
                left.push(*member);
                continue;
            }
            let child = below[start as usize];
            let place = &mut self.numbers[child as usize];
            if *place == 0 {
                children.push((child, vec![]));
                *place = children.len() as u32;
            }
            children[*place as usize - 1].1.push(*member);
        }
        for (child, _) in &children {
            self.numbers[*child as usize] = 0;
        }
        children.sort_unstable_by_key(|(child, _)| *child);
        (children, left)
    }

    /// Members that could not go down in a column, because they would be fewer than a class needs.
    pub fn too_few(&mut self, group: &Group, column: usize) -> usize {
        let (tree, label) = (&self.trees[column], group.labels[column]);
        let below = &self.ancestors[column][tree.hierarchy().depth(label) as usize + 1];
        let (mut left, mut children) = (0, vec![]);
        for member in &group.members {
            let start = tree.start(*member);
            if start == label {
                left += 1;
                continue;
            }
            let child = below[start as usize];
            let members = &mut self.numbers[child as usize];
            if *members == 0 {
                children.push(child);
            }
            *members += 1;
        }
        for child in children {
            let members = std::mem::take(&mut self.numbers[child as usize]) as usize;
            if members < self.model.min_individuals() {
                left += members;
            }
        }
        left
    }

    fn is_valid(&mut self, members: &[u32]) -> bool {
        let members = members.iter().copied();
        satisfied(self.block, self.model, self.tally.as_mut(), members)
    }

    /// Counts more members; whether all counted so far are valid.
    fn count(&mut self, members: &[u32]) -> bool {
        for member in members {
            self.tally.add(Member::of(self.block, *member));
        }
        self.tally.satisfied()
    }
}

/// For each depth, the ancestor of every node at that depth; a node that is not so deep is its own.
fn ancestors(tree: &Tree) -> Vec<Vec<u32>> {
    let hierarchy = tree.hierarchy();
    let at = |depth| {
        let up = |node: u32| hierarchy.up(node, hierarchy.depth(node).saturating_sub(depth));
        (0..hierarchy.len()).map(up).collect()
    };
    (0..=hierarchy.height()).map(at).collect()
}

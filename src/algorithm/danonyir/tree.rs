//! A k-d tree of regions that finds the nearest one exactly, while regions come and go.
//!
//! Each node keeps what is common to the regions below it: hull and core, the fewest records, the smallest and the
//! largest loss, the smallest key. From these follows a lower bound of the distance to any of them; a subtree is
//! entered only if its bound, and at equal bounds its smallest key, could still win.
//!
//! Removing a region tightens the nodes above it, adding one widens them; after enough changes the tree is rebuilt.

use super::items::{Item, Slots};
use super::probe::{Extent, Probe};
use super::space::{Codes, Space};

/// Regions per leaf.
const LEAF: usize = 8;
/// Regions looked at to decide where to split a node.
const SAMPLE: usize = 128;
/// No child, no parent, no place.
const NONE: u32 = u32::MAX;

/// A collection of regions, each with a number and a key that decides ties.
#[derive(Debug)]
pub(super) struct Tree {
    words: usize,
    nodes: Vec<Node>,
    /// `2 * words` per node: hull, core.
    bounds: Vec<u64>,
    /// A word and a coordinate per node: items that are smaller there went to the first child.
    splits: Vec<Option<(u32, u64)>>,
    /// `LEAF` slots per leaf.
    slots: Slots,
    /// The leaf that each group of `LEAF` slots belongs to.
    leaf_of: Vec<u32>,
    /// Groups of slots without a leaf.
    free: Vec<u32>,
    /// The slot of each item.
    place: Vec<u32>,
    len: usize,
    /// Items when the tree was built, and changes since.
    built: usize,
    changes: usize,
    /// The hull and core of a node before it was derived again.
    before: Vec<u64>,
    /// Nodes to visit, with their bounds.
    stack: Vec<((u128, u32), u32)>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    /// The first of two children next to each other; of a leaf, its group of slots.
    child: u32,
    /// Items of a leaf; `NONE` if the node has children.
    items: u32,
    smallest_key: u32,
    /// Fewest records, and the smallest key among the items that have so few.
    records: u64,
    lightest_key: u32,
    losses: (u64, u64),
}

impl Node {
    fn leaf(parent: u32) -> Self {
        Self {
            parent,
            child: NONE,
            items: 0,
            smallest_key: NONE,
            lightest_key: NONE,
            records: u64::MAX,
            losses: (u64::MAX, 0),
        }
    }

    fn cover_item(&mut self, item: Item<'_>) {
        self.cover(&Node {
            smallest_key: item.key,
            lightest_key: item.key,
            records: item.records,
            losses: (item.loss, item.loss),
            ..*self
        });
    }

    fn cover(&mut self, other: &Node) {
        self.smallest_key = self.smallest_key.min(other.smallest_key);
        let lightest = (self.records, self.lightest_key).min((other.records, other.lightest_key));
        (self.records, self.lightest_key) = lightest;
        self.losses.0 = self.losses.0.min(other.losses.0);
        self.losses.1 = self.losses.1.max(other.losses.1);
    }

    /// What is derived from the items below.
    fn derived(&self) -> impl PartialEq {
        (
            self.smallest_key,
            self.lightest_key,
            self.records,
            self.losses,
        )
    }
}

impl Tree {
    /// A tree of the given items.
    pub(super) fn new<'a>(space: &Space, items: impl Iterator<Item = Item<'a>>) -> Self {
        let mut tree = Self {
            words: space.words(),
            nodes: vec![],
            bounds: vec![],
            splits: vec![],
            slots: Slots::default(),
            leaf_of: vec![],
            free: vec![],
            place: vec![],
            len: 0,
            built: 0,
            changes: 0,
            before: vec![],
            stack: vec![],
        };
        let mut all = Slots::default();
        for item in items {
            all.push(item);
        }
        tree.build(space, &all);
        tree
    }

    /// The item with the smallest pair of distance and key below `end` that is accepted, and its distance.
    pub(super) fn nearest(
        &mut self,
        probe: &Probe,
        codes: &impl Codes,
        end: (u128, u32),
        mut accept: impl FnMut(u32) -> bool,
    ) -> Option<(u32, u128)> {
        let mut best = end;
        let mut nearest = None;
        self.stack.clear();
        if self.len > 0 {
            self.stack.push(((0, 0), 0));
        }
        while let Some((bound, number)) = self.stack.pop() {
            if bound >= best {
                continue;
            }
            let node = self.nodes[number as usize];
            if node.items != NONE {
                let first = node.child as usize * LEAF;
                for slot in first..first + node.items as usize {
                    let item = self.slots.of(slot, self.words);
                    let distance =
                        probe.distance(item.words, item.records, item.loss, item.number, codes);
                    if (distance, item.key) < best && accept(item.number) {
                        best = (distance, item.key);
                        nearest = Some((item.number, distance));
                    }
                }
                continue;
            }
            let [a, b] =
                [node.child, node.child + 1].map(|child| (self.bound(probe, child), child));
            for child in if a <= b { [b, a] } else { [a, b] } {
                if child.0 < best {
                    self.stack.push(child);
                }
            }
        }
        nearest
    }

    /// Adds an item.
    pub(super) fn insert(&mut self, space: &Space, item: Item<'_>) {
        let mut number = 0;
        loop {
            self.cover_item(space, number, item);
            let node = self.nodes[number as usize];
            if node.items != NONE {
                break;
            }
            let right = self.splits[number as usize].is_some_and(|(word, value)| {
                space.coordinate(word as usize, item.words[word as usize]) >= value
            });
            number = node.child + u32::from(right);
        }
        self.len += 1;
        let node = self.nodes[number as usize];
        if (node.items as usize) < LEAF {
            let slot = node.child as usize * LEAF + node.items as usize;
            self.slots.set(slot, item);
            self.set_place(item.number, slot);
            self.nodes[number as usize].items += 1;
        } else {
            let first = node.child as usize * LEAF;
            let mut all = Slots::default();
            for slot in first..first + LEAF {
                all.push(self.slots.of(slot, self.words));
            }
            all.push(item);
            self.free.push(node.child);
            let mut order: Vec<u32> = (0..all.item.len() as u32).collect();
            self.build_node(space, &all, &mut order, number);
        }
        self.changed(space);
    }

    /// Removes an item, if it is there.
    pub(super) fn remove(&mut self, space: &Space, item: u32) {
        let Some(slot) = self
            .place
            .get(item as usize)
            .copied()
            .filter(|slot| *slot != NONE)
        else {
            return;
        };
        let slot = slot as usize;
        self.place[item as usize] = NONE;
        self.len -= 1;
        let mut number = self.leaf_of[slot / LEAF];
        let node = &mut self.nodes[number as usize];
        node.items -= 1;
        let last = node.child as usize * LEAF + node.items as usize;
        if slot != last {
            self.slots.copy(last, slot, self.words);
            self.set_place(self.slots.item[slot], slot);
        }
        while number != NONE && self.refresh(space, number) {
            number = self.nodes[number as usize].parent;
        }
        self.changed(space);
    }

    fn changed(&mut self, space: &Space) {
        self.changes += 1;
        if self.changes > 2 * LEAF && self.changes * 2 > self.built {
            let mut all = Slots::default();
            for node in self.nodes.iter().filter(|node| node.items != NONE) {
                let first = node.child as usize * LEAF;
                for slot in first..first + node.items as usize {
                    all.push(self.slots.of(slot, self.words));
                }
            }
            self.build(space, &all);
        }
    }

    /// A lower bound of the pairs of distance and key below a node.
    #[inline]
    fn bound(&self, probe: &Probe, number: u32) -> (u128, u32) {
        let node = &self.nodes[number as usize];
        if node.smallest_key == NONE {
            return (u128::MAX, NONE);
        }
        let words = &self.bounds[number as usize * 2 * self.words..][..2 * self.words];
        let (hull, core) = words.split_at(self.words);
        let (distance, lightest) = probe.bound(Extent {
            hull,
            core,
            records: node.records,
            losses: node.losses,
        });
        let key = if lightest {
            node.lightest_key
        } else {
            node.smallest_key
        };
        (distance, key)
    }

    fn set_place(&mut self, item: u32, slot: usize) {
        let item = item as usize;
        if self.place.len() <= item {
            self.place.resize(item + 1, NONE);
        }
        self.place[item] = slot as u32;
    }

    fn build(&mut self, space: &Space, all: &Slots) {
        self.nodes.clear();
        self.bounds.clear();
        self.splits.clear();
        self.leaf_of.clear();
        self.free.clear();
        self.slots.resize(0, self.words);
        self.len = all.item.len();
        self.built = self.len;
        self.changes = 0;
        self.push_node(NONE);
        let mut order: Vec<u32> = (0..self.len as u32).collect();
        self.build_node(space, all, &mut order, 0);
    }

    fn push_node(&mut self, parent: u32) -> u32 {
        self.nodes.push(Node::leaf(parent));
        self.splits.push(None);
        self.bounds.resize(self.nodes.len() * 2 * self.words, 0);
        self.nodes.len() as u32 - 1
    }

    /// Makes a node of the items `order` of `all`.
    fn build_node(&mut self, space: &Space, all: &Slots, order: &mut [u32], number: u32) {
        if order.len() <= LEAF {
            self.fill_leaf(all, order, number);
            self.refresh(space, number);
            return;
        }
        let split = self.choose_split(space, all, order);
        let middle = match split {
            Some((word, value)) => partition(order, |i| {
                let words = all.of(i as usize, self.words).words;
                space.coordinate(word as usize, words[word as usize]) < value
            }),
            None => {
                // All lie at the same place: those with few records are nearer.
                order.sort_unstable_by_key(|i| (all.records[*i as usize], all.key[*i as usize]));
                order.len() / 2
            }
        };
        let child = self.push_node(number);
        self.push_node(number);
        let node = &mut self.nodes[number as usize];
        node.child = child;
        node.items = NONE;
        self.splits[number as usize] = split;
        let (left, right) = order.split_at_mut(middle);
        self.build_node(space, all, left, child);
        self.build_node(space, all, right, child + 1);
        self.refresh(space, number);
    }

    fn fill_leaf(&mut self, all: &Slots, order: &[u32], number: u32) {
        let group = self.free.pop().unwrap_or_else(|| {
            self.leaf_of.push(NONE);
            self.slots.resize(self.leaf_of.len() * LEAF, self.words);
            self.leaf_of.len() as u32 - 1
        });
        self.leaf_of[group as usize] = number;
        self.nodes[number as usize].child = group;
        self.nodes[number as usize].items = order.len() as u32;
        for (i, from) in order.iter().enumerate() {
            let slot = group as usize * LEAF + i;
            let item = all.of(*from as usize, self.words);
            self.slots.set(slot, item);
            self.set_place(item.number, slot);
        }
    }

    /// A word and a coordinate that divide the items near the middle where they spread over the most loss; looks at
    /// a sample of them.
    fn choose_split(&self, space: &Space, all: &Slots, order: &[u32]) -> Option<(u32, u64)> {
        let sample = order.iter().step_by(order.len().div_ceil(SAMPLE));
        let mut sample: Vec<u32> = sample.copied().collect();
        let (mut hull, mut core) = (vec![0; self.words], vec![0; self.words]);
        space.reset(&mut hull, &mut core);
        for i in &sample {
            let item = all.of(*i as usize, self.words);
            space.cover(&mut hull, &mut core, item.words, item.words);
        }
        let mut words: Vec<usize> = (0..self.words).collect();
        words.sort_by_key(|word| std::cmp::Reverse(space.spread(&hull, *word)));
        words.into_iter().find_map(|word| {
            let at = |i: &u32| space.coordinate(word, all.words[*i as usize * self.words + word]);
            let middle = sample.len() / 2;
            let (below, median, above) = sample.select_nth_unstable_by_key(middle, at);
            let value = at(median);
            let divides = below.iter().any(|i| at(i) < value);
            let next = || above.iter().map(at).filter(|c| *c > value).min();
            (if divides { Some(value) } else { next() }).map(|value| (word as u32, value))
        })
    }

    fn clear_bounds(&mut self, space: &Space, number: u32) {
        let words = &mut self.bounds[number as usize * 2 * self.words..][..2 * self.words];
        let (hull, core) = words.split_at_mut(self.words);
        space.reset(hull, core);
    }

    fn cover_item(&mut self, space: &Space, number: u32, item: Item<'_>) {
        self.nodes[number as usize].cover_item(item);
        let words = &mut self.bounds[number as usize * 2 * self.words..][..2 * self.words];
        let (hull, core) = words.split_at_mut(self.words);
        space.cover(hull, core, item.words, item.words);
    }

    /// Derives a node again from what is below it; says whether that changed anything.
    fn refresh(&mut self, space: &Space, number: u32) -> bool {
        let n = number as usize;
        let width = 2 * self.words;
        let old = self.nodes[n];
        self.nodes[n] = Node {
            items: old.items,
            child: old.child,
            ..Node::leaf(old.parent)
        };
        self.before.clear();
        self.before
            .extend_from_slice(&self.bounds[n * width..][..width]);
        self.clear_bounds(space, number);
        if old.items != NONE {
            for slot in 0..old.items as usize {
                let slot = old.child as usize * LEAF + slot;
                let item = self.slots.of(slot, self.words);
                self.nodes[n].cover_item(item);
                let (hull, core) = self.bounds[n * width..][..width].split_at_mut(self.words);
                space.cover(hull, core, item.words, item.words);
            }
        } else {
            for child in [old.child as usize, old.child as usize + 1] {
                let below = self.nodes[child];
                self.nodes[n].cover(&below);
                // Children come after their parents.
                let (above, from) = self.bounds.split_at_mut(child * width);
                let (hull, core) = above[n * width..][..width].split_at_mut(self.words);
                let (other_hull, other_core) = from[..width].split_at(self.words);
                space.cover(hull, core, other_hull, other_core);
            }
        }
        self.nodes[n].derived() != old.derived()
            || self.bounds[n * width..][..width] != self.before[..]
    }
}

/// Moves the items for which `first` holds to the front; says how many they are.
fn partition(order: &mut [u32], first: impl Fn(u32) -> bool) -> usize {
    let mut front = 0;
    for i in 0..order.len() {
        if first(order[i]) {
            order.swap(i, front);
            front += 1;
        }
    }
    front
}

//! Individuals in a k-d tree: who is near whom, and who of those not yet in a class is nearest to a class.

use super::shape::{Area, Shape};
use crate::algorithm::{Cancel, Cancelled};

/// Individuals per leaf.
const LEAF: usize = 8;
/// Individuals looked at to decide where to cut.
const SAMPLE: usize = 64;
/// Neighbours to find for each individual.
const NEIGHBOURS: usize = 12;
/// No node, no individual.
const NONE: u32 = u32::MAX;

/// Individuals in a tree. Each node knows the words that cover all of its individuals who are still there.
#[derive(Clone)]
pub(super) struct Cloud<'a> {
    shape: &'a Shape<'a>,
    points: &'a [u64],
    width: usize,
    nodes: Vec<Node>,
    covers: Vec<u64>,
    /// Individuals leaf by leaf; of each leaf those still there first.
    order: Vec<u32>,
    /// The words of `order`, next to each other.
    words: Vec<u64>,
    place: Vec<u32>,
    leaf: Vec<u32>,
    solitude: Vec<u64>,
    left: usize,
    built: usize,
    stack: Vec<(u64, u32)>,
    buffer: Vec<u64>,
}

/// Some of the nearest of each individual, nearest first.
pub(super) struct Neighbours {
    near: Vec<u32>,
}

impl Neighbours {
    pub(super) fn of(&self, individual: u32) -> impl Iterator<Item = u32> + '_ {
        let near = &self.near[individual as usize * NEIGHBOURS..][..NEIGHBOURS];
        near.iter().copied().take_while(|other| *other != NONE)
    }
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    /// The first of two children next to each other, or `NONE`.
    child: u32,
    /// Where the part of the order begins that belongs to a leaf.
    first: u32,
    /// Individuals still there.
    left: u32,
}

impl<'a> Cloud<'a> {
    /// The first `len` individuals, whose words are given.
    pub(super) fn new(shape: &'a Shape<'a>, points: &'a [u64], len: usize) -> Self {
        let mut cloud = Self {
            shape,
            points,
            width: shape.width(),
            nodes: vec![],
            covers: vec![],
            order: (0..len as u32).collect(),
            words: vec![],
            place: vec![NONE; len],
            leaf: vec![NONE; len],
            solitude: vec![0; len],
            left: 0,
            built: 0,
            stack: vec![],
            buffer: vec![],
        };
        cloud.build();
        cloud
    }

    /// Whether the individual is still there.
    pub(super) fn holds(&self, individual: u32) -> bool {
        self.place[individual as usize] != NONE
    }

    /// Takes an individual away.
    pub(super) fn take(&mut self, individual: u32) {
        let at = self.place[individual as usize];
        if at == NONE {
            return;
        }
        let mut number = self.leaf[individual as usize];
        let node = self.nodes[number as usize];
        let last = (node.first + node.left - 1) as usize;
        let moved = self.order[last];
        self.order.swap(at as usize, last);
        self.words.copy_within(
            last * self.width..(last + 1) * self.width,
            at as usize * self.width,
        );
        self.place[moved as usize] = at;
        self.place[individual as usize] = NONE;
        self.left -= 1;
        if self.left * 2 < self.built && self.built > 4 * LEAF {
            let place = &self.place;
            self.order.retain(|i| place[*i as usize] != NONE);
            self.build();
            return;
        }
        let mut changed = true;
        while number != NONE {
            let node = &mut self.nodes[number as usize];
            node.left -= 1;
            let parent = node.parent;
            changed = changed && self.refresh(number);
            number = parent;
        }
    }

    /// How far an individual is from others: what a record loses where it is together with one of its neighbours.
    pub(super) fn solitude(&self, individual: u32) -> u64 {
        self.solitude[individual as usize]
    }

    /// The individuals that add the least loss to an area, at most `count`, and as much as `limit` says of the least.
    pub(super) fn nearest(
        &mut self,
        area: &Area,
        count: usize,
        limit: impl Fn(u64) -> u64,
        found: &mut Vec<(u64, u32)>,
    ) {
        found.clear();
        let mut end = u64::MAX;
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        if self.left > 0 {
            stack.push((0, 0));
        }
        while let Some((bound, number)) = stack.pop() {
            if bound >= end {
                continue;
            }
            let node = self.nodes[number as usize];
            if node.child != NONE {
                let children = self.children(area, node.child).into_iter();
                let children =
                    children.map(|(loss, child)| (loss.saturating_sub(area.loss), child));
                let there =
                    |child: &(u64, u32)| child.0 < end && self.nodes[child.1 as usize].left > 0;
                stack.extend(children.filter(there));
                continue;
            }
            for at in node.first as usize..(node.first + node.left) as usize {
                let added = self.joined(area, at).saturating_sub(area.loss);
                if added < end {
                    insert(found, count, (added, self.order[at]));
                    end = limit(found[0].0).saturating_add(1);
                    if found.len() == count {
                        end = end.min(found[count - 1].0);
                    }
                }
            }
        }
        let last = found.first().map_or(0, |(added, _)| limit(*added));
        found.retain(|(added, _)| *added <= last);
        self.stack = stack;
    }

    /// Finds, for all individuals, some of those nearest to them, in so many leaves at most.
    pub(super) fn neighbours(
        &mut self,
        looks: usize,
        cancel: &Cancel,
    ) -> Result<Neighbours, Cancelled> {
        let mut near = Vec::with_capacity(self.place.len() * NEIGHBOURS);
        let mut best: Vec<(u64, u32)> = Vec::with_capacity(NEIGHBOURS + 1);
        let mut alone = self.shape.nothing();
        for individual in 0..self.place.len() as u32 {
            cancel.check()?;
            self.shape.empty(&mut alone);
            let point = &self.points[individual as usize * self.width..][..self.width];
            self.shape.include(&mut alone, individual, point);
            best.clear();
            self.look_around(individual, &alone, looks, &mut best);
            near.extend(best.iter().map(|(_, other)| *other));
            near.resize((individual as usize + 1) * NEIGHBOURS, NONE);
            let solitude = best.get(NEIGHBOURS / 2).or(best.last());
            self.solitude[individual as usize] = solitude.map_or(0, |(loss, _)| *loss);
        }
        Ok(Neighbours { near })
    }

    /// Goes from the own leaf upwards: of many at the same place, those nearby in the tree are found, and not the same
    /// ones for everybody.
    fn look_around(
        &mut self,
        individual: u32,
        alone: &Area,
        mut looks: usize,
        best: &mut Vec<(u64, u32)>,
    ) {
        let mut number = self.leaf[individual as usize];
        let mut from = NONE;
        let mut stack = std::mem::take(&mut self.stack);
        while number != NONE && looks > 0 {
            let node = self.nodes[number as usize];
            let below = match node.child {
                NONE => number,
                child if child == from => child + 1,
                child => child,
            };
            stack.clear();
            stack.push((self.joined_at_least(alone, below), below));
            while let Some((bound, number)) = stack.pop() {
                if best.len() == NEIGHBOURS && bound >= best[NEIGHBOURS - 1].0 {
                    continue;
                }
                let node = self.nodes[number as usize];
                if node.child != NONE {
                    stack.extend(self.children(alone, node.child));
                    continue;
                }
                if looks == 0 {
                    break;
                }
                looks -= 1;
                for at in node.first as usize..(node.first + node.left) as usize {
                    let other = self.order[at];
                    let loss = self.joined(alone, at);
                    let worse = best.len() == NEIGHBOURS && loss >= best[NEIGHBOURS - 1].0;
                    if other != individual && !worse {
                        insert(best, NEIGHBOURS, (loss, other));
                    }
                }
            }
            from = number;
            number = node.parent;
        }
        self.stack = stack;
    }

    /// At most the loss of a record when an area is extended by anybody below a node.
    #[inline]
    fn joined_at_least(&self, area: &Area, number: u32) -> u64 {
        let cover = &self.covers[number as usize * self.width..][..self.width];
        let wide = || self.shape.wide_loss(area, None, None);
        self.shape
            .extended_at_least(area.loss, &area.words, cover, wide)
    }

    /// The loss of a record when an area is extended by an individual, given its place in the order.
    #[inline]
    fn joined(&self, area: &Area, at: usize) -> u64 {
        let point = &self.words[at * self.width..][..self.width];
        let wide = || self.shape.wide_loss(area, None, Some(self.order[at]));
        self.shape.extended(area.loss, &area.words, point, wide)
    }

    /// Two children with their bounds, the nearer last.
    fn children(&self, area: &Area, child: u32) -> [(u64, u32); 2] {
        let [a, b] = [child, child + 1].map(|child| (self.joined_at_least(area, child), child));
        if a.0 <= b.0 { [b, a] } else { [a, b] }
    }

    fn build(&mut self) {
        self.left = self.order.len();
        self.built = self.left;
        self.nodes.clear();
        self.covers.clear();
        let mut order = std::mem::take(&mut self.order);
        self.push(NONE);
        self.split(&mut order, 0, 0);
        self.order = order;
        self.words.clear();
        for (at, individual) in self.order.iter().enumerate() {
            let i = *individual as usize;
            self.words
                .extend_from_slice(&self.points[i * self.width..][..self.width]);
            self.place[i] = at as u32;
        }
        for number in (0..self.nodes.len() as u32).rev() {
            self.refresh(number);
        }
    }

    fn push(&mut self, parent: u32) -> u32 {
        self.nodes.push(Node {
            parent,
            child: NONE,
            first: 0,
            left: 0,
        });
        self.covers.resize(self.nodes.len() * self.width, 0);
        self.nodes.len() as u32 - 1
    }

    fn split(&mut self, part: &mut [u32], first: u32, number: u32) {
        let cut = if part.len() <= LEAF {
            None
        } else {
            self.cut(part)
        };
        let middle = match cut {
            _ if part.len() <= LEAF => None,
            Some((word, value)) => Some(partition(part, |i| {
                let at = self.points[i as usize * self.width + word];
                self.shape.coordinate(word, at) < value
            })),
            // All are alike as far as was seen.
            None => Some(part.len() / 2),
        };
        let node = &mut self.nodes[number as usize];
        node.left = part.len() as u32;
        let Some(middle) = middle else {
            node.first = first;
            for individual in part {
                self.leaf[*individual as usize] = number;
            }
            return;
        };
        let child = self.push(number);
        self.push(number);
        self.nodes[number as usize].child = child;
        let (a, b) = part.split_at_mut(middle);
        self.split(a, first, child);
        self.split(b, first + middle as u32, child + 1);
    }

    /// A word and a coordinate that divide the individuals where they spread over the most loss.
    fn cut(&mut self, part: &[u32]) -> Option<(usize, u64)> {
        let sample = part.iter().step_by(part.len().div_ceil(SAMPLE));
        let mut sample: Vec<u32> = sample.copied().collect();
        self.buffer.resize(self.width, 0);
        self.shape.clear(&mut self.buffer);
        for i in &sample {
            let point = &self.points[*i as usize * self.width..][..self.width];
            self.shape.unite(&mut self.buffer, point);
        }
        let mut words: Vec<(u64, usize)> = (0..self.width)
            .map(|word| (self.shape.spread(&self.buffer, word), word))
            .collect();
        words.sort_by_key(|(spread, word)| (std::cmp::Reverse(*spread), *word));
        words.into_iter().find_map(|(_, word)| {
            let at = |i: &u32| {
                let value = self.points[*i as usize * self.width + word];
                self.shape.coordinate(word, value)
            };
            let middle = sample.len() / 2;
            let (below, median, above) = sample.select_nth_unstable_by_key(middle, at);
            let value = at(median);
            let divides = below.iter().any(|i| at(i) < value);
            let next = || above.iter().map(at).filter(|c| *c > value).min();
            (if divides { Some(value) } else { next() }).map(|value| (word, value))
        })
    }

    /// Derives the words of a node again from what is below it; says whether that changed them.
    fn refresh(&mut self, number: u32) -> bool {
        let node = self.nodes[number as usize];
        let mut cover = std::mem::take(&mut self.buffer);
        cover.resize(self.width, 0);
        self.shape.clear(&mut cover);
        if node.child == NONE {
            for at in node.first as usize..(node.first + node.left) as usize {
                let point = &self.words[at * self.width..][..self.width];
                self.shape.unite(&mut cover, point);
            }
        } else {
            for child in [node.child as usize, node.child as usize + 1] {
                let below = &self.covers[child * self.width..][..self.width];
                self.shape.unite(&mut cover, below);
            }
        }
        let old = &mut self.covers[number as usize * self.width..][..self.width];
        let changed = *old != cover[..];
        old.copy_from_slice(&cover);
        self.buffer = cover;
        changed
    }
}

/// Moves the individuals for which `first` holds to the front; says how many they are.
fn partition(part: &mut [u32], first: impl Fn(u32) -> bool) -> usize {
    let mut front = 0;
    for i in 0..part.len() {
        if first(part[i]) {
            part.swap(i, front);
            front += 1;
        }
    }
    front
}

/// Inserts into a list sorted by loss that keeps the first `count`.
fn insert(list: &mut Vec<(u64, u32)>, count: usize, item: (u64, u32)) {
    let at = list.partition_point(|other| other.0 <= item.0);
    list.insert(at, item);
    list.truncate(count);
}

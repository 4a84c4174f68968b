//! Searching with an index: the same answers as looking at everything, without looking at most of it.

use super::items::Item;
use super::probe::Probe;
use super::space::{Codes, Space};
use super::tree::Tree;
use super::{Class, Reach, Search};
use crate::table::{Block, Cell, QuasiIdentifier, Region};

/// A tree of the remaining individuals and a tree of the finished classes.
pub(super) struct Index<'a> {
    space: Space,
    probe: Probe,
    individuals: ByIndividual<'a>,
    remaining: Tree,
    classes: Slab,
    finished: Tree,
    words: Vec<u64>,
}

struct ByIndividual<'a>(&'a Block);

/// Classes by number; numbers are used again.
#[derive(Default)]
struct Slab {
    classes: Vec<Option<Class>>,
    free: Vec<u32>,
}

impl<'a> Index<'a> {
    pub(super) fn new(block: &'a Block) -> Self {
        let space = Space::new(block);
        let mut words = vec![];
        let mut regions = vec![];
        for individual in 0..block.len() as u32 {
            let region = Region::of(block, individual);
            space.encode(&region, &mut words);
            regions.push((region.records(), region.loss()));
        }
        let width = space.words();
        let items = regions.iter().enumerate().map(|(i, (records, loss))| Item {
            number: i as u32,
            key: i as u32,
            records: *records,
            loss: *loss,
            words: &words[i * width..][..width],
        });
        let remaining = Tree::new(&space, items);
        Self {
            remaining,
            finished: Tree::new(&space, std::iter::empty()),
            space,
            probe: Probe::default(),
            individuals: ByIndividual(block),
            classes: Slab::default(),
            words: vec![],
        }
    }
}

impl Codes for ByIndividual<'_> {
    fn codes(&self, item: u32, column: usize) -> &[u32] {
        match &self.0.quasi_identifiers()[column] {
            QuasiIdentifier::Categorical(c) => c.of(item),
            QuasiIdentifier::Numeric(_) | QuasiIdentifier::Hierarchical(_) => &[],
        }
    }
}

impl Codes for Slab {
    fn codes(&self, item: u32, column: usize) -> &[u32] {
        match self.classes[item as usize]
            .as_ref()
            .map(|class| &class.region.cells()[column])
        {
            Some(Cell::Set(codes)) => codes,
            _ => &[],
        }
    }
}

impl Search for Index<'_> {
    fn take(&mut self, individual: u32) {
        self.remaining.remove(&self.space, individual);
    }

    fn nearest_individual(&mut self, region: &Region) -> Option<(u32, u128)> {
        self.probe.aim(&self.space, region);
        let end = (u128::MAX, u32::MAX);
        self.remaining
            .nearest(&self.probe, &self.individuals, end, |_| true)
    }

    fn nearest_class(
        &mut self,
        region: &Region,
        reach: Reach,
        accept: &mut dyn FnMut(&Class) -> bool,
    ) -> Option<usize> {
        self.probe.aim(&self.space, region);
        let classes = &self.classes;
        let accept = |id: u32| {
            classes.classes[id as usize]
                .as_ref()
                .is_some_and(&mut *accept)
        };
        let nearest = self
            .finished
            .nearest(&self.probe, classes, reach.end(), accept);
        nearest.map(|(id, _)| id as usize)
    }

    fn finish(&mut self, class: Class) {
        self.words.clear();
        self.space.encode(&class.region, &mut self.words);
        let (key, records, loss) = (class.smallest, class.region.records(), class.region.loss());
        let number = self.classes.put(class);
        let item = Item {
            number,
            key,
            records,
            loss,
            words: &self.words,
        };
        self.finished.insert(&self.space, item);
    }

    fn reopen(&mut self, class: usize) -> Option<Class> {
        self.finished.remove(&self.space, class as u32);
        self.classes.take(class)
    }

    fn into_classes(self) -> Vec<Class> {
        let mut classes: Vec<Class> = self.classes.classes.into_iter().flatten().collect();
        classes.sort_by_key(|class| class.smallest);
        classes
    }
}

impl Slab {
    fn put(&mut self, class: Class) -> u32 {
        if let Some(number) = self.free.pop() {
            self.classes[number as usize] = Some(class);
            number
        } else {
            self.classes.push(Some(class));
            self.classes.len() as u32 - 1
        }
    }

    fn take(&mut self, number: usize) -> Option<Class> {
        let class = self.classes.get_mut(number)?.take();
        if class.is_some() {
            self.free.push(number as u32);
        }
        class
    }
}

//! Searching by looking at everything: the reference for the index.

use super::{Class, Reach, Search};
use crate::table::{Block, Region};

/// The remaining individuals in order, and the finished classes.
pub(super) struct Scan<'a> {
    block: &'a Block,
    remaining: Vec<u32>,
    classes: Vec<Class>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(block: &'a Block) -> Self {
        Self {
            block,
            remaining: (0..block.len() as u32).collect(),
            classes: vec![],
        }
    }
}

impl Search for Scan<'_> {
    fn take(&mut self, individual: u32) {
        if let Ok(place) = self.remaining.binary_search(&individual) {
            self.remaining.remove(place);
        }
    }

    fn nearest_individual(&mut self, region: &Region) -> Option<(u32, u128)> {
        self.remaining
            .iter()
            .map(|individual| (region.distance_to(self.block, *individual), *individual))
            .min()
            .map(|(distance, individual)| (individual, distance))
    }

    fn nearest_class(
        &mut self,
        region: &Region,
        reach: Reach,
        accept: &mut dyn FnMut(&Class) -> bool,
    ) -> Option<usize> {
        let mut best = reach.end();
        let mut nearest = None;
        for (id, class) in self.classes.iter().enumerate() {
            let candidate = (region.distance(self.block, &class.region), class.smallest);
            if candidate < best && accept(class) {
                best = candidate;
                nearest = Some(id);
            }
        }
        nearest
    }

    fn finish(&mut self, class: Class) {
        self.classes.push(class);
    }

    fn reopen(&mut self, class: usize) -> Option<Class> {
        (class < self.classes.len()).then(|| self.classes.swap_remove(class))
    }

    fn into_classes(mut self) -> Vec<Class> {
        self.classes.sort_by_key(|class| class.smallest);
        self.classes
    }
}

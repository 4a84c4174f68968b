//! Classes without anybody left out, and without two that look alike where that matters.

use std::collections::HashMap;

use super::{Cancel, Cancelled, Classes};
use crate::model::{Member, Model, Tally};
use crate::table::{Block, Cell, QuasiIdentifier, ROOT, Region};

/// Takes the individuals that an algorithm left out into classes. Each of them is united with the nearest class, and the
/// union again, until it satisfies the model. So are classes that publish the same values and therefore are one class to
/// a reader, if together they do not satisfy the model.
///
/// All individuals of the block together must satisfy the model; if they do not, all are suppressed.
pub fn complete(
    block: &Block,
    model: &dyn Model,
    formed: Classes,
    cancel: &Cancel,
) -> Result<Classes, Cancelled> {
    let unions_hold = model.closure().union;
    if formed.suppressed.is_empty() && unions_hold {
        return Ok(formed);
    }
    let groups = formed
        .classes
        .into_iter()
        .filter_map(|c| Group::new(block, c));
    let mut work = Work {
        block,
        tally: model.tally(),
        classes: groups.collect(),
    };
    let singles = formed.suppressed.iter().map(|i| vec![*i]);
    let mut left: Vec<Group> = singles.filter_map(|c| Group::new(block, c)).collect();
    loop {
        while let Some(group) = left.pop() {
            cancel.check()?;
            if let Err(everybody) = work.grow(group, &mut left) {
                return Ok(Classes {
                    suppressed: everybody,
                    ..Classes::default()
                });
            }
        }
        left = match unions_hold {
            true => vec![],
            false => work.take_look_alikes(),
        };
        if left.is_empty() {
            let mut classes: Vec<Vec<u32>> = work.classes.into_iter().map(|c| c.members).collect();
            classes.sort_unstable_by_key(|class| class.first().copied());
            return Ok(Classes {
                classes,
                ..Classes::default()
            });
        }
    }
}

/// Individuals with what they publish together.
struct Group {
    /// Ascending.
    members: Vec<u32>,
    region: Region,
}

impl Group {
    fn new(block: &Block, mut members: Vec<u32>) -> Option<Self> {
        members.sort_unstable();
        let region = Region::covering(block, &members)?;
        Some(Self { members, region })
    }

    fn unite(&mut self, block: &Block, other: Self) {
        self.members.extend_from_slice(&other.members);
        self.members.sort_unstable();
        self.region.extend(block, &other.region);
    }

    /// What a reader sees: of a column with a hierarchy the root, also where values are missing.
    fn shown(&self, block: &Block) -> Vec<Cell> {
        let cells = self.region.cells().iter().zip(block.quasi_identifiers());
        cells
            .map(|(cell, column)| match (cell, column) {
                (Cell::Suppressed, QuasiIdentifier::Hierarchical(_)) => Cell::Node(ROOT),
                _ => cell.clone(),
            })
            .collect()
    }
}

struct Work<'a> {
    block: &'a Block,
    tally: Box<dyn Tally>,
    classes: Vec<Group>,
}

impl Work<'_> {
    fn satisfied(&mut self, members: &[u32]) -> bool {
        self.tally.clear();
        for member in members {
            self.tally.add(Member::of(self.block, *member));
        }
        self.tally.satisfied()
    }

    /// Unites a group with the nearest classes until it is a class, and then with others that are left; all individuals if
    /// it never is.
    fn grow(&mut self, mut group: Group, left: &mut Vec<Group>) -> Result<(), Vec<u32>> {
        while !self.satisfied(&group.members) {
            let distance = |class: &Group| {
                let distance = class.region.distance(self.block, &group.region);
                (distance, class.members[0])
            };
            let nearest = (0..self.classes.len()).min_by_key(|at| distance(&self.classes[*at]));
            let next = match nearest {
                Some(at) => Some(self.classes.swap_remove(at)),
                None => left.pop(),
            };
            match next {
                Some(next) => group.unite(self.block, next),
                None => return Err((0..self.block.len() as u32).collect()),
            }
        }
        self.classes.push(group);
        Ok(())
    }

    /// Removes classes that publish the same and together do not satisfy the model.
    fn take_look_alikes(&mut self) -> Vec<Group> {
        let mut alike: HashMap<Vec<Cell>, usize> = HashMap::new();
        let mut united: Vec<(usize, Group)> = vec![];
        for class in std::mem::take(&mut self.classes) {
            let next = united.len();
            let at = *alike.entry(class.shown(self.block)).or_insert(next);
            match united.get_mut(at) {
                Some((classes, group)) => {
                    *classes += 1;
                    group.unite(self.block, class);
                }
                None => united.push((1, class)),
            }
        }
        let mut failed = vec![];
        for (classes, group) in united {
            // A reader cannot tell them apart, so that uniting them loses nothing.
            if classes == 1 || self.satisfied(&group.members) {
                self.classes.push(group);
            } else {
                failed.push(group);
            }
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::algorithm::mondrian::tests::{blocks, models};
    use crate::model::{Closure, Infeasible};

    /// A model that is said not to survive unions.
    #[derive(Debug)]
    struct Fragile(Box<dyn Model>);

    impl Model for Fragile {
        fn describe(&self) -> String {
            self.0.describe()
        }

        fn closure(&self) -> Closure {
            Closure {
                union: false,
                extension: false,
            }
        }

        fn min_individuals(&self) -> usize {
            self.0.min_individuals()
        }

        fn tally(&self) -> Box<dyn Tally> {
            self.0.tally()
        }

        fn feasible(&self, m: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible> {
            self.0.feasible(m)
        }
    }

    fn holds(block: &Block, model: &dyn Model, members: &[u32]) -> bool {
        let mut tally = model.tally();
        for member in members {
            tally.add(Member::of(block, *member));
        }
        tally.satisfied()
    }

    proptest! {
        #![proptest_config(crate::repeatable::cases(300))]

        #[test]
        fn nobody_is_left_out(block in blocks(1..30), size in 1..8usize) {
            for model in models() {
                let fragile = Fragile(model);
                let model: &dyn Model = &fragile;
                let everybody: Vec<u32> = (0..block.len() as u32).collect();
                let (mut classes, mut suppressed) = (vec![], vec![]);
                for chunk in everybody.chunks(size) {
                    match holds(&block, model, chunk) {
                        true => classes.push(chunk.to_vec()),
                        false => suppressed.extend_from_slice(chunk),
                    }
                }
                let formed = Classes { classes, suppressed, ..Classes::default() };
                let done = complete(&block, model, formed, &Cancel::default()).unwrap();
                let mut seen = [done.classes.concat(), done.suppressed.clone()].concat();
                seen.sort_unstable();
                prop_assert_eq!(&seen, &everybody);
                prop_assert_eq!(done.suppressed.is_empty(), holds(&block, model, &everybody));
                // What looks alike is one class.
                let mut shown: HashMap<Vec<Cell>, Vec<u32>> = HashMap::new();
                for class in done.classes {
                    prop_assert!(holds(&block, model, &class));
                    let group = Group::new(&block, class).unwrap();
                    shown.entry(group.shown(&block)).or_default().extend(group.members);
                }
                prop_assert!(shown.values().all(|members| holds(&block, model, members)));
            }
        }
    }
}

//! Measures of what a block's classes publish: distortion ratio, discernability, average class size (Sun 2010,
//! Section 5).

use super::Classes;
use super::trees::{Tree, trees};
use crate::table::Block;

/// How far the cells of all records were generalized, in levels of their hierarchies, and how far they could have been.
///
/// Columns without a hierarchy count by the trees that the algorithms use for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Distortion {
    /// Levels by which cells were generalized: Σ hᵢⱼ.
    pub levels: u128,
    /// Levels from every cell's own value to the root, which differ where chains do (docs/theory/papers.md P9).
    pub most: u128,
}

impl Distortion {
    /// Distortion divided by that of a table in which every cell is the root; 0 if there is nothing to generalize (P9).
    pub fn ratio(&self) -> f64 {
        match self.most {
            0 => 0.0,
            most => self.levels as f64 / most as f64,
        }
    }
}

impl std::ops::Add for Distortion {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            levels: self.levels + other.levels,
            most: self.most + other.most,
        }
    }
}

/// The distortion of what classes publish. A suppressed record has lost all its levels.
pub fn distortion(block: &Block, classes: &Classes) -> Distortion {
    let trees = trees(block);
    let mut total = Distortion::default();
    for (i, class) in classes.classes.iter().enumerate() {
        let nodes = classes.nodes.get(i).map_or(&[][..], Vec::as_slice);
        for (column, tree) in trees.iter().enumerate() {
            let given = nodes.get(column).copied().flatten();
            total = total + of_class(block, class, tree, given);
        }
    }
    for individual in &classes.suppressed {
        for tree in &trees {
            let most = tree.rise(tree.start(*individual));
            let all = u128::from(most) * u128::from(block.records(*individual));
            total = total
                + Distortion {
                    levels: all,
                    most: all,
                };
        }
    }
    total
}

/// The distortion of one column of a class that publishes a given node, or else the smallest.
fn of_class(block: &Block, class: &[u32], tree: &Tree, given: Option<u32>) -> Distortion {
    let starts = || class.iter().map(|i| tree.start(*i));
    let Some(smallest) = starts().reduce(|a, b| if a == b { a } else { tree.join(a, b) }) else {
        return Distortion::default();
    };
    let published = match given.and_then(|node| tree.at_given(node, smallest)) {
        Some(node) => tree.rise(node),
        None => tree.rise(smallest),
    };
    let mut total = Distortion::default();
    for (individual, start) in class.iter().zip(starts()) {
        let records = u128::from(block.records(*individual));
        let most = tree.rise(start);
        total.levels += records * u128::from(most.saturating_sub(published));
        total.most += records * u128::from(most);
    }
    total
}

/// Discernability: the sum of the squares of class sizes, in individuals; a suppressed individual is as good as in a
/// class of everybody (Bayardo and Agrawal 2005).
pub fn discernability(classes: &Classes) -> u128 {
    let sizes = classes.classes.iter().map(|class| class.len() as u128);
    let suppressed = classes.suppressed.len() as u128;
    let all = sizes.clone().sum::<u128>() + suppressed;
    sizes.map(|size| size * size).sum::<u128>() + suppressed * all
}

/// Normalized average class size: individuals per class, divided by k; 0 without classes.
pub fn average_class_size(classes: &Classes, k: u64) -> f64 {
    let individuals: usize = classes.classes.iter().map(Vec::len).sum();
    match classes.classes.len() as u64 * k {
        0 => 0.0,
        smallest => individuals as f64 / smallest as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::trees::example;
    use super::*;
    use crate::table::{NULL_CODE, ROOT};

    fn classes(classes: &[&[u32]], suppressed: &[u32]) -> Classes {
        Classes {
            classes: classes.iter().map(|c| c.to_vec()).collect(),
            suppressed: suppressed.to_vec(),
            ..Classes::default()
        }
    }

    /// Leaf 0 is one level below the root, leaves 1 to 3 are two.
    fn block(at: &[u32], records: &[u32]) -> Block {
        let tree = example::hierarchy(&[5, 4, 4, 4, 5, u32::MAX], 60);
        let column = example::hierarchical(at, at, &tree);
        let fingerprints = (0..at.len() as u32).map(|i| [i]).collect();
        Block::new(vec![column], fingerprints, records.to_vec(), 60)
    }

    #[test]
    fn levels_are_those_of_the_value_itself() {
        // docs/theory/papers.md P9: 1 of the short chain and 2 of each other one could be lost.
        let block = block(&[0, 1, 2, 3], &[1, 1, 1, 1]);
        let ratio = |c: &[&[u32]]| {
            let d = distortion(&block, &classes(c, &[]));
            (d.levels, d.most)
        };
        assert_eq!(ratio(&[&[0], &[1], &[2], &[3]]), (0, 7));
        assert_eq!(ratio(&[&[0], &[1, 2, 3]]), (3, 7));
        assert_eq!(ratio(&[&[0, 1, 2, 3]]), (7, 7));
        assert_eq!(ratio(&[&[0, 1], &[2, 3]]), (1 + 2 + 2, 7));
        let some = distortion(&block, &classes(&[&[1, 2]], &[0, 3]));
        assert_eq!((some.levels, some.most), (2 + 3, 7));
        let chosen = Classes {
            nodes: vec![vec![Some(ROOT)], vec![None]],
            ..classes(&[&[1, 2], &[0, 3]], &[])
        };
        assert_eq!(distortion(&block, &chosen).levels, 7);
    }

    #[test]
    fn records_weigh_and_nothing_to_generalize_is_no_distortion() {
        let weighted = distortion(&block(&[1, 2], &[3, 1]), &classes(&[&[0, 1]], &[]));
        assert_eq!((weighted.levels, weighted.most), (4, 8));
        let tree = example::hierarchy(&[u32::MAX], 60);
        let column = example::hierarchical(&[0, 0], &[0, 0], &tree);
        let single = Block::new(
            vec![column],
            [[0], [1]].into_iter().collect(),
            vec![1; 2],
            60,
        );
        assert_eq!(distortion(&single, &classes(&[&[0, 1]], &[])).ratio(), 0.0);
        assert_eq!(Distortion::default().ratio(), 0.0);
    }

    #[test]
    fn missing_values_have_one_level() {
        let block = block(&[1, NULL_CODE, NULL_CODE, 0], &[1; 4]);
        let ratio = |c: &[&[u32]]| {
            let d = distortion(&block, &classes(c, &[]));
            (d.levels, d.most)
        };
        assert_eq!(ratio(&[&[0], &[1, 2], &[3]]), (0, 2 + 1 + 1 + 1));
        assert_eq!(ratio(&[&[0, 1], &[2], &[3]]), (3, 5));
        assert_eq!(ratio(&[&[0, 3], &[1, 2]]), (3, 5));
    }

    #[test]
    fn sizes() {
        let some = classes(&[&[0, 1, 2], &[3, 4]], &[5]);
        assert_eq!(discernability(&some), 9 + 4 + 6);
        assert_eq!(average_class_size(&some, 2), 1.25);
        assert_eq!(average_class_size(&Classes::default(), 2), 0.0);
    }
}

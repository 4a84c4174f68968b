//! GeneIR: bottom-up generalization by hierarchies (Tong et al. 2010, as Wang 2018, Section 6.1, describes it).
//!
//! ```text
//!   groups = individuals with the same values
//!   repeat
//!     groups that satisfy the model become classes
//!     generalize one column of all others one level up
//!   until nobody remains, or those who remain cannot satisfy the model, or nothing is left to generalize
//!   every individual that remains joins the nearest class
//! ```
//!
//! Each class publishes the labels at which it was formed, not smaller ones that would cover its members.

use crate::algorithm::full_domain::{Group, by_values, distinct, loss, satisfied, step_up};
use crate::algorithm::trees::{Tree, trees};
use crate::algorithm::{Algorithm, AlgorithmEntry, Cancel, Cancelled, Classes};
use crate::model::{Model, Tally};
use crate::table::Block;

/// GeneIR in the list of algorithms.
pub static ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "geneir",
    help: "generalizes whole columns level by level and takes out the classes that become valid (Tong et al. 2010)",
    options: &[],
    whole_table: true,
    serves: |model| match model.closure().union {
        true => Ok(()),
        false => Err("classes of different levels may publish the same values"),
    },
    build: |_| Ok(Box::new(GeneIr)),
};

/// GeneIR.
///
/// The paper takes a random column each time. Here it is the one with the most different labels among those who
/// remain, the first of them at a tie: the same table gives the same classes.
///
/// # Runtime
/// Linear in the individuals for each level of each column.
#[derive(Debug, Clone, Copy)]
pub struct GeneIr;

impl Algorithm for GeneIr {
    fn form_classes(
        &self,
        block: &Block,
        model: &dyn Model,
        cancel: &Cancel,
    ) -> Result<Classes, Cancelled> {
        let mut run = Run {
            block,
            model,
            cancel,
            trees: trees(block),
            tally: model.tally(),
            classes: vec![],
        };
        let mut residual = run.generalize()?;
        residual.sort_unstable();
        let mut suppressed = vec![];
        for individual in residual {
            cancel.check()?;
            if !run.join_nearest(individual) {
                suppressed.push(individual);
            }
        }
        Ok(run.into_classes(suppressed))
    }
}

struct Run<'a> {
    block: &'a Block,
    model: &'a dyn Model,
    cancel: &'a Cancel,
    trees: Vec<Tree>,
    tally: Box<dyn Tally>,
    classes: Vec<Group>,
}

impl Run<'_> {
    /// Forms classes level by level; returns who is in none.
    fn generalize(&mut self) -> Result<Vec<u32>, Cancelled> {
        let mut levels = vec![0; self.trees.len()];
        let mut groups = by_values(&self.trees, self.block.len() as u32);
        loop {
            groups = self.take_valid(groups)?;
            if !self.may_satisfy(&groups) {
                break;
            }
            let Some(column) = self.most_different(&groups, &levels) else {
                break;
            };
            levels[column] += 1;
            let up = self.trees[column].step_up(levels[column]);
            groups = step_up(groups, column, &up);
        }
        Ok(groups.into_iter().flat_map(|group| group.members).collect())
    }

    /// Takes out the groups that satisfy the model. A group is tested again only when it has grown.
    fn take_valid(&mut self, groups: Vec<Group>) -> Result<Vec<Group>, Cancelled> {
        let mut rest = vec![];
        for mut group in groups {
            self.cancel.check()?;
            if group.grown && self.satisfied(&group.members) {
                self.classes.push(group);
            } else {
                group.grown = false;
                rest.push(group);
            }
        }
        Ok(rest)
    }

    fn satisfied(&mut self, members: &[u32]) -> bool {
        let members = members.iter().copied();
        satisfied(self.block, self.model, self.tally.as_mut(), members)
    }

    /// False only if no class can be formed from those who remain.
    fn may_satisfy(&mut self, groups: &[Group]) -> bool {
        let remaining = groups
            .iter()
            .map(|group| group.members.len())
            .sum::<usize>();
        if remaining < self.model.min_individuals().max(1) {
            return false;
        }
        // Where more members never do harm, all of them together are the best class.
        let all = groups
            .iter()
            .flat_map(|group| group.members.iter().copied());
        !self.model.closure().extension
            || satisfied(self.block, self.model, self.tally.as_mut(), all)
    }

    /// The column to generalize next. One in which all labels are equal tells nobody apart.
    fn most_different(&self, groups: &[Group], levels: &[u32]) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        for (column, tree) in self.trees.iter().enumerate() {
            if levels[column] < tree.levels() {
                let labels = distinct(groups, column);
                if labels > best.map_or(1, |(most, _)| most) {
                    best = Some((labels, column));
                }
            }
        }
        best.map(|(_, column)| column)
    }

    /// Puts an individual into the class that loses least by it and stays valid.
    fn join_nearest(&mut self, individual: u32) -> bool {
        let own: Vec<u32> = self
            .trees
            .iter()
            .map(|tree| tree.start(individual))
            .collect();
        let mut ways: Vec<(u128, usize)> = (0..self.classes.len())
            .map(|class| (self.distance(class, individual, &own), class))
            .collect();
        let grows = self.model.closure().extension;
        if grows {
            ways = ways.into_iter().min().into_iter().collect();
        } else {
            ways.sort_unstable();
        }
        let fits = |run: &mut Self, class: usize| {
            let members = run.classes[class].members.iter().copied();
            let all = members.chain([individual]);
            grows || satisfied(run.block, run.model, run.tally.as_mut(), all)
        };
        for (_, class) in ways {
            if fits(self, class) {
                let class = &mut self.classes[class];
                class.labels = joined(&self.trees, &class.labels, &own);
                class.members.push(individual);
                return true;
            }
        }
        false
    }

    /// What all records lose when an individual joins a class (Wang 2018, Eq. 17).
    fn distance(&self, class: usize, individual: u32, own: &[u32]) -> u128 {
        let class = &self.classes[class];
        let after = loss(&self.trees, &joined(&self.trees, &class.labels, own));
        let records = class
            .members
            .iter()
            .map(|i| u128::from(self.block.records(*i)));
        let added = |before: u64| u128::from(after.saturating_sub(before));
        records.sum::<u128>() * added(loss(&self.trees, &class.labels))
            + u128::from(self.block.records(individual)) * added(loss(&self.trees, own))
    }

    fn into_classes(self, suppressed: Vec<u32>) -> Classes {
        let (mut classes, mut nodes) = (vec![], vec![]);
        for mut group in self.classes {
            group.members.sort_unstable();
            classes.push(group.members);
            let labels = self.trees.iter().zip(&group.labels);
            nodes.push(labels.map(|(tree, label)| tree.given(*label)).collect());
        }
        Classes {
            classes,
            suppressed,
            nodes,
        }
    }
}

/// The smallest labels that cover both.
fn joined(trees: &[Tree], a: &[u32], b: &[u32]) -> Vec<u32> {
    let both = trees.iter().zip(a).zip(b);
    both.map(|((tree, a), b)| tree.join(*a, *b)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::algorithm::trees::example;
    use crate::model::{self, Member, Parameters, Value};
    use crate::table::{Cell, Fingerprints, QuasiIdentifier, ROOT, Taxonomy};

    fn ir(k: u64, l: u64) -> Box<dyn Model> {
        let mut parameters = Parameters::default();
        parameters.set("k", Value::Integer(k));
        parameters.set("l", Value::Integer(l));
        (model::find("ir_kl_anonymity").unwrap().build)(&parameters).unwrap()
    }

    fn shares(alpha: (u64, u64), beta: (u64, u64)) -> Box<dyn Model> {
        let ratio = |(a, b)| Value::Ratio(model::Ratio::new(a, b).unwrap());
        let mut parameters = Parameters::default();
        parameters.set("alpha", ratio(alpha));
        parameters.set("beta", ratio(beta));
        (model::find("ir_alpha_beta_anonymity").unwrap().build)(&parameters).unwrap()
    }

    fn run(block: &Block, model: &dyn Model) -> Classes {
        GeneIr
            .form_classes(block, model, &Cancel::default())
            .unwrap()
    }

    /// Table 2 of Wang 2018 with hierarchies as Table 3 shows them, and the labels of each column.
    fn patients() -> (Block, Vec<Taxonomy>) {
        let postcodes = [
            "10070", "10073", "10076", "10077", "10085", "10086", "10087",
        ];
        let rows: [Vec<String>; 3] = [
            vec!["M;*".to_owned(), "F;*".to_owned()],
            (30..40).map(|age| format!("{age};[30, 39];*")).collect(),
            postcodes
                .iter()
                .map(|p| format!("{p};{}*;*", &p[..4]))
                .collect(),
        ];
        let taxonomies: Vec<Taxonomy> = rows
            .iter()
            .map(|rows| {
                let rows: Vec<Vec<&str>> = rows.iter().map(|r| r.split(';').collect()).collect();
                Taxonomy::from_rows(&rows).unwrap()
            })
            .collect();
        let values = [
            [0, 1, 0, 1, 1, 1, 1],
            [6, 7, 6, 3, 8, 4, 3],
            [4, 2, 5, 6, 3, 0, 1],
        ];
        let columns = values.iter().zip(&taxonomies).map(|(values, taxonomy)| {
            let parents = (0..taxonomy.tree().len()).map(|n| taxonomy.tree().parent(n));
            let parents: Vec<u32> = parents.map(|p| p.unwrap_or(u32::MAX)).collect();
            example::hierarchical(values, values, &example::hierarchy(&parents, 18))
        });
        let mut fingerprints = Fingerprints::new();
        let diseases: [&[u32]; 7] = [&[0, 1], &[2], &[0], &[0, 3], &[4], &[1, 5], &[6]];
        for disease in diseases {
            fingerprints.push(&mut disease.to_vec());
        }
        let records = diseases.iter().map(|d| d.len() as u32).collect();
        (
            Block::new(columns.collect(), fingerprints, records, 18),
            taxonomies,
        )
    }

    #[test]
    fn the_running_example_gives_table_3() {
        let (block, taxonomies) = patients();
        for model in [ir(3, 3), shares((2, 5), (3, 5))] {
            let classes = run(&block, model.as_ref());
            assert_eq!(classes.classes, [vec![1, 4, 5, 6], vec![0, 2, 3]]);
            assert!(classes.suppressed.is_empty());
            let label = |(cell, taxonomy): (&Cell, _)| match cell {
                Cell::Node(node) => Taxonomy::label(taxonomy, *node).to_owned(),
                _ => String::new(),
            };
            let published: Vec<Vec<String>> = classes
                .regions(&block)
                .map(|region| region.cells().iter().zip(&taxonomies).map(label).collect())
                .collect();
            assert_eq!(
                published,
                [["F", "[30, 39]", "1007*"], ["*", "[30, 39]", "1008*"]]
            );
        }
    }

    #[test]
    fn who_remains_joins_the_nearest_class() {
        // Leaves 0 1 | 2 3; the pairs 0 and 2 are classes at once, and one individual at 3 remains.
        let tree = example::hierarchy(&[4, 4, 5, 5, 6, 6, u32::MAX], 60);
        let at = [0, 0, 2, 2, 3];
        let column = || example::hierarchical(&at, &at, &tree);
        let block = Block::new(
            vec![column()],
            (0..5).map(|i| [i]).collect(),
            vec![1; 5],
            60,
        );
        let classes = run(&block, ir(2, 2).as_ref());
        assert_eq!(classes.classes, [vec![0, 1], vec![2, 3, 4]]);
        let node = |leaves: (u32, u32)| tree.hierarchy.covering(leaves.0, leaves.1);
        let nodes = [[Some(node((0, 0)))], [Some(node((2, 3)))]];
        assert_eq!(classes.nodes, nodes);
        // With the same value three times, no class takes a fourth and a fifth record of it.
        let fingerprints = [[0], [1], [0], [1], [0]].into_iter().collect();
        let block = Block::new(vec![column()], fingerprints, vec![1; 5], 60);
        let classes = run(&block, shares((1, 2), (1, 2)).as_ref());
        assert_eq!(classes.suppressed, [4]);
        // Nobody can be published at all.
        let classes = run(&block, ir(6, 2).as_ref());
        assert_eq!((classes.classes.len(), classes.suppressed.len()), (0, 5));
    }

    #[test]
    fn an_empty_block_no_columns_and_a_cancelled_run() {
        let empty = Block::new(vec![], Fingerprints::new(), vec![], 1);
        assert_eq!(run(&empty, ir(2, 2).as_ref()), Classes::default());
        let no_columns = Block::new(vec![], [[0], [1], [0]].into_iter().collect(), vec![1; 3], 1);
        assert_eq!(run(&no_columns, ir(2, 2).as_ref()).classes, [[0, 1, 2]]);
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(
            GeneIr
                .form_classes(&no_columns, ir(2, 2).as_ref(), &cancel)
                .is_err()
        );
    }

    /// Labels of an individual at each column's level, from the hierarchies alone.
    fn labels(trees: &[Tree], levels: &[u32], individual: u32) -> Vec<u32> {
        let climbed = trees.iter().zip(levels).map(|(tree, level)| {
            (1..=*level).fold(tree.start(individual), |n, l| tree.step_up(l)[n as usize])
        });
        climbed.collect()
    }

    /// The classes before residual individuals join, with everything computed anew at every level.
    fn plain(block: &Block, model: &dyn Model) -> (Vec<Vec<u32>>, Vec<u32>) {
        let trees = trees(block);
        let mut levels = vec![0; trees.len()];
        let mut remaining: Vec<u32> = (0..block.len() as u32).collect();
        let mut classes = vec![];
        loop {
            let mut groups: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
            for i in &remaining {
                groups
                    .entry(labels(&trees, &levels, *i))
                    .or_default()
                    .push(*i);
            }
            for group in groups.into_values() {
                if valid(block, model, &group) {
                    remaining.retain(|i| !group.contains(i));
                    classes.push(group);
                }
            }
            let labels: Vec<Vec<u32>> = remaining
                .iter()
                .map(|i| labels(&trees, &levels, *i))
                .collect();
            let different = |c: usize| {
                let mut all: Vec<u32> = labels.iter().map(|l| l[c]).collect();
                all.sort_unstable();
                all.dedup();
                all.len()
            };
            let open = (0..trees.len()).filter(|c| levels[*c] < trees[*c].levels());
            match open.map(|c| (different(c), std::cmp::Reverse(c))).max() {
                Some((2.., column)) => levels[column.0] += 1,
                _ => break,
            }
        }
        classes.sort();
        (classes, remaining)
    }

    fn valid(block: &Block, model: &dyn Model, members: &[u32]) -> bool {
        let mut tally = model.tally();
        members
            .iter()
            .for_each(|i| tally.add(Member::of(block, *i)));
        tally.satisfied()
    }

    #[test]
    fn random_blocks_agree_with_the_plain_way() {
        for seed in 0..4000 {
            let block = example::block(seed);
            for model in [ir(3, 2), ir(2, 3), shares((1, 2), (3, 5))] {
                let model = model.as_ref();
                let (expected, remaining) = plain(&block, model);
                let classes = run(&block, model);
                let mut before = classes.classes.clone();
                for class in &mut before {
                    class.retain(|i| !remaining.contains(i));
                }
                before.sort();
                assert_eq!(before, expected, "{seed}");
                assert!(
                    classes.classes.iter().all(|c| valid(&block, model, c)),
                    "{seed}"
                );
                let mut all = [classes.classes.concat(), classes.suppressed.clone()].concat();
                all.sort_unstable();
                assert!(all.iter().copied().eq(0..block.len() as u32), "{seed}");
                assert!(
                    expected.is_empty()
                        || !model.closure().extension
                        || classes.suppressed.is_empty()
                );
            }
        }
    }

    #[test]
    fn published_nodes_cover_their_classes() {
        for seed in 0..2000 {
            let block = example::block(seed);
            let classes = run(&block, ir(2, 2).as_ref());
            assert_eq!(classes.nodes.len(), classes.classes.len());
            for (tight, region) in (Classes {
                nodes: vec![],
                ..classes.clone()
            })
            .regions(&block)
            .zip(classes.regions(&block))
            {
                assert!(tight.loss() <= region.loss(), "{seed}");
                for ((tight, cell), column) in tight
                    .cells()
                    .iter()
                    .zip(region.cells())
                    .zip(block.quasi_identifiers())
                {
                    if let (Cell::Node(tight), Cell::Node(node), QuasiIdentifier::Hierarchical(h)) =
                        (tight, cell, column)
                    {
                        assert!(
                            *node == ROOT || h.tree.hierarchy.is_below(*tight, *node),
                            "{seed}"
                        );
                    }
                }
            }
        }
    }
}

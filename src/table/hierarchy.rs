//! Hierarchies: taxonomies of a column's values, from leaves to one root.

mod co_occurrence;
mod even;

pub use co_occurrence::co_occurrence;
pub use even::even;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};

/// A tree over values. Leaves are numbered in depth-first order, so that each node covers a range of leaves; nodes are
/// numbered in depth-first order too, the root first.
///
/// ```text
///            0 *                    leaf positions   0      1      2      3
///          1     4                  nodes            2      3      5      6
///         2 3   5 6
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hierarchy {
    nodes: Vec<Node>,
    /// The node of each leaf.
    leaves: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Node {
    parent: u32,
    depth: u32,
    first: u32,
    last: u32,
    /// One past the last node of the subtree.
    end: u32,
}

/// The root of every hierarchy.
pub const ROOT: u32 = 0;

/// A hierarchy could not be made; says how many labels are wrong, never which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HierarchyError {
    /// There is no row.
    Empty,
    /// Rows without any label.
    BlankRows(usize),
    /// Values with more than one row.
    RepeatedValues(usize),
    /// Labels with more than one parent, or that are a value and the label of other values.
    RepeatedLabels(usize),
    /// Rows end in so many different labels.
    Roots(usize),
    /// Labels that are their own ancestors.
    Cycle(usize),
}

/// Labels by node, as they are published.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Taxonomy {
    tree: Hierarchy,
    labels: Vec<String>,
}

impl Default for Hierarchy {
    /// A root that is the only leaf.
    fn default() -> Self {
        let root = Node {
            parent: ROOT,
            depth: 0,
            first: 0,
            last: 0,
            end: 1,
        };
        Self {
            nodes: vec![root],
            leaves: vec![ROOT],
        }
    }
}

impl Hierarchy {
    /// The tree in which each node has the given parent; the only node without one is the root. Children keep the
    /// order of their numbers.
    ///
    /// Returns the tree with the new number of every given node; `None` if the parents do not form one tree.
    pub fn from_parents(parents: &[Option<u32>]) -> Option<(Self, Vec<u32>)> {
        let mut children = vec![vec![]; parents.len()];
        let mut root = None;
        for (node, parent) in parents.iter().enumerate() {
            match parent {
                Some(parent) => children.get_mut(*parent as usize)?.push(node),
                None if root.is_none() => root = Some(node),
                None => return None,
            }
        }
        let mut tree = Self {
            nodes: Vec::with_capacity(parents.len()),
            leaves: vec![],
        };
        let mut numbers = vec![u32::MAX; parents.len()];
        // Each turn opens a node, or closes it when all its descendants are numbered.
        let mut open = vec![(root?, ROOT, false)];
        while let Some((given, parent, done)) = open.pop() {
            if done {
                let (last, end) = (tree.leaves.len() as u32 - 1, tree.nodes.len() as u32);
                let node = &mut tree.nodes[numbers[given] as usize];
                (node.last, node.end) = (last, end);
                continue;
            }
            let number = tree.nodes.len() as u32;
            numbers[given] = number;
            let depth = match number {
                ROOT => 0,
                _ => tree.nodes[parent as usize].depth + 1,
            };
            tree.nodes.push(Node {
                parent,
                depth,
                first: tree.leaves.len() as u32,
                last: 0,
                end: 0,
            });
            if children[given].is_empty() {
                tree.leaves.push(number);
            }
            open.push((given, parent, true));
            open.extend(children[given].iter().rev().map(|c| (*c, number, false)));
        }
        // Nodes on a cycle are never reached from the root.
        (tree.nodes.len() == parents.len()).then_some((tree, numbers))
    }

    /// Number of leaves.
    pub fn leaves(&self) -> u32 {
        self.leaves.len() as u32
    }

    /// Number of nodes, leaves included.
    pub fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// A hierarchy has a root at least.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node one level up; `None` for the root.
    pub fn parent(&self, node: u32) -> Option<u32> {
        (node != ROOT).then(|| self.nodes[node as usize].parent)
    }

    /// The nodes one level down, in order.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.nodes[node as usize].end;
        let mut next = node + 1;
        std::iter::from_fn(move || {
            (next < end).then(|| {
                let child = next;
                next = self.nodes[child as usize].end;
                child
            })
        })
    }

    /// Levels above a node; the root has none.
    pub fn depth(&self, node: u32) -> u32 {
        self.nodes[node as usize].depth
    }

    /// Levels from the root to the deepest leaf.
    pub fn height(&self) -> u32 {
        self.nodes.iter().map(|node| node.depth).max().unwrap_or(0)
    }

    /// Whether a node has no children.
    pub fn is_leaf(&self, node: u32) -> bool {
        self.nodes[node as usize].end == node + 1
    }

    /// The node of a leaf.
    pub fn node_of(&self, leaf: u32) -> u32 {
        self.leaves[leaf as usize]
    }

    /// First and last leaf below a node, itself if it is one.
    pub fn range(&self, node: u32) -> (u32, u32) {
        let node = &self.nodes[node as usize];
        (node.first, node.last)
    }

    /// Number of leaves below a node, itself if it is one.
    pub fn size(&self, node: u32) -> u32 {
        let (first, last) = self.range(node);
        last - first + 1
    }

    /// Whether `node` is `above` or lies below it.
    pub fn is_below(&self, node: u32, above: u32) -> bool {
        (above..self.nodes[above as usize].end).contains(&node)
    }

    /// The smallest node that covers all leaves from `first` to `last`.
    pub fn covering(&self, first: u32, last: u32) -> u32 {
        self.join(self.node_of(first), last)
    }

    /// The smallest node that covers `node` and a leaf.
    pub fn join(&self, node: u32, leaf: u32) -> u32 {
        let mut node = node;
        loop {
            let here = &self.nodes[node as usize];
            if (here.first..=here.last).contains(&leaf) || node == ROOT {
                return node;
            }
            node = here.parent;
        }
    }

    /// The ancestor that a node's own chain has `levels` above it, at most the root.
    pub fn up(&self, node: u32, levels: u32) -> u32 {
        (0..levels).fold(node, |node, _| self.nodes[node as usize].parent)
    }
}

impl Taxonomy {
    /// Reads rows of labels, each from a value to the root: `leaf, level 1, …, root`.
    ///
    /// A label that is repeated by the next level of the same row is one node: chains may have different lengths.
    /// Labels are what is published, so each belongs to one node (docs/theory/papers.md X7).
    pub fn from_rows<S: AsRef<str>>(rows: &[Vec<S>]) -> Result<Self, HierarchyError> {
        if rows.is_empty() {
            return Err(HierarchyError::Empty);
        }
        let blank = rows.iter().filter(|row| row.is_empty()).count();
        if blank > 0 {
            return Err(HierarchyError::BlankRows(blank));
        }
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut nodes: Vec<Entry> = vec![];
        for row in rows {
            let mut below: Option<usize> = None;
            for label in row.iter().map(AsRef::as_ref) {
                let number = *numbers.entry(label).or_insert(nodes.len());
                if number == nodes.len() {
                    nodes.push(Entry::new(label));
                }
                match below {
                    None => nodes[number].rows += 1,
                    Some(child) if child == number => continue,
                    Some(child) => {
                        nodes[number].inner = true;
                        nodes[child].add_parent(Some(number));
                    }
                }
                below = Some(number);
            }
            if let Some(top) = below {
                nodes[top].add_parent(None);
            }
        }
        check(&nodes)?;
        let parents: Vec<Option<u32>> = nodes
            .iter()
            .map(|node| node.parent.flatten().map(|parent| parent as u32))
            .collect();
        let Some((tree, order)) = Hierarchy::from_parents(&parents) else {
            return Err(HierarchyError::Cycle(on_cycles(&parents)));
        };
        let mut labels = vec![String::new(); nodes.len()];
        for (node, number) in nodes.iter().zip(order) {
            labels[number as usize] = node.label.to_owned();
        }
        Ok(Self { tree, labels })
    }

    /// The tree.
    pub fn tree(&self) -> &Hierarchy {
        &self.tree
    }

    /// The published label of a node.
    pub fn label(&self, node: u32) -> &str {
        &self.labels[node as usize]
    }

    /// The label of each node, and that of its parent.
    pub fn labels(&self) -> (ArrayRef, ArrayRef) {
        let nodes = 0..self.tree.len();
        let parents = nodes.map(|node| self.tree.parent(node).map(|above| self.label(above)));
        let parents: StringArray = parents.collect();
        let labels = StringArray::from_iter_values(&self.labels);
        (Arc::new(labels), Arc::new(parents))
    }

    /// The labels of a leaf's chain, from the value to the root.
    pub fn chain(&self, leaf: u32) -> impl Iterator<Item = &str> {
        let first = Some(self.tree.node_of(leaf));
        std::iter::successors(first, |node| self.tree.parent(*node)).map(|node| self.label(node))
    }
}

/// A label while rows are read.
struct Entry<'a> {
    label: &'a str,
    /// `None` until a row tells what is above; `Some(None)` for a root.
    parent: Option<Option<usize>>,
    /// Another parent was told later.
    torn: bool,
    /// Rows that start with the label.
    rows: usize,
    /// Rows have it above another label.
    inner: bool,
}

impl<'a> Entry<'a> {
    fn new(label: &'a str) -> Self {
        Self {
            label,
            parent: None,
            torn: false,
            rows: 0,
            inner: false,
        }
    }

    fn add_parent(&mut self, parent: Option<usize>) {
        match self.parent {
            None => self.parent = Some(parent),
            // A row that ends in a label and another that goes on above it disagree about the root.
            Some(known) if known != parent => self.torn = true,
            Some(_) => {}
        }
    }
}

fn check(nodes: &[Entry<'_>]) -> Result<(), HierarchyError> {
    let count = |wrong: fn(&&Entry<'_>) -> bool| nodes.iter().filter(wrong).count();
    let roots = count(|node| node.parent == Some(None));
    if roots > 1 {
        return Err(HierarchyError::Roots(roots));
    }
    let parents: Vec<Option<u32>> = nodes
        .iter()
        .map(|node| node.parent.flatten().map(|parent| parent as u32))
        .collect();
    let cycle = on_cycles(&parents);
    if cycle > 0 {
        return Err(HierarchyError::Cycle(cycle));
    }
    let repeated = count(|node| node.torn || (node.inner && node.rows > 0));
    if repeated > 0 {
        return Err(HierarchyError::RepeatedLabels(repeated));
    }
    match count(|node| node.rows > 1) {
        0 => Ok(()),
        values => Err(HierarchyError::RepeatedValues(values)),
    }
}

/// Nodes that are above themselves. Those that only lead to such nodes are not.
fn on_cycles(parents: &[Option<u32>]) -> usize {
    // Where the way up began on which a node was first met.
    let mut met: Vec<Option<usize>> = vec![None; parents.len()];
    let mut found = 0;
    for start in 0..parents.len() {
        let mut way = vec![];
        let mut at = Some(start);
        while let Some(node) = at {
            if met[node] == Some(start) {
                found += way.iter().skip_while(|other| **other != node).count();
            }
            if met[node].is_some() {
                break;
            }
            met[node] = Some(start);
            way.push(node);
            at = parents[node].map(|parent| parent as usize);
        }
    }
    found
}

impl fmt::Display for HierarchyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = |n: usize| match n {
            1 => "1 label stands".to_owned(),
            _ => format!("{n} labels stand"),
        };
        match *self {
            Self::Empty => f.write_str("it has no rows"),
            Self::BlankRows(n) => write!(f, "{n} of its rows are blank"),
            Self::RepeatedValues(1) => f.write_str("1 value has more than one row"),
            Self::RepeatedValues(n) => write!(f, "{n} values have more than one row"),
            Self::RepeatedLabels(n) => write!(
                f,
                "{} in more than one place, but a label is published for one place only",
                labels(n)
            ),
            Self::Roots(n) => write!(
                f,
                "its rows end in {n} different labels, but there must be one root"
            ),
            Self::Cycle(1) => f.write_str("1 label stands above itself"),
            Self::Cycle(n) => write!(f, "{n} labels stand above themselves"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rows: &[&str]) -> Result<Taxonomy, HierarchyError> {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(';').collect()).collect();
        Taxonomy::from_rows(&rows)
    }

    #[test]
    fn rows_become_a_tree() {
        let t = read(&[
            "14247;1424*;142**;*",
            "14206;1420*;142**;*",
            "13001;1300*;*",
            "14249;1424*;142**;*",
        ])
        .unwrap();
        let tree = t.tree();
        assert_eq!((tree.leaves(), tree.len(), tree.height()), (4, 9, 3));
        let leaves: Vec<&str> = (0..4).map(|leaf| t.label(tree.node_of(leaf))).collect();
        assert_eq!(leaves, ["14247", "14249", "14206", "13001"]);
        let cover = |a, b| t.label(tree.covering(a, b));
        assert_eq!(cover(0, 0), "14247");
        assert_eq!(
            (cover(0, 1), cover(1, 2), cover(0, 3)),
            ("1424*", "142**", "*")
        );
        assert_eq!(t.chain(3).collect::<Vec<_>>(), ["13001", "1300*", "*"]);
        let top: Vec<&str> = tree.children(ROOT).map(|n| t.label(n)).collect();
        assert_eq!(top, ["142**", "1300*"]);
        for node in 0..tree.len() {
            let (first, last) = tree.range(node);
            assert_eq!(tree.is_leaf(node), tree.children(node).count() == 0);
            assert_eq!(tree.size(node), last - first + 1);
            let inside: u32 = tree.children(node).map(|c| tree.size(c)).sum();
            assert!(tree.is_leaf(node) || inside == tree.size(node));
            for leaf in 0..tree.leaves() {
                let below = tree.is_below(tree.node_of(leaf), node);
                assert_eq!(below, (first..=last).contains(&leaf));
            }
            assert_eq!(tree.up(node, tree.depth(node)), ROOT);
            assert_eq!(tree.up(node, 99), ROOT);
        }
    }

    #[test]
    fn repeated_levels_of_a_row_are_one_node() {
        let t = read(&["a;a;letters;*", "b;b;b;*"]).unwrap();
        assert_eq!(t.chain(0).collect::<Vec<_>>(), ["a", "letters", "*"]);
        assert_eq!(t.chain(1).collect::<Vec<_>>(), ["b", "*"]);
        let one = read(&["only"]).unwrap();
        assert_eq!((one.tree().leaves(), one.tree().covering(0, 0)), (1, ROOT));
    }

    #[test]
    fn wrong_hierarchies_are_refused_with_counts() {
        use HierarchyError::*;
        let wrong = |rows: &[&str]| read(rows).unwrap_err();
        assert_eq!(wrong(&[]), Empty);
        assert_eq!(wrong(&["a;x", "b;y", "c;x"]), Roots(2));
        assert_eq!(wrong(&["a;b;a"]), Cycle(2));
        // What only leads to a cycle is not above itself; cycles add up.
        assert_eq!(wrong(&["a;b;c;b"]), Cycle(2));
        assert_eq!(wrong(&["a;b;c;b", "d;e;f;g;e", "h;a"]), Cycle(5));
        assert_eq!(wrong(&["a;p;q;*", "b;q;p;*"]), RepeatedLabels(2));
        assert_eq!(wrong(&["a;p;*", "b;p;q;*"]), RepeatedLabels(1));
        assert_eq!(wrong(&["a;*", "b;a;*"]), RepeatedLabels(1));
        assert_eq!(wrong(&["a;p;*", "a;p;*", "b;*", "b;*"]), RepeatedValues(2));
        assert_eq!(wrong(&["a;*", "b;*;all"]), Roots(2));
        let blank: Vec<Vec<&str>> = vec![vec!["a", "*"], vec![]];
        assert_eq!(Taxonomy::from_rows(&blank), Err(BlankRows(1)));
        for error in [
            Empty,
            BlankRows(1),
            RepeatedValues(1),
            RepeatedLabels(2),
            Roots(2),
            Cycle(1),
            Cycle(3),
        ] {
            assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn parents_must_form_one_tree() {
        assert_eq!(Hierarchy::from_parents(&[]), None);
        assert_eq!(Hierarchy::from_parents(&[None, None]), None);
        assert_eq!(Hierarchy::from_parents(&[Some(1), Some(0)]), None);
        assert_eq!(Hierarchy::from_parents(&[None, Some(2), Some(1)]), None);
        assert_eq!(Hierarchy::from_parents(&[Some(7)]), None);
        let (tree, numbers) = Hierarchy::from_parents(&[Some(2), Some(2), None]).unwrap();
        assert_eq!((tree.leaves(), numbers), (2, vec![1, 2, 0]));
    }
}

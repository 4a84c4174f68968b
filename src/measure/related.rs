//! What an audit asks of fingerprints: classes of sets of labels, one after the other.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

use crate::check::fingerprints::{Tree, most_alike, most_related};
use crate::check::invalid;

/// Of so many different fingerprints of a class the alike ones are looked for; of more only a bound is known.
const MOST_COMPARED: usize = 2048;

/// The labels of a sensitive column, each with a place.
#[derive(Debug)]
pub struct LabelPlaces {
    places: HashMap<String, u32>,
    tree: Tree,
    root: u32,
}

/// What the labels of a class tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Related {
    /// Most individuals who may have the same values; never too few.
    pub alike: usize,
    /// Most individuals with a published value, something below it or something above it.
    pub related: usize,
}

impl LabelPlaces {
    /// From a row per value: it, and the labels above it, level by level. Levels that repeat the one below are one label.
    pub fn try_new(levels: &[ArrayRef]) -> Result<Self, ArrowError> {
        let levels = levels.iter().map(|level| cast(level, &DataType::Utf8));
        let levels = levels.collect::<Result<Vec<_>, _>>()?;
        let rows = levels.first().map_or(0, |level| level.len());
        let mut places: HashMap<String, u32> = HashMap::new();
        let mut parents: Vec<Option<u32>> = vec![];
        for row in 0..rows {
            let mut below: Option<u32> = None;
            for level in &levels {
                let level = level.as_string::<i32>();
                if level.is_null(row) {
                    continue;
                }
                let next = parents.len() as u32;
                let place = *places.entry(level.value(row).to_owned()).or_insert(next);
                if place == next {
                    parents.push(None);
                }
                if let Some(below) = below.filter(|below| *below != place) {
                    let parent = &mut parents[below as usize];
                    if parent.is_some_and(|known| known != place) {
                        return invalid("verify: a label has two places".to_string());
                    }
                    *parent = Some(place);
                }
                below = Some(place);
            }
        }
        let mut roots = (0u32..)
            .zip(&parents)
            .filter(|(_, parent)| parent.is_none());
        let (Some((root, _)), None) = (roots.next(), roots.next()) else {
            return invalid("verify: the labels have no root, or several".to_string());
        };
        Ok(Self {
            tree: Tree::try_new(&parents)?,
            places,
            root,
        })
    }

    /// The place of a label.
    pub fn place(&self, label: &str) -> Option<u32> {
        self.places.get(label).copied()
    }

    /// The place of what may be anything: the root.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// What the sets of a class tell, one for each individual, as places.
    pub fn measure(&self, mut sets: Vec<Vec<u32>>) -> Related {
        for set in &mut sets {
            set.sort_unstable();
            set.dedup();
        }
        sets.sort_unstable();
        let runs = sets.chunk_by(|a, b| a == b);
        let counted: Vec<_> = runs.map(|run| (run[0].as_slice(), run.len())).collect();
        let related = most_related(&counted, &self.tree);
        let alike = match counted.len() {
            0..=MOST_COMPARED => most_alike(&counted, &self.tree),
            // Fingerprints that describe one set are all related to each label of each. Only those of nothing but the
            // root have no label that tells.
            _ => {
                let untold = counted.iter().find(|(set, _)| *set == [self.root]);
                related.max(untold.map_or(0, |(_, n)| *n))
            }
        };
        Related { alike, related }
    }
}

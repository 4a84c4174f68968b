//! Hierarchies that were read, remembered while somebody still asks with them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::common::Result;

use crate::measure::cells::Reader;

/// Hierarchies remembered at a time; a query rarely has more columns with labels.
const MOST: usize = 16;

/// Readers by the hierarchy that they know. A plan asks with the same one for every batch, and reads it once.
pub(super) struct Known(Mutex<Vec<(Weak<dyn Array>, Reader)>>);

impl Known {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(vec![]))
    }

    /// The reader with the labels of a hierarchy, which is the only row of `hierarchy`: a list of labels per leaf.
    pub(super) fn reader(&self, reader: Reader, hierarchy: &ArrayRef) -> Result<Reader> {
        if hierarchy.is_null(0) {
            return Ok(reader);
        }
        // Held while it is read, so that all partitions wait for one of them.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, _)| of.strong_count() > 0);
        let same = known.iter().find(|(of, with)| {
            let of_this = of.upgrade().is_some_and(|of| Arc::ptr_eq(&of, hierarchy));
            of_this && with.reads_as(&reader)
        });
        if let Some((_, reader)) = same {
            return Ok(reader.clone());
        }
        let reader = reader.with_hierarchy(hierarchy.as_list::<i32>().value(0).as_list::<i32>())?;
        if known.len() == MOST {
            known.remove(0);
        }
        known.push((Arc::downgrade(hierarchy), reader.clone()));
        Ok(reader)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ListBuilder, StringBuilder};
    use datafusion::arrow::datatypes::DataType;

    use super::*;

    fn hierarchy() -> ArrayRef {
        let mut rows = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
        rows.values().append_value(["10070", "1007*"].map(Some));
        rows.append(true);
        Arc::new(rows.finish())
    }

    #[test]
    fn a_hierarchy_is_read_once_while_it_is_asked_with() {
        let (known, rows) = (Known::new(), hierarchy());
        let labels = |reader: Reader, rows: &ArrayRef| {
            let reader = known.reader(reader, rows).unwrap();
            Arc::clone(reader.labels().unwrap())
        };
        let names = labels(Reader::new(), &rows);
        assert!(Arc::ptr_eq(&names, &labels(Reader::new(), &rows)));
        // Read as numbers its leaves are others, and another hierarchy is another one.
        let numbers = labels(Reader::new().with_numbers(), &rows);
        assert_ne!(numbers.domain(), names.domain());
        let typed = labels(Reader::new().with_type(DataType::Utf8), &hierarchy());
        assert!(!Arc::ptr_eq(&names, &typed));
        assert_eq!(known.0.lock().unwrap().len(), 3);
        // What nobody asks with any more is forgotten.
        drop(rows);
        labels(Reader::new(), &hierarchy());
        assert_eq!(known.0.lock().unwrap().len(), 1);
    }
}

//! Published records as a reader of the release sees them, grouped into equivalence classes.

use std::ops::Range;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::error::ArrowError;

use crate::check::codes::{codes, invalid};

/// The code of a sensitive NULL; values have codes from 1.
pub(crate) const NULL: u32 = 0;

/// Published records, grouped: class → individual → sensitive value → number of records.
///
/// Values are compared as values: tuples in different rows of the input that are equal are one class, with
/// NULL equal to NULL, NaN to NaN and -0.0 to 0.0. To check a release that comes in several pieces as one,
/// concatenate their columns first: a class may have members in every piece.
#[derive(Debug)]
pub struct ShownClasses {
    /// The different values of each member, with NULL first where there is one.
    values: Vec<u32>,
    /// How many records of that member show that value.
    value_records: Vec<u32>,
    /// An individual in a class; in a faultless release an individual is a member once.
    members: Vec<Member>,
    /// The members of each class.
    classes: Vec<Range<usize>>,
    /// For each class the number of its tuple, counted over different tuples in the order they were given.
    tuples: Vec<u32>,
    value_codes: usize,
    /// A record that shows each value; codes start at 1.
    examples: Vec<u32>,
    pub(super) records: usize,
    pub(super) individuals: usize,
    pub(super) records_without_pseudonym: usize,
    pub(super) individuals_in_several_classes: usize,
    pub(super) classes_without_records: usize,
}

#[derive(Debug)]
pub(crate) struct Member {
    values: Range<usize>,
    pub records: usize,
}

/// One equivalence class: individuals who show the same tuple of quasi-identifiers (Wang 2018, Def. 2.1).
#[derive(Debug, Clone, Copy)]
pub struct Class<'a> {
    published: &'a ShownClasses,
    pub(crate) members: &'a [Member],
    tuple: u32,
}

/// What Definitions 2.3 and 3.4 count in a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// |Q|
    pub records: usize,
    /// n_Q
    pub individuals: usize,
    /// m_Q, NULL not counted
    pub values: usize,
    /// max |R(p)|
    pub most_records_of_an_individual: usize,
    /// max |R(s)|, NULL counted as a value
    pub most_records_with_a_value: usize,
    /// max |P(s)|, NULL counted as a value
    pub most_individuals_with_a_value: usize,
}

/// Room to count the values of one class after the other.
#[derive(Debug)]
pub(crate) struct Tally(Vec<(usize, usize)>);

impl ShownClasses {
    /// Groups records that refer to a list of published tuples.
    ///
    /// `tuples` are the quasi-identifier columns of that list, and record `i` shows its row
    /// `tuple_of_record[i]`; without columns all records show the same, empty tuple. `individual` holds
    /// pseudonyms, `sensitive` sensitive values, one per record.
    pub fn try_new(
        tuples: &[ArrayRef],
        tuple_of_record: &[u32],
        individual: &ArrayRef,
        sensitive: &ArrayRef,
    ) -> Result<Self, ArrowError> {
        let records = tuple_of_record.len();
        for (name, column) in [("individual", individual), ("sensitive", sensitive)] {
            if column.len() != records {
                return invalid(format!(
                    "verify: the {name} column has {} records, {records} show a tuple",
                    column.len()
                ));
            }
        }
        let (tuple_class, class_codes) = codes(tuples)?;
        let class = tuple_of_record
            .iter()
            .map(|&tuple| match tuple_class.get(tuple as usize) {
                Some(&class) => Ok(class),
                None if tuples.is_empty() => Ok(0),
                None => invalid(format!(
                    "verify: a record shows a tuple beyond the {} tuples given",
                    tuple_class.len()
                )),
            })
            .collect::<Result<Vec<u32>, _>>()?;
        let class_codes = class_codes.max(usize::from(tuples.is_empty() && records > 0));
        let (person, person_codes) = codes(std::slice::from_ref(individual))?;
        let (mut value, value_codes) = codes(std::slice::from_ref(sensitive))?;
        let unknown = sensitive.logical_nulls();
        for (record, code) in value.iter_mut().enumerate() {
            let is_null = unknown.as_ref().is_some_and(|nulls| nulls.is_null(record));
            *code = if is_null { NULL } else { *code + 1 };
        }

        let mut examples = vec![0; value_codes + 1];
        for (record, &code) in (0u32..).zip(&value) {
            examples[code as usize] = record;
        }

        let nameless = individual.logical_nulls();
        let named: Vec<u32> = (0..records)
            .filter(|&r| nameless.as_ref().is_none_or(|nulls| nulls.is_valid(r)))
            .map(|record| record as u32) // `codes` refused more than u32 holds
            .collect();
        let records_without_pseudonym = records - named.len();
        let order = sorted_by(&named, &value, value_codes + 1);
        let order = sorted_by(&order, &person, person_codes);
        let order = sorted_by(&order, &class, class_codes);

        let mut published = Self {
            values: Vec::with_capacity(order.len()),
            value_records: Vec::with_capacity(order.len()),
            members: Vec::new(),
            classes: Vec::new(),
            tuples: Vec::new(),
            value_codes: value_codes + 1,
            examples,
            records,
            individuals: 0,
            records_without_pseudonym,
            individuals_in_several_classes: 0,
            classes_without_records: 0,
        };
        let mut memberships = vec![0u32; person_codes];
        let mut previous = None;
        for &record in &order {
            let record = record as usize;
            let key = (class[record], person[record], value[record]);
            published.push(key, previous);
            if previous.is_none_or(|(class, person, _)| (class, person) != (key.0, key.1)) {
                memberships[key.1 as usize] += 1;
            }
            previous = Some(key);
        }
        published.individuals = memberships.iter().filter(|&&n| n > 0).count();
        published.individuals_in_several_classes = memberships.iter().filter(|&&n| n > 1).count();
        published.classes_without_records = class_codes - published.classes.len();
        Ok(published)
    }

    /// Groups a plain table: quasi-identifier columns with one row per record.
    pub fn from_columns(
        qi: &[ArrayRef],
        individual: &ArrayRef,
        sensitive: &ArrayRef,
    ) -> Result<Self, ArrowError> {
        let Ok(records) = u32::try_from(individual.len()) else {
            return invalid("verify: more records than 32 bits count".to_string());
        };
        if let Some(column) = qi.iter().find(|c| c.len() != individual.len()) {
            return invalid(format!(
                "verify: a quasi-identifier column has {} records, the individual column {records}",
                column.len()
            ));
        }
        let tuple_of_record: Vec<u32> = (0..records).collect();
        Self::try_new(qi, &tuple_of_record, individual, sensitive)
    }

    /// The equivalence classes, each with at least one individual.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = Class<'_>> {
        self.classes
            .iter()
            .zip(&self.tuples)
            .map(|(members, &tuple)| Class {
                published: self,
                members: &self.members[members.clone()],
                tuple,
            })
    }

    /// A record that shows each sensitive value: of the value with code `c`, record `examples()[c]`. Code 0 stands
    /// for NULL and has a meaningless entry where no value is missing.
    pub fn examples(&self) -> &[u32] {
        &self.examples
    }

    /// Individuals who have records, but in all of them the sensitive value is NULL.
    pub(super) fn individuals_without_value(&self) -> usize {
        let without = |m: &&Member| self.values[m.values.clone()] == [NULL];
        self.members.iter().filter(without).count()
    }

    pub(crate) fn tally(&self) -> Tally {
        Tally(vec![(0, 0); self.value_codes])
    }

    /// Adds the next record in the order of class, individual, value.
    fn push(&mut self, key: (u32, u32, u32), previous: Option<(u32, u32, u32)>) {
        let (same_class, same_person, same_value) = match previous {
            Some((class, person, value)) => (class == key.0, person == key.1, value == key.2),
            None => (false, false, false),
        };
        if !same_class {
            self.classes.push(self.members.len()..self.members.len());
            self.tuples.push(key.0);
        }
        if !(same_class && same_person) {
            self.members.push(Member {
                values: self.values.len()..self.values.len(),
                records: 0,
            });
        }
        if !(same_class && same_person && same_value) {
            self.values.push(key.2);
            self.value_records.push(0);
        }
        if let Some(class) = self.classes.last_mut() {
            class.end = self.members.len();
        }
        if let Some(member) = self.members.last_mut() {
            member.records += 1;
            member.values.end = self.values.len();
        }
        if let Some(records) = self.value_records.last_mut() {
            *records += 1;
        }
    }
}

impl<'a> Class<'a> {
    /// n_Q, the number of different individuals.
    pub fn individuals(&self) -> usize {
        self.members.len()
    }

    /// |Q|, the number of records.
    pub fn records(&self) -> usize {
        self.members.iter().map(|m| m.records).sum()
    }

    /// The set of sensitive values S(p) of every individual whose values are all known, as codes that mean
    /// nothing outside this [`ShownClasses`]. An individual with a NULL is left out: the record without a value
    /// may represent it in a reasoning set, and adds no value there.
    pub fn fingerprints(&self) -> Vec<&'a [u32]> {
        let values = self
            .members
            .iter()
            .map(|m| &self.published.values[m.values.clone()]);
        values.filter(|v| v.first() != Some(&NULL)).collect()
    }

    /// The number of the tuple that the class shows, counted over different tuples in the order they were given.
    pub fn tuple(&self) -> usize {
        self.tuple as usize
    }

    /// The set of sensitive values of every individual, as codes that mean nothing outside this [`ShownClasses`], and whether
    /// there is a NULL beside them.
    pub fn value_sets(&self) -> Vec<(&'a [u32], bool)> {
        let sets = self.members.iter().map(|m| self.values_of(m).0);
        sets.map(|set| match set.split_first() {
            Some((&NULL, known)) => (known, true),
            _ => (set, false),
        })
        .collect()
    }

    /// The same with NULLs, whose code is 0.
    pub fn all_value_sets(&self) -> Vec<&'a [u32]> {
        let sets = self.members.iter().map(|m| self.values_of(m).0);
        sets.collect()
    }

    /// The different values of a member, NULL first, and how many of its records show each.
    pub(crate) fn values_of(&self, member: &Member) -> (&'a [u32], &'a [u32]) {
        let range = member.values.clone();
        (
            &self.published.values[range.clone()],
            &self.published.value_records[range],
        )
    }

    pub(crate) fn counts(&self, tally: &mut Tally) -> Counts {
        let mut counts = Counts {
            individuals: self.members.len(),
            ..Counts::default()
        };
        for member in self.members {
            counts.records += member.records;
            counts.most_records_of_an_individual =
                counts.most_records_of_an_individual.max(member.records);
            for at in member.values.clone() {
                let value = self.published.values[at];
                let (individuals, records) = &mut tally.0[value as usize];
                counts.values += usize::from(*individuals == 0 && value != NULL);
                *individuals += 1;
                *records += self.published.value_records[at] as usize;
                counts.most_individuals_with_a_value =
                    counts.most_individuals_with_a_value.max(*individuals);
                counts.most_records_with_a_value = counts.most_records_with_a_value.max(*records);
            }
        }
        for member in self.members {
            for &value in &self.published.values[member.values.clone()] {
                tally.0[value as usize] = (0, 0);
            }
        }
        counts
    }
}

/// `order` stably sorted by `key`, which is below `keys`.
fn sorted_by(order: &[u32], key: &[u32], keys: usize) -> Vec<u32> {
    let mut starts = vec![0usize; keys + 1];
    for &record in order {
        starts[key[record as usize] as usize + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut sorted = vec![0; order.len()];
    for &record in order {
        let start = &mut starts[key[record as usize] as usize];
        sorted[*start] = record;
        *start += 1;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        AsArray, Float64Array, Int32Array, ListArray, NullArray, StringArray, StringViewArray,
        StructArray,
    };
    use datafusion::arrow::datatypes::{DataType, Field, Fields, Float64Type, Int32Type};

    use super::*;

    #[test]
    fn equal_tuples_in_different_rows_are_one_class() {
        let tuples = [
            text(&["a", "b", "a", "b"]),
            Arc::new(list(&[&[1, 2], &[3], &[1, 2], &[4]])) as ArrayRef,
        ];
        let published =
            ShownClasses::try_new(&tuples, &[0, 2, 1, 3], &people(4), &people(4)).unwrap();
        assert_eq!(sizes(&published), [1, 1, 2]);
        assert_eq!(published.classes_without_records, 0);
    }

    #[test]
    fn floats_are_compared_as_numbers_at_any_depth() {
        let other_nan = f64::from_bits(f64::NAN.to_bits() ^ (1 << 63) ^ 1);
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(0.0),
            Some(-0.0),
            Some(f64::NAN),
            Some(other_nan),
            None,
            None,
        ]));
        let fields: Fields = vec![Field::new("lo", DataType::Float64, true)].into();
        let nested: ArrayRef =
            Arc::new(StructArray::try_new(fields, vec![floats.clone()], None).unwrap());
        let lists = (0..6).map(|row| {
            let float = floats.as_primitive::<Float64Type>();
            Some(vec![
                Some(1.5),
                float.is_valid(row).then(|| float.value(row)),
            ])
        });
        let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(lists);
        let lists: ArrayRef = Arc::new(lists);
        for column in [
            floats.clone(),
            nested.clone(),
            nested.slice(1, 5),
            lists.clone(),
            lists.slice(1, 5),
        ] {
            let expected = if column.len() == 5 {
                [1, 2, 2]
            } else {
                [2, 2, 2]
            };
            let who = people(column.len());
            let published = ShownClasses::from_columns(&[column], &who, &who).unwrap();
            assert_eq!(sizes(&published), expected);
        }
        // As sensitive values, too: one individual, three of them and NULL.
        let one: ArrayRef = Arc::new(Int32Array::from(vec![7; 6]));
        let published = ShownClasses::from_columns(&[], &one, &floats).unwrap();
        assert_eq!(published.values, [NULL, 1, 2]);
        assert_eq!(published.value_records, [2, 2, 2]);
    }

    #[test]
    fn a_record_shown_twice_is_two_records_and_one_value() {
        let who: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 1, 1]));
        let published =
            ShownClasses::from_columns(&[], &who, &text(&["x", "x", "x", "y"])).unwrap();
        let class = published.classes().next().unwrap();
        let counts = Counts {
            records: 4,
            individuals: 2,
            values: 2,
            most_records_of_an_individual: 3,
            most_records_with_a_value: 3,
            most_individuals_with_a_value: 2,
        };
        let mut tally = published.tally();
        assert_eq!(class.counts(&mut tally), counts);
        assert_eq!(class.counts(&mut tally), counts, "the tally is left clean");
        assert_eq!(class.fingerprints(), [&[1, 2][..], &[1]]);
    }

    #[test]
    fn an_individual_with_a_null_has_no_fingerprint() {
        let who: ArrayRef = Arc::new(Int32Array::from(vec![1, 1, 2, 3]));
        let what: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("y"), None]));
        let published = ShownClasses::from_columns(&[], &who, &what).unwrap();
        let class = published.classes().next().unwrap();
        assert_eq!(class.fingerprints().len(), 1);
        let counts = class.counts(&mut published.tally());
        assert_eq!((counts.individuals, counts.values), (3, 2));
        assert_eq!(counts.most_individuals_with_a_value, 2, "NULL");
        assert_eq!(published.individuals_without_value(), 1);
    }

    #[test]
    fn faults_are_counted() {
        let who: ArrayRef = Arc::new(StringViewArray::from(vec![
            Some("p"),
            Some("p"),
            Some("q"),
            None,
        ]));
        let tuples = [text(&["a", "b", "c"])];
        let published =
            ShownClasses::try_new(&tuples, &[0, 1, 1, 0], &who, &text(&["x"; 4])).unwrap();
        assert_eq!(published.records_without_pseudonym, 1);
        assert_eq!(published.individuals, 2);
        assert_eq!(published.individuals_in_several_classes, 1);
        assert_eq!(published.classes_without_records, 1);
        assert_eq!(sizes(&published), [1, 2]);
    }

    #[test]
    fn input_that_does_not_fit_is_refused() {
        let (three, two) = (people(3), people(2));
        let one_tuple = [text(&["a"])];
        assert!(ShownClasses::try_new(&one_tuple, &[0, 0, 0], &three, &two).is_err());
        assert!(ShownClasses::try_new(&one_tuple, &[0, 0, 0], &two, &three).is_err());
        assert!(ShownClasses::try_new(&one_tuple, &[0, 1, 0], &three, &three).is_err());
        assert!(ShownClasses::from_columns(&one_tuple, &three, &three).is_err());
        let uneven = [text(&["a"]), text(&["a", "b"])];
        assert!(ShownClasses::try_new(&uneven, &[0, 0, 0], &three, &three).is_err());
    }

    #[test]
    fn nothing_and_nulls_only() {
        let published = ShownClasses::from_columns(&[], &people(0), &people(0)).unwrap();
        assert_eq!(published.classes().len(), 0);
        let nulls: ArrayRef = Arc::new(NullArray::new(2));
        let published =
            ShownClasses::from_columns(std::slice::from_ref(&nulls), &nulls, &nulls).unwrap();
        assert_eq!(published.records_without_pseudonym, 2);
        let published =
            ShownClasses::from_columns(std::slice::from_ref(&nulls), &people(2), &nulls).unwrap();
        assert_eq!(sizes(&published), [2]);
        assert_eq!(published.individuals_without_value(), 2);
    }

    fn people(records: usize) -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(0..records as i32))
    }

    fn text(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn list(rows: &[&[i32]]) -> ListArray {
        let rows = rows.iter().map(|row| Some(row.iter().map(|&v| Some(v))));
        ListArray::from_iter_primitive::<Int32Type, _, _>(rows)
    }

    /// Individuals per class, in ascending order.
    fn sizes(published: &ShownClasses) -> Vec<usize> {
        let mut sizes: Vec<_> = published.classes().map(|c| c.individuals()).collect();
        sizes.sort_unstable();
        sizes
    }
}

//! From local groups and buckets to published columns.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, StringArray, StringBuilder, UInt32Array, UInt64Array, new_null_array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

use crate::engine::threads::Threads;
use crate::table::coding::{
    Class, EncodedBlock, IndividualArrays, Keys, Kind, Ladder, Numbers, generalize, hex, places,
};
use crate::table::{NULL_CODE, QuasiIdentifier, ROOT};

/// Stands for a cell that shows nothing, in text.
const NOTHING: &str = "*";

/// What a group publishes in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupCell {
    /// One generalized value for all members.
    Generalized,
    /// Nothing: the values are in buckets.
    Secret,
    /// Nothing: the values are in no bucket either.
    Blank,
}

/// A local group to publish.
#[derive(Debug)]
pub struct LocalGroup {
    /// Its published id.
    pub id: u64,
    /// Its individuals.
    pub members: Vec<u32>,
    /// Per quasi-identifier.
    pub cells: Vec<GroupCell>,
}

/// The published groups, one row per individual.
#[derive(Debug)]
pub struct GroupRows {
    /// The individual of each row.
    pub who: Vec<u32>,
    /// Its pseudonym.
    pub individual: ArrayRef,
    /// The id of its group.
    pub group: ArrayRef,
    /// The place of its group in the columns of `qi`.
    pub group_at: UInt32Array,
    /// The generalized quasi-identifiers, one row per group.
    pub qi: Vec<ArrayRef>,
}

/// How many groups are sorted at a time.
const PART: usize = 1024;

/// A column to publish.
enum TextColumn {
    Pseudonyms,
    Qi(usize, Kind),
}

/// Publishes groups. They, and the individuals in them, come in the order of their pseudonyms, which are random.
pub fn publish_groups(
    individuals: &IndividualArrays,
    encoded: &EncodedBlock,
    mut groups: Vec<LocalGroup>,
    kinds: &[Kind],
    text: bool,
    threads: &Threads,
) -> Result<GroupRows, ArrowError> {
    let pseudonym = |i: u32| individuals.pseudonyms.value(i as usize);
    let beginnings: Vec<u64> = individuals.pseudonyms.iter().map(beginning).collect();
    let compare = |a: u32, b: u32| {
        let beginnings = beginnings[a as usize].cmp(&beginnings[b as usize]);
        beginnings.then_with(|| pseudonym(a).cmp(pseudonym(b)))
    };
    threads.each(groups.chunks_mut(PART).collect(), |groups| {
        for group in groups {
            group.members.sort_unstable_by(|a, b| compare(*a, *b));
        }
    });
    groups.retain(|group| !group.members.is_empty());
    groups.sort_unstable_by(|a, b| compare(a.members[0], b.members[0]));
    let people = groups.iter().map(|group| group.members.len()).sum();
    let mut who = Vec::with_capacity(people);
    let (mut group_at, mut ids) = (Vec::with_capacity(people), Vec::with_capacity(people));
    for (at, group) in groups.iter().enumerate() {
        who.extend_from_slice(&group.members);
        group_at.resize(who.len(), at as u32);
        ids.resize(who.len(), group.id);
    }
    let mut columns = vec![TextColumn::Pseudonyms];
    let qi = kinds.iter().copied().enumerate();
    columns.extend(qi.map(|(column, kind)| TextColumn::Qi(column, kind)));
    let columns = threads.each(columns, |column| match column {
        TextColumn::Pseudonyms => {
            let width = 2 * individuals.pseudonyms.value_length() as usize;
            let mut names = StringBuilder::with_capacity(people, people * width);
            let mut name = vec![];
            for i in &who {
                names.append_value(hex(pseudonym(*i), &mut name));
            }
            Ok(Arc::new(names.finish()) as ArrayRef)
        }
        TextColumn::Qi(column, kind) => {
            column_of_groups(individuals, encoded, &groups, column, kind, text)
        }
    });
    let mut columns = columns.into_iter().collect::<Result<Vec<_>, _>>()?;
    let qi = columns.split_off(1);
    Ok(GroupRows {
        who,
        individual: columns.remove(0),
        group: Arc::new(UInt64Array::from(ids)),
        group_at: group_at.into(),
        qi,
    })
}

/// The first bytes of a pseudonym as a number of the same order.
fn beginning(pseudonym: Option<&[u8]>) -> u64 {
    let bytes = pseudonym.and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// One column of generalized values, one row per group. Secret values are not looked at.
fn column_of_groups(
    individuals: &IndividualArrays,
    encoded: &EncodedBlock,
    groups: &[LocalGroup],
    column: usize,
    kind: Kind,
    text: bool,
) -> Result<ArrayRef, ArrowError> {
    let shows = |group: &&LocalGroup| group.cells[column] == GroupCell::Generalized;
    let shown = groups.iter().filter(shows);
    let classes: Vec<Class<'_>> = shown.map(|g| Class::of(&g.members)).collect();
    let values = generalize(individuals, encoded, &classes, column, kind, text)?;
    let mut places = 0..;
    let place = |group: &LocalGroup| if shows(&group) { places.next() } else { None };
    let at: Vec<Option<u32>> = groups.iter().map(place).collect();
    if *values.data_type() == DataType::Utf8 {
        let root = encoded.taxonomies[column].as_ref();
        let root = root.map_or(NOTHING, |taxonomy| taxonomy.label(ROOT));
        let values = values.as_string::<i32>();
        let text = groups.iter().zip(&at).map(|(group, at)| match at {
            Some(at) => values
                .is_valid(*at as usize)
                .then(|| values.value(*at as usize)),
            None => (group.cells[column] == GroupCell::Blank).then_some(root),
        });
        return Ok(Arc::new(text.collect::<StringArray>()));
    }
    if classes.is_empty() {
        return Ok(new_null_array(values.data_type(), groups.len()));
    }
    if classes.len() == groups.len() {
        return Ok(values);
    }
    take(&values, &UInt32Array::from(at), None)
}

impl EncodedBlock {
    /// The rank of each individual's value in the order of a column: numbers by size, others by their hierarchy or their
    /// bytes. Every individual must have one value; a missing one has [`NULL_CODE`].
    pub fn ranks(&self, column: usize) -> Vec<u32> {
        match &self.block.quasi_identifiers()[column] {
            QuasiIdentifier::Categorical(coded) => {
                let of = |i: u32| coded.of(i).first().copied().unwrap_or(NULL_CODE);
                (0..self.block.len() as u32).map(of).collect()
            }
            QuasiIdentifier::Hierarchical(coded) => coded.lo.clone(),
            QuasiIdentifier::Numeric(coded) => match &self.keys[column] {
                Some(Keys::Integer(values)) => ranks(values.iter(), |at| values.get(at)),
                Some(Keys::Real(values)) => {
                    let value = |at: usize| values[at].map(in_total_order);
                    ranks((0..values.len()).map(value), value)
                }
                // A numeric column has numbers.
                Some(Keys::Bytes(_)) | None => vec![NULL_CODE; coded.lo.len()],
            },
        }
    }
}

/// The rank of each value among the different ones; a missing one has [`NULL_CODE`].
fn ranks<T: Ord + Hash + Copy>(
    values: impl Iterator<Item = Option<T>>,
    value: impl Fn(usize) -> Option<T>,
) -> Vec<u32> {
    let numbers = Numbers::by(values);
    let first = |number: u32| value(numbers.first[number as usize] as usize);
    numbers.placed(&places(numbers.first.len(), first))
}

/// The number whose order is that of [`f64::total_cmp`].
fn in_total_order(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The values of a quasi-identifier as they are published exactly: leaves of a given hierarchy by their labels.
pub fn exact_values(values: &ArrayRef, ladder: Option<&Ladder>) -> ArrayRef {
    let Some(Ladder::Tree(taxonomy)) = ladder else {
        return Arc::clone(values);
    };
    let leaves = values.as_primitive::<datafusion::arrow::datatypes::UInt32Type>();
    let label = |leaf: u32| taxonomy.label(taxonomy.tree().node_of(leaf));
    let labels = leaves.iter().map(|leaf| leaf.map(label));
    Arc::new(labels.collect::<StringArray>())
}

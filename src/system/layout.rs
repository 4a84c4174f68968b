//! Every schema on the way, and where its columns stand: nobody else knows.
//!
//! ```text
//! input       whatever the query gives
//! canonical   __id_…, __qi_…, __sensitive_…, __keep_…, __secret_…   plain types, only columns with a role
//! tagged      __order, __pseudonym, qi…, sensitive, keep…      the id is gone, values of a given hierarchy are leaves
//! individuals __order, __pseudonym, qi…, __records             one row per individual
//! blocks      __block, __domains, then as individuals
//! routed      __block, __domains, then as tagged               where records have their block before they are gathered
//! published   individual, qi'…, sensitive, keep…             or subtable, gid, qi…, sensitive, count              as the function's form says
//! ```
//!
//! All schemas are built from scratch: nothing but names and types survives of the input's.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, DictionaryArray, FixedSizeBinaryArray, ListArray, RecordBatch, UInt32Array,
    UInt64Array,
};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Schema, SchemaRef, UInt8Type, UInt32Type, UInt64Type,
};
use datafusion::common::{Result, internal_datafusion_err, internal_err};

use super::ProfileColumns;
use super::canonical::{kind_of, plain_type};
use crate::spec::{Contradictory, Notation, Spec};
use crate::table::Taxonomy;
use crate::table::coding::{Kind, Ladder, Levels, interval_fields};

/// Name of the published pseudonym column.
pub const INDIVIDUAL: &str = "individual";

/// Bytes of a pseudonym.
pub(crate) const PSEUDONYM_BYTES: i32 = 16;

/// Where everything is, for one spec over one canonical input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    canonical: SchemaRef,
    /// How each quasi-identifier is generalized.
    pub kinds: Vec<Kind>,
    levels: Vec<Option<Levels>>,
    qi: Vec<Field>,
    /// The sensitive columns, then the kept ones, then flags of secret values.
    record: Fields,
    covers: bool,
    notation: Notation,
    /// What rows of blocks say beside the individual.
    block_columns: Vec<Field>,
    published: SchemaRef,
}

impl Layout {
    /// Reads the layout off the canonical schema.
    pub fn try_new(spec: &Spec, canonical: SchemaRef) -> Result<Self> {
        let fields = canonical.fields();
        let semi_sensitive = spec.semi_sensitive();
        let flags = semi_sensitive.iter().map(|(name, _)| flag_name(name));
        let names = [spec.sensitive(), spec.keep(), &flags.collect::<Vec<_>>()].concat();
        if fields.len() != 1 + spec.qi().len() + names.len() {
            return internal_err!("the input is not in canonical form");
        }
        // What follows reads every column in its plain type; one in another would be passed over or end the program.
        let plain =
            |field: &Arc<Field>| plain_type(field.data_type()).as_ref() == Some(field.data_type());
        if let Some(field) = fields.iter().find(|field| !plain(field)) {
            return internal_err!(
                "column '{}' of the input has type {}, which is not a plain one",
                field.name(),
                field.data_type()
            );
        }
        let named = |names: &[String], fields: &[Arc<Field>]| -> Vec<Field> {
            let pairs = names.iter().zip(fields);
            pairs
                .map(|(name, f)| Field::new(name, f.data_type().clone(), true))
                .collect()
        };
        let tagged = tagged_schema(spec, &canonical);
        let qi = named(spec.qi(), qi_fields(spec, &tagged));
        let mut kinds = Vec::with_capacity(qi.len());
        for field in &qi {
            kinds.push(kind_of(spec, field.name(), field.data_type())?);
        }
        let levels = spec.qi().iter().map(|c| spec.hierarchies().get(c).cloned());
        let levels = levels.collect();
        let record = named(&names, &tagged.fields()[TAG + qi.len()..]).into();
        let system = spec.entry()?.system;
        let mut layout = Self {
            canonical,
            kinds,
            levels,
            qi,
            record,
            covers: spec.contradictory == Contradictory::Cover,
            notation: spec.notation,
            block_columns: system.block_columns(),
            published: Arc::new(Schema::empty()),
        };
        layout.published = system.published(spec, &layout);
        Ok(layout)
    }

    /// The schema this layout was read off.
    pub fn canonical(&self) -> &SchemaRef {
        &self.canonical
    }

    /// Number of quasi-identifiers.
    pub fn qi_count(&self) -> usize {
        self.qi.len()
    }

    /// Type of a quasi-identifier before it is generalized.
    pub fn qi_type(&self, column: usize) -> &DataType {
        self.qi[column].data_type()
    }

    /// Name of a quasi-identifier.
    pub fn qi_name(&self, column: usize) -> &str {
        self.qi[column].name()
    }

    /// How each quasi-identifier that has a hierarchy is generalized.
    pub fn ladders(&self) -> Vec<Option<Ladder>> {
        let ladder = |(field, levels): (&Field, &Option<Levels>)| {
            // Whether the levels fit was checked by `kind_of`.
            Ladder::try_new(levels.as_ref()?, field.data_type()).ok()
        };
        self.qi.iter().zip(&self.levels).map(ladder).collect()
    }

    /// The columns of one record: sensitive, then kept.
    pub fn record_fields(&self) -> &Fields {
        &self.record
    }

    /// The sensitive columns.
    pub fn sensitive_fields(&self, spec: &Spec) -> &[FieldRef] {
        &self.record[..spec.sensitive().len()]
    }

    /// Whether the values of a quasi-identifier are as far apart as their places in their order.
    pub fn is_ordered(&self, column: usize) -> bool {
        // Leaves of a given hierarchy are numbered, but names.
        !matches!(self.levels[column], Some(Levels::Tree(_)))
            && matches!(self.kinds[column], Kind::Integer | Kind::Real)
    }

    /// Whether an individual may have several values in a quasi-identifier.
    pub fn covers(&self) -> bool {
        self.covers
    }

    /// Whether generalized values are published as text.
    pub fn is_text(&self) -> bool {
        self.notation == Notation::Text
    }

    pub fn tagged(&self, spec: &Spec) -> SchemaRef {
        tagged_schema(spec, &self.canonical)
    }

    pub fn individuals(&self) -> SchemaRef {
        Arc::new(Schema::new(self.individual_fields()))
    }

    fn individual_fields(&self) -> Vec<Field> {
        let qi = self.qi.iter().map(|f| {
            if self.covers {
                Field::new(f.name(), list_of(f.data_type()), true)
            } else {
                f.clone()
            }
        });
        let records = Field::new(
            "__records",
            list_of(&DataType::Struct(self.record.clone())),
            false,
        );
        tag_fields().chain(qi).chain([records]).collect()
    }

    pub fn blocks(&self) -> SchemaRef {
        self.in_blocks(self.individual_fields())
    }

    /// As [`Layout::blocks`], before records are gathered.
    pub fn routed(&self, spec: &Spec) -> SchemaRef {
        let tagged = self.tagged(spec);
        self.in_blocks(tagged.fields().iter().map(|field| field.as_ref().clone()))
    }

    fn in_blocks(&self, rows: impl IntoIterator<Item = Field>) -> SchemaRef {
        let domains = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Binary));
        let mut fields = vec![
            Field::new("__block", DataType::UInt32, false),
            Field::new("__domains", domains, false),
        ];
        fields.extend(rows);
        fields.extend(self.block_columns.iter().cloned());
        Arc::new(Schema::new(fields))
    }

    /// What is published.
    pub fn published(&self) -> SchemaRef {
        Arc::clone(&self.published)
    }

    /// The quasi-identifiers before they are generalized.
    pub fn qi_fields(&self) -> &[Field] {
        &self.qi
    }

    /// The hierarchy of a quasi-identifier, if it has one.
    pub fn levels(&self, column: usize) -> Option<&Levels> {
        self.levels[column].as_ref()
    }

    /// The type of a generalized quasi-identifier.
    pub fn generalized(&self, column: usize) -> DataType {
        let field = &self.qi[column];
        if self.is_text() || self.levels[column].is_some() {
            return DataType::Utf8;
        }
        match self.kinds[column] {
            Kind::Categorical | Kind::Masked => list_of(field.data_type()),
            Kind::Integer | Kind::Real => DataType::Struct(interval_fields(field.data_type())),
        }
    }

    /// The pseudonym, each quasi-identifier as its class shares it, and these columns of records.
    pub fn of_classes(&self, record: Fields) -> SchemaRef {
        let mut fields = vec![Field::new(INDIVIDUAL, DataType::Utf8, false)];
        for (column, field) in self.qi.iter().enumerate() {
            fields.push(Field::new(field.name(), self.generalized(column), true));
        }
        fields.extend(record.iter().map(|f| f.as_ref().clone()));
        Arc::new(Schema::new(fields))
    }
}

/// The schema after ids are replaced: order and pseudonym instead of the first column, and leaves of given hierarchies.
pub(crate) fn tagged_schema(spec: &Spec, untagged: &Schema) -> SchemaRef {
    let trees = given_trees(spec);
    let rest = untagged.fields()[1..].iter().enumerate().map(|(c, field)| {
        match trees.get(c).is_some_and(Option::is_some) {
            true => Field::new(field.name(), DataType::UInt32, true),
            false => fresh(field),
        }
    });
    Arc::new(Schema::new(tag_fields().chain(rest).collect::<Vec<_>>()))
}

/// The taxonomies given for the quasi-identifiers and then the sensitive columns, which stand behind the id.
pub(crate) fn given_trees(spec: &Spec) -> Vec<Option<&Arc<Taxonomy>>> {
    let columns = spec.qi().iter().chain(spec.sensitive());
    let trees = columns.map(|column| spec.hierarchies().get(column)?.tree());
    trees.collect()
}

/// Name and type of a field, without its metadata.
fn fresh(field: &Arc<Field>) -> Field {
    Field::new(field.name(), field.data_type().clone(), true)
}

/// The name of the flags of a semi-sensitive column, on their way.
pub(crate) fn flag_name(column: &str) -> String {
    format!("__secret_{column}")
}

pub(super) fn list_of(value: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(value.clone(), true)))
}

fn tag_fields() -> impl Iterator<Item = Field> {
    [
        Field::new("__order", DataType::UInt64, false),
        Field::new(
            "__pseudonym",
            DataType::FixedSizeBinary(PSEUDONYM_BYTES),
            false,
        ),
    ]
    .into_iter()
}

/// The column of an input in canonical form that tells individuals apart, and those with the other roles.
pub(crate) fn id_and_others<T>(canonical: &[T]) -> Result<(&T, &[T])> {
    let columns = canonical.split_first();
    columns.ok_or_else(|| internal_datafusion_err!("the input is not in canonical form"))
}

/// How many of the columns of an input in canonical form are read to learn of the whole table.
pub(crate) fn profiled_columns(spec: &Spec, reads: ProfileColumns, all: usize) -> usize {
    match reads {
        ProfileColumns::QuasiIdentifiers => 1 + spec.qi().len(),
        ProfileColumns::Sensitive => 1 + spec.qi().len() + spec.sensitive().len(),
        ProfileColumns::All => all,
    }
}

/// Columns of a tag: order and pseudonym.
const TAG: usize = 2;

/// Columns that all rows of blocks begin with: the block, and what it needs to know.
const IN_BLOCK: usize = 2;

/// Where the block of a row stands, if rows know theirs.
pub(crate) const BLOCK: usize = 0;

/// What operators get and give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Records, after their ids were replaced.
    Tagged,
    /// One row per individual.
    Individuals,
    /// Records that know their block.
    Routed,
    /// Individuals that know their block.
    Blocks,
}

impl Stage {
    /// The rows that are given their block.
    pub fn without_block(spec: &Spec) -> Self {
        match spec.routes_records() {
            true => Self::Tagged,
            false => Self::Individuals,
        }
    }

    /// The records that are gathered.
    pub fn of_records(spec: &Spec) -> Self {
        match spec.routes_records() {
            true => Self::Routed,
            false => Self::Tagged,
        }
    }

    /// Where the random order stands.
    pub fn order(self) -> usize {
        match self {
            Self::Tagged | Self::Individuals => 0,
            Self::Routed | Self::Blocks => IN_BLOCK,
        }
    }
}

/// The quasi-identifiers of rows without a block.
pub(crate) fn qi_fields<'a>(spec: &Spec, rows: &'a Schema) -> &'a [FieldRef] {
    &rows.fields()[TAG..TAG + spec.qi().len()]
}

/// Whether rows without a block have more than tags and quasi-identifiers.
pub(crate) fn has_records(spec: &Spec, rows: &Schema) -> bool {
    rows.fields().len() > TAG + spec.qi().len()
}

/// Tags and quasi-identifiers only, of rows without a block.
pub(crate) fn without_records(spec: &Spec, rows: &RecordBatch) -> Result<RecordBatch> {
    let kept: Vec<usize> = (0..TAG + spec.qi().len()).collect();
    Ok(rows.project(&kept)?)
}

/// The block of each row, where rows know theirs.
pub(crate) fn blocks_of(rows: &RecordBatch) -> &UInt32Array {
    rows.column(BLOCK).as_primitive::<UInt32Type>()
}

/// What the block of each row needs to know of the whole table.
pub(crate) fn learned_column(rows: &RecordBatch) -> &DictionaryArray<UInt8Type> {
    rows.column(BLOCK + 1).as_dictionary()
}

/// The columns of rows by name. Made once per batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowColumns<'a> {
    in_block: &'a [ArrayRef],
    tag: &'a [ArrayRef],
    qi: &'a [ArrayRef],
    record: RecordColumns<'a>,
    further: &'a [ArrayRef],
}

impl<'a> RowColumns<'a> {
    /// Of rows at a stage. Those from which is learned may end after the quasi-identifiers, or after the sensitive columns.
    pub fn new(spec: &Spec, stage: Stage, columns: &'a [ArrayRef]) -> Self {
        let (in_block, columns) = columns.split_at(stage.order());
        let (tag, columns) = columns.split_at(TAG);
        let (qi, columns) = columns.split_at(spec.qi().len());
        let record = match stage {
            Stage::Tagged => columns.len(),
            Stage::Individuals | Stage::Blocks => columns.len().min(1),
            Stage::Routed => {
                spec.sensitive().len() + spec.keep().len() + spec.semi_sensitive().len()
            }
        };
        let (record, further) = columns.split_at(record);
        Self {
            in_block,
            tag,
            qi,
            record: RecordColumns::new(spec, record),
            further,
        }
    }

    /// The same rows with another order and pseudonym.
    pub fn with_tag(self, tag: &'a [ArrayRef; TAG]) -> Self {
        Self { tag, ..self }
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.order().len()
    }

    /// The block and what it needs to know, where rows know theirs.
    pub fn in_block(&self) -> &'a [ArrayRef] {
        self.in_block
    }

    /// Order and pseudonym.
    pub fn tag(&self) -> &'a [ArrayRef] {
        self.tag
    }

    /// The random order of the individual.
    pub fn order(&self) -> &'a UInt64Array {
        self.order_column().as_primitive::<UInt64Type>()
    }

    /// The same, as a column.
    pub fn order_column(&self) -> &'a ArrayRef {
        &self.tag[0]
    }

    /// The pseudonym of the individual.
    pub fn pseudonym(&self) -> &'a FixedSizeBinaryArray {
        self.tag[1].as_fixed_size_binary()
    }

    /// The quasi-identifiers.
    pub fn qi(&self) -> &'a [ArrayRef] {
        self.qi
    }

    /// The columns of records that are not gathered yet.
    pub fn record(&self) -> RecordColumns<'a> {
        self.record
    }

    /// The records of each individual.
    pub fn records(&self) -> &'a ListArray {
        self.record.columns[0].as_list()
    }

    /// What rows of blocks say beside the individual.
    pub fn further(&self) -> &'a [ArrayRef] {
        self.further
    }
}

/// The columns of a record by name: of tagged rows, or of the structs in an individual's list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordColumns<'a> {
    columns: &'a [ArrayRef],
    sensitive: usize,
    kept: usize,
}

impl<'a> RecordColumns<'a> {
    pub fn new(spec: &Spec, columns: &'a [ArrayRef]) -> Self {
        Self {
            columns,
            sensitive: spec.sensitive().len(),
            kept: spec.keep().len(),
        }
    }

    /// The sensitive columns, the kept ones, and the flags.
    pub fn columns(&self) -> &'a [ArrayRef] {
        self.columns
    }

    /// The sensitive columns; none if they were not read.
    pub fn sensitive(&self) -> &'a [ArrayRef] {
        self.columns.get(..self.sensitive).unwrap_or_default()
    }

    /// The flags of secret values, in the order of their quasi-identifiers; none if they were not read.
    pub fn flags(&self) -> &'a [ArrayRef] {
        let flags = self.columns.get(self.sensitive + self.kept..);
        flags.unwrap_or_default()
    }
}

//! From roles to columns: checks a spec against the input's schema and lays out every schema on the way.
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

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, cast, lit};

use crate::error;
use crate::spec::{Contradictory, GivenDomain, Notation, Secrecy, Spec};
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
        let (qi_count, fields) = (spec.qi().len(), canonical.fields());
        let semi_sensitive = spec.semi_sensitive();
        let flags = semi_sensitive.iter().map(|(name, _)| flag_name(name));
        let names = [spec.sensitive(), spec.keep(), &flags.collect::<Vec<_>>()].concat();
        if fields.len() != 1 + qi_count + names.len() {
            return datafusion::common::internal_err!("the input is not in canonical form");
        }
        // What follows reads every column in its plain type; one in another would be passed over or end the program.
        let plain =
            |field: &Arc<Field>| plain_type(field.data_type()).as_ref() == Some(field.data_type());
        if let Some(field) = fields.iter().find(|field| !plain(field)) {
            return datafusion::common::internal_err!(
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
        let qi = named(spec.qi(), &tagged.fields()[2..2 + qi_count]);
        let mut kinds = Vec::with_capacity(qi_count);
        for field in &qi {
            kinds.push(kind_of(spec, field.name(), field.data_type())?);
        }
        let levels = spec.qi().iter().map(|c| spec.hierarchies().get(c).cloned());
        let levels = levels.collect();
        let record = named(&names, &tagged.fields()[qi_count + 2..]).into();
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
    let rest = untagged.fields()[1..].iter().enumerate().map(|(c, field)| {
        if given_tree(spec, c).is_some() {
            Field::new(field.name(), DataType::UInt32, true)
        } else {
            fresh(field)
        }
    });
    Arc::new(Schema::new(tag_fields().chain(rest).collect::<Vec<_>>()))
}

/// The taxonomy given for a column, counted from the first quasi-identifier on; sensitive columns follow these.
pub(crate) fn given_tree(spec: &Spec, column: usize) -> Option<&Arc<Taxonomy>> {
    let mut columns = spec.qi().iter().chain(spec.sensitive());
    spec.hierarchies().get(columns.nth(column)?)?.tree()
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

/// The expressions that turn the input into canonical form, after checking every role against its schema.
pub(crate) fn canonical_projection(spec: &Spec, input: &DFSchema) -> Result<Vec<Expr>> {
    let function = spec.function();
    let missing = |role: &str, help: &str| {
        Err(error::argument(
            function,
            role,
            format!("is missing: {help}"),
        ))
    };
    if spec.id().is_none() && !spec.one_row_per_individual() {
        return missing(
            "id",
            "name the column that tells individuals apart, or write one_row_per_individual => true",
        );
    }
    if spec.sensitive().is_empty() && spec.semi_sensitive().is_empty() {
        return missing("sensitive", "name the column to protect");
    }
    if spec.qi().is_empty() {
        return missing("qi", "name the columns an attacker may know");
    }

    let mut roles: Vec<(&str, &str)> = spec.id().map(|id| ("id", id)).into_iter().collect();
    roles.extend(spec.qi().iter().map(|c| ("qi", c.as_str())));
    roles.extend(spec.sensitive().iter().map(|c| ("sensitive", c.as_str())));
    roles.extend(spec.keep().iter().map(|c| ("keep", c.as_str())));

    let mut projection = Vec::with_capacity(roles.len() + 1);
    if spec.id().is_none() {
        // The place of the id; what tells individuals apart is the content of their records.
        projection.push(lit(ScalarValue::UInt8(Some(0))).alias("__id"));
    }
    for (i, &(role, name)) in roles.iter().enumerate() {
        if let Some((other, _)) = roles[..i].iter().find(|(_, n)| *n == name) {
            return Err(error::argument(
                function,
                role,
                format!("names column '{name}', which already has the role {other}"),
            ));
        }
        if name == INDIVIDUAL && role != "id" {
            return Err(error::argument(
                function,
                role,
                format!(
                    "names column '{INDIVIDUAL}', the name under which the pseudonym is published; rename it in a subquery"
                ),
            ));
        }
        let (column, from) = find_column(function, role, name, input)?;
        let to = plain_type(from).filter(|t| role != "qi" || qi_type_allowed(t));
        let Some(to) = to else {
            return Err(error::argument(
                function,
                role,
                format!("cannot be column '{name}' of type {from}; allowed are {ALLOWED}"),
            ));
        };
        // Bytes may be texts: files that do not say so are read as binary.
        let bytes = matches!(to, DataType::Binary | DataType::FixedSizeBinary(_));
        if spec.normalize && role == "sensitive" && bytes {
            let message = format!(
                "cannot be used for column '{name}' of type {from}; cast it to text in a subquery"
            );
            return Err(error::argument(function, "normalize", message));
        }
        let to = match spec.hierarchies().get(name) {
            Some(levels) if ["qi", "sensitive"].contains(&role) => {
                if let Err(reason) = Ladder::try_new(levels, &to) {
                    let message = format!("of '{name}': {reason}");
                    return Err(error::argument(function, "hierarchy", message));
                }
                match levels {
                    // Labels are texts.
                    Levels::Tree(_) | Levels::Mask(_) => DataType::Utf8,
                    Levels::Bins(_) | Levels::Dates(_) => to,
                }
            }
            _ => to,
        };
        if role == "qi" {
            kind_of(spec, name, &to)?;
        }
        let expr = Expr::Column(column);
        let expr = if *from == to { expr } else { cast(expr, to) };
        // No output column has the name of an input column: rules of the optimizer that route expressions by name
        // find nothing below our node.
        projection.push(expr.alias(format!("__{role}_{name}")));
    }
    for (name, secrecy) in spec.semi_sensitive() {
        let flag = match secrecy {
            Secrecy::All(all) => lit(*all),
            Secrecy::Column(flag) | Secrecy::Written(flag) => {
                flags(spec, name, flag, &roles, input)?
            }
        };
        projection.push(flag.alias(flag_name(name)));
    }
    spec.entry()?.system.check_names(spec)?;
    check_side_roles(spec)?;
    Ok(projection)
}

/// The flags of a semi-sensitive column: whoever says nothing keeps the value secret.
fn flags(
    spec: &Spec,
    name: &str,
    flag: &str,
    roles: &[(&str, &str)],
    input: &DFSchema,
) -> Result<Expr> {
    let argument = "semi_sensitive";
    let (column, data_type) = find_column(spec.function(), argument, flag, input)?;
    let refuse = |message: String| Err(error::argument(spec.function(), argument, message));
    if let Some((role, _)) = roles.iter().find(|(_, n)| *n == flag) {
        return refuse(format!(
            "of '{name}' is column '{flag}', which has the role {role}; flags are not published"
        ));
    }
    let expr = Expr::Column(column);
    let expr = match data_type {
        DataType::Boolean => expr,
        DataType::Null => lit(true),
        other if plain_type(other) == Some(DataType::Boolean) => cast(expr, DataType::Boolean),
        other => {
            return refuse(format!(
                "of '{name}' is column '{flag}' of type {other}; a flag is true, false or NULL"
            ));
        }
    };
    Ok(coalesce(vec![expr, lit(true)]))
}

/// A column of the input in the type in which its hierarchy is looked up, and the levels above its values.
pub(crate) fn check_levels(
    function: &str,
    argument: &str,
    name: &str,
    input: &DFSchema,
    levels: &Levels,
) -> Result<(Expr, usize)> {
    let (column, from) = find_column(function, "column", name, input)?;
    let refuse = |reason: String| error::argument(function, argument, reason);
    let plain = plain_type(from).filter(qi_type_allowed);
    let plain =
        plain.ok_or_else(|| refuse(format!("cannot be for type {from}; allowed are {ALLOWED}")))?;
    let ladder = Ladder::try_new(levels, &plain).map_err(refuse)?;
    let expr = Expr::Column(column);
    let expr = if *from == plain {
        expr
    } else {
        cast(expr, plain)
    };
    Ok((expr, ladder.height()))
}

const ALLOWED: &str = "integers, floats, decimals, dates, times, booleans and strings";

/// A column of the input, with its type.
pub(crate) fn find_column<'a>(
    function: &str,
    role: &str,
    name: &str,
    input: &'a DFSchema,
) -> Result<(Column, &'a DataType)> {
    let mut hits = input.iter().filter(|(_, field)| field.name() == name);
    match (hits.next(), hits.next()) {
        (Some((qualifier, field)), None) => {
            Ok((Column::new(qualifier.cloned(), name), field.data_type()))
        }
        (Some(_), Some(_)) => Err(error::argument(
            function,
            role,
            format!(
                "names column '{name}', which the input has more than once; rename one in a subquery"
            ),
        )),
        (None, _) => {
            let names: Vec<_> = input.fields().iter().map(|f| f.name().as_str()).collect();
            let nearest = error::did_you_mean(name, names.iter().copied());
            Err(error::argument(
                function,
                role,
                format!(
                    "names column '{name}', which the input does not have{nearest} (columns: {})",
                    names.join(", ")
                ),
            ))
        }
    }
}

/// `categorical`, `domain` and `hierarchy` speak of quasi-identifiers only.
fn check_side_roles(spec: &Spec) -> Result<()> {
    let function = spec.function();
    let categorical = spec.categorical().iter().map(|c| ("categorical", c));
    let domain = spec.domains().keys().map(|c| ("domain", c));
    let hierarchy = spec.hierarchies().keys().map(|c| ("hierarchy", c));
    let labels = spec.properties().labels_sensitive_values;
    let labelled = |column: &String| labels && spec.sensitive().contains(column);
    for (argument, column) in categorical.chain(domain).chain(hierarchy) {
        let allowed = spec.qi().contains(column) || (argument == "hierarchy" && labelled(column));
        if !allowed {
            let nearest = error::did_you_mean(column, spec.qi().iter().map(String::as_str));
            return Err(error::argument(
                function,
                argument,
                format!("names column '{column}', which is not a quasi-identifier{nearest}"),
            ));
        }
    }
    Ok(())
}

/// How a quasi-identifier of this type is generalized.
pub(crate) fn kind_of(spec: &Spec, name: &str, data_type: &DataType) -> Result<Kind> {
    let kind = match spec.hierarchies().get(name) {
        // Leaves of a given tree are numbered.
        Some(Levels::Tree(_)) => Kind::Integer,
        Some(Levels::Mask(_)) => Kind::Masked,
        None if spec.is_categorical(name) => Kind::Categorical,
        _ => match data_type {
            DataType::Utf8 | DataType::Utf8View | DataType::Boolean => Kind::Categorical,
            t if t.is_floating() => Kind::Real,
            _ => Kind::Integer,
        },
    };
    let given = spec.hierarchies().get(name);
    if matches!(given, Some(Levels::Tree(_) | Levels::Mask(_))) && spec.domains().contains_key(name)
    {
        let message = format!("is given for '{name}', whose hierarchy tells its values already");
        return Err(error::argument(spec.function(), "domain", message));
    }
    if given.is_none()
        && spec.notation == Notation::Text
        && matches!(data_type, DataType::Duration(_))
    {
        let message = format!(
            "cannot be 'text' for '{name}', a span of time, whose text could not be read again; leave it out, or count \
             seconds in a subquery"
        );
        return Err(error::argument(spec.function(), "notation", message));
    }
    match (spec.domains().get(name), kind) {
        (Some(GivenDomain::Values(values)), Kind::Integer | Kind::Real) if values.len() != 2 => {
            Err(error::argument(
                spec.function(),
                "domain",
                format!(
                    "gives a list of values for '{name}', which is numeric; give [smallest, largest]"
                ),
            ))
        }
        _ => Ok(kind),
    }
}

/// The type under which the engine works on a column: one string type, no dictionaries, no views.
fn plain_type(data_type: &DataType) -> Option<DataType> {
    use DataType::*;
    Some(match data_type {
        Dictionary(_, value) => plain_type(value)?,
        RunEndEncoded(_, value) => plain_type(value.data_type())?,
        Utf8 | LargeUtf8 | Utf8View => Utf8,
        Binary | LargeBinary | BinaryView => Binary,
        Float16 => Float32,
        Date64 => Timestamp(TimeUnit::Millisecond, None),
        t if t.is_primitive() && !matches!(t, Interval(_)) => t.clone(),
        t @ (Boolean | FixedSizeBinary(_)) => t.clone(),
        _ => return None,
    })
}

fn qi_type_allowed(plain: &DataType) -> bool {
    use DataType::*;
    !matches!(plain, Binary | FixedSizeBinary(_) | Decimal256(..))
}

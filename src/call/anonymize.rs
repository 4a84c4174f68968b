//! What a call of an anonymizing function says: from arguments to a [`Spec`].

mod flags;

use std::borrow::Cow;

use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;

use super::arguments::{Argument, ArgumentKind, Arguments, Function};
use super::source::hierarchy::read_map;
use super::source::{InputLoad, Load, categories};
use super::value::ArgumentValue;
use crate::algorithm::ALGORITHMS;
use crate::model::{self, Parameter, ParameterKind};
use crate::pipeline::AnonymizeNode;
use crate::spec::{
    BlockSize, Choice, Contradictory, FingerprintRows, GivenDomain, Notation, NullId,
    NullSensitive, Spec,
};
use crate::system::{FUNCTIONS, FunctionEntry};

use flags::plan_flags;

/// An argument with what it says to a spec.
struct SpecArgument {
    argument: Argument,
    read: fn(Spec, &ArgumentValue, &mut dyn Load) -> Result<Spec, Refusal>,
}

/// Why a value does not fit.
enum Refusal {
    /// What is allowed instead.
    Allowed(String),
    /// All that is to be said.
    Reason(String),
}

impl<T: Into<String>> From<T> for Refusal {
    fn from(allowed: T) -> Self {
        Self::Allowed(allowed.into())
    }
}

/// The arguments that all anonymizing functions take besides the input and the parameters of their models.
static ARGUMENTS: &[SpecArgument] = &[
    SpecArgument {
        argument: Argument::optional(
            "id",
            ArgumentKind::Column,
            "the column that tells individuals apart; published as a random pseudonym",
        ),
        read: |spec, value, _| Ok(spec.with_id(column(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "one_row_per_individual",
            ArgumentKind::Flag,
            "true instead of an id where each record is another individual",
        ).or("false"),
        read: |spec, value, _| Ok(spec.with_one_row_per_individual(flag(value)?)),
    },
    SpecArgument {
        argument: Argument::required(
            "qi",
            ArgumentKind::Columns,
            "the columns an attacker may know; published generalized",
        ),
        read: |spec, value, _| Ok(spec.with_qi(columns(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "sensitive",
            ArgumentKind::Columns,
            "the column to protect; published as it is",
        ),
        read: |spec, value, _| {
            let names = value.names().filter(|names| !names.is_empty());
            Ok(spec.with_sensitive(names.ok_or("must be the name of a column")?))
        },
    },
    SpecArgument {
        argument: Argument::optional(
            "keep",
            ArgumentKind::Columns,
            "other columns to publish as they are",
        ).or("none"),
        read: |spec, value, _| Ok(spec.with_keep(columns(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "categorical",
            ArgumentKind::Columns,
            "quasi-identifiers of a numeric type whose values are names, such as postcodes",
        ).or("none"),
        read: |spec, value, _| Ok(spec.with_categorical(columns(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "domain",
            ArgumentKind::Domains,
            "domains stated instead of learned: {age: [0, 120], sex: ['F', 'M']}",
        ).or("from the data"),
        read: read_domains,
    },
    SpecArgument {
        argument: Argument::optional(
            "hierarchy",
            ArgumentKind::Hierarchies,
            "columns generalized to labels: {age: 'bins(5, 20)', postcode: 'mask', city: 'city.csv', job: 'even(5)'}",
        ).or("none"),
        read: read_hierarchies,
    },
    SpecArgument {
        argument: Argument::optional(
            "algorithm",
            ArgumentKind::Text,
            "how classes are formed",
        ).or("'optimized'"),
        read: |spec, value, _| {
            let name = value.text().ok_or("must be a name in quotes")?;
            Ok(spec.with_algorithm(name))
        },
    },
    SpecArgument {
        argument: Argument::optional(
            "block",
            ArgumentKind::Block,
            "individuals per block of similar individuals, or 'all'",
        ).or("25000"),
        read: read_block,
    },
    SpecArgument {
        argument: Argument::optional(
            "notation",
            ArgumentKind::Choice(Notation::NAMES),
            "generalized values 'typed' (intervals as structs, sets as lists) or as 'text'",
        ).or("'typed'"),
        read: |spec, value, _| Ok(spec.with_notation(choice(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "null_id",
            ArgumentKind::Choice(NullId::NAMES),
            "records without an id: 'error' or 'drop'",
        ).or("'error'"),
        read: |spec, value, _| Ok(spec.with_null_id(choice(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "null_sensitive",
            ArgumentKind::Choice(NullSensitive::NAMES),
            "records without a sensitive value: 'error', 'drop_rows' or 'conservative'",
        ).or("'error'"),
        read: |spec, value, _| Ok(spec.with_null_sensitive(choice(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "contradictory",
            ArgumentKind::Choice(Contradictory::NAMES),
            "individuals whose records disagree on a quasi-identifier: 'error', 'cover' or 'drop'",
        ).or("'error'"),
        read: |spec, value, _| Ok(spec.with_contradictory(choice(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "normalize",
            ArgumentKind::Flag,
            "count sensitive values that differ only in case, spacing or Unicode form as one",
        ).or("false"),
        read: |spec, value, _| Ok(spec.with_normalize(flag(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "seed",
            ArgumentKind::Seed,
            "makes the release reproducible by whoever knows the seed",
        ).or("random"),
        read: |spec, value, _| match value {
            ArgumentValue::Number(seed) | ArgumentValue::Text(seed) => Ok(spec.with_seed(seed)),
            _ => Err("must be a number or a string".into()),
        },
    },
];

/// What only the functions of one system take, by the name of the system.
static OWN: &[(&str, &[SpecArgument])] = &[
    ("buckets", flags::ARGUMENTS),
    ("fingerprints", FINGERPRINT_ARGUMENTS),
];

/// What only functions that publish fingerprints take.
static FINGERPRINT_ARGUMENTS: &[SpecArgument] = &[SpecArgument {
    argument: Argument::optional(
        "output",
        ArgumentKind::Choice(FingerprintRows::NAMES),
        "a row for each label of an individual ('records'), or for each individual ('individuals')",
    )
    .or("'records'"),
    read: |spec, value, _| Ok(spec.with_fingerprint_rows(choice(value)?)),
}];

/// What a function anonymizes.
const INPUT: Argument = Argument::required(
    "input",
    ArgumentKind::Relation,
    "the table to anonymize: a table, a (SELECT …) or the path of files",
);

/// The anonymizing functions.
pub(super) fn functions() -> impl Iterator<Item = Function> {
    FUNCTIONS.iter().map(|entry| Function {
        name: entry.name,
        help: entry.help,
        positional: 1,
        arguments: Cow::Owned(arguments(entry)),
        refused: entry.system.properties().refused,
        plan,
    })
}

/// The input, what the spec says of all systems, what belongs to the function's system, and parameters.
fn arguments(function: &FunctionEntry) -> Vec<Argument> {
    let mut arguments = vec![INPUT];
    arguments.extend(spec_arguments(function).map(|a| a.argument));
    for parameter in parameters(function) {
        // Several models may have a parameter of one name.
        if arguments.iter().all(|known| known.name != parameter.name) {
            arguments.push(parameter);
        }
    }
    arguments
}

fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    let values = given.take_all();
    let input = given.relation("input")?;
    let spec = read(given, values, &input)?;
    let (spec, input) = plan_flags(spec, input, given)?;
    AnonymizeNode::plan(spec, input)
}

/// Reads all arguments but the input.
fn read(
    given: &mut Arguments,
    values: Vec<(String, ArgumentValue)>,
    input: &LogicalPlan,
) -> Result<Spec> {
    let mut spec = Spec::new(given.function());
    let function = spec.entry()?;
    let id = values.iter().find(|(name, _)| name == "id");
    let id = id.and_then(|(_, value)| value.text().map(str::to_owned));
    // Categories belong to sensitive columns, which must be known by then.
    let (last, first): (Vec<_>, Vec<_>) = values.into_iter().partition(|(n, _)| n == "categories");
    for (name, value) in first.into_iter().chain(last) {
        let entry = spec_arguments(function).find(|a| a.argument.name == name);
        let mut load = InputLoad {
            load: given.load(),
            input,
            id: id.as_deref(),
        };
        let read = match (entry, name.as_str()) {
            (Some(entry), _) => (entry.read)(spec, &value, &mut load),
            (None, "division") => read_division(spec, &value),
            (None, "categories") => read_categories(spec, &value, &mut load),
            (None, _) => match value.plain() {
                Some(text) => Ok(spec.with_parameter(&name, text)),
                None => Err("must be one value".into()),
            },
        };
        spec = read.map_err(|refusal| match refusal {
            Refusal::Allowed(allowed) => given.wrong(&name, &allowed, &value),
            Refusal::Reason(reason) => given.refuse(&name, reason),
        })?;
    }
    Ok(spec)
}

/// The arguments that a function takes besides the input and parameters.
fn spec_arguments(function: &FunctionEntry) -> impl Iterator<Item = &'static SpecArgument> {
    let properties = function.system.properties();
    let own = OWN.iter().find(|(system, _)| *system == properties.name);
    let taken = |argument: &&SpecArgument| {
        let name = argument.argument.name;
        // Algorithms form classes.
        (name != "algorithm" || properties.groups.is_none())
            && properties
                .refused
                .iter()
                .all(|(refused, _)| *refused != name)
    };
    let common = ARGUMENTS.iter().filter(taken);
    common.chain(own.map_or(&[] as &[_], |(_, own)| own))
}

/// Parameters of the function and its models, and options of all algorithms if one of them forms classes.
fn parameters(function: &FunctionEntry) -> impl Iterator<Item = Argument> {
    let models = model::offered_by(function.name).flat_map(|m| m.parameters);
    let properties = function.system.properties();
    let classes = properties.groups.is_none();
    let algorithms = ALGORITHMS.iter().filter(move |_| classes);
    let algorithms = algorithms.flat_map(|a| a.options);
    let own = properties.parameters.iter().map(|(name, help)| {
        let kind = match *name {
            "tables" => ArgumentKind::Count,
            "division" => ArgumentKind::Division,
            "method" => ArgumentKind::Text,
            _ => ArgumentKind::Share,
        };
        Argument::optional(name, kind, help)
    });
    models.chain(algorithms).map(parameter).chain(own)
}

/// A parameter of a model or an option of an algorithm as an argument.
fn parameter(parameter: &Parameter) -> Argument {
    let kind = match parameter.kind {
        _ if parameter.name == "categories" => ArgumentKind::Categories,
        ParameterKind::Integer { .. } => ArgumentKind::Count,
        ParameterKind::Share => ArgumentKind::Share,
        ParameterKind::Weight => ArgumentKind::Decimal,
    };
    Argument::optional(parameter.name, kind, parameter.help)
}

fn flag(value: &ArgumentValue) -> Result<bool, Refusal> {
    match value {
        ArgumentValue::Boolean(flag) => Ok(*flag),
        _ => Err("must be true or false".into()),
    }
}

fn column(value: &ArgumentValue) -> Result<String, Refusal> {
    let name = value.text().filter(|name| !name.is_empty());
    name.map(str::to_owned)
        .ok_or_else(|| "must be the name of one column".into())
}

fn columns(value: &ArgumentValue) -> Result<Vec<String>, Refusal> {
    value
        .names()
        .ok_or_else(|| "must be a list of column names".into())
}

fn choice<C: Choice>(value: &ArgumentValue) -> Result<C, Refusal> {
    let named = value.text().and_then(C::named);
    named.ok_or_else(|| format!("must be one of '{}'", C::NAMES.join("', '")).into())
}

fn read_block(spec: Spec, value: &ArgumentValue, _: &mut dyn Load) -> Result<Spec, Refusal> {
    let size = match value {
        ArgumentValue::Number(digits) => digits
            .parse()
            .ok()
            .filter(|n| *n > 0)
            .map(BlockSize::Individuals),
        _ => (value.text() == Some("all")).then_some(BlockSize::All),
    };
    let block = size.ok_or_else(|| {
        "must be 'all' or a number of individuals of at least 1, such as 25000".to_owned()
    })?;
    Ok(spec.with_block(block))
}

fn read_division(spec: Spec, value: &ArgumentValue) -> Result<Spec, Refusal> {
    let tables = match value {
        ArgumentValue::List(tables) => tables
            .iter()
            .map(ArgumentValue::names)
            .collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let tables = tables
        .filter(|tables| !tables.is_empty())
        .ok_or("must be a list of lists of columns, such as [[age, zip], [gender, job]]")?;
    Ok(spec.with_division(tables))
}

fn read_hierarchies(
    mut spec: Spec,
    value: &ArgumentValue,
    load: &mut dyn Load,
) -> Result<Spec, Refusal> {
    for (column, levels) in read_map(value, load).map_err(Refusal::Reason)? {
        spec = spec.with_hierarchy(&column, levels);
    }
    Ok(spec)
}

/// The categories of the sensitive column, or a map from sensitive columns to theirs.
fn read_categories(
    spec: Spec,
    value: &ArgumentValue,
    load: &mut dyn Load,
) -> Result<Spec, Refusal> {
    let read = categories::read_each(value, spec.sensitive(), load).map_err(Refusal::Reason)?;
    let with = |spec: Spec, (column, categories)| spec.with_categories(column, categories);
    Ok(read.into_iter().fold(spec, with))
}

fn read_domains(mut spec: Spec, value: &ArgumentValue, _: &mut dyn Load) -> Result<Spec, Refusal> {
    const SHAPE: &str = "must map columns to [smallest, largest] or to the list of their values";
    let ArgumentValue::Map(entries) = value else {
        return Err(SHAPE.into());
    };
    for (column, value) in entries {
        let ArgumentValue::List(items) = value else {
            return Err(SHAPE.into());
        };
        let texts: Option<Vec<String>> = items.iter().map(ArgumentValue::plain).collect();
        let texts = texts.filter(|t| !t.is_empty()).ok_or(SHAPE)?;
        // [a, b] may be a range or two values: the column's kind decides when the input is known.
        spec = spec.with_domain(column, GivenDomain::Values(texts));
    }
    Ok(spec)
}

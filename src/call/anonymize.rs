//! What a call of an anonymizing function says: from arguments to a [`Spec`].

mod flags;

use datafusion::common::{DataFusionError, Result};

use super::source::hierarchy::read_map;
use super::source::{Load, categories};
use super::value::ArgumentValue;
use crate::algorithm::ALGORITHMS;
use crate::spec::{BlockSize, Choice, GivenDomain, Spec};
use crate::system::{self, SystemProperties};
use crate::{error, model};

pub(super) use flags::plan_flags;

/// An argument that all anonymizing functions take.
#[derive(Debug)]
pub struct ArgumentEntry {
    /// Its name.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
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
pub static ARGUMENTS: &[ArgumentEntry] = &[
    ArgumentEntry {
        name: "id",
        help: "the column that tells individuals apart; published as a random pseudonym",
        read: |spec, value, _| Ok(spec.with_id(column(value)?)),
    },
    ArgumentEntry {
        name: "one_row_per_individual",
        help: "true instead of an id where each record is another individual (default: false)",
        read: |spec, value, _| match value {
            ArgumentValue::Boolean(one_row) => Ok(spec.with_one_row_per_individual(*one_row)),
            _ => Err("must be true or false".into()),
        },
    },
    ArgumentEntry {
        name: "qi",
        help: "the columns an attacker may know; published generalized",
        read: |spec, value, _| Ok(spec.with_qi(columns(value)?)),
    },
    ArgumentEntry {
        name: "sensitive",
        help: "the column to protect; published as it is",
        read: |spec, value, _| {
            let names = value.names().filter(|names| !names.is_empty());
            Ok(spec.with_sensitive(names.ok_or("must be the name of a column")?))
        },
    },
    ArgumentEntry {
        name: "keep",
        help: "other columns to publish as they are (default: none)",
        read: |spec, value, _| Ok(spec.with_keep(columns(value)?)),
    },
    ArgumentEntry {
        name: "categorical",
        help: "quasi-identifiers of a numeric type whose values are names, such as postcodes (default: none)",
        read: |spec, value, _| Ok(spec.with_categorical(columns(value)?)),
    },
    ArgumentEntry {
        name: "domain",
        help: "domains stated instead of learned: {age: [0, 120], sex: ['F', 'M']} (default: from the data)",
        read: read_domains,
    },
    ArgumentEntry {
        name: "hierarchy",
        help: "columns generalized to labels: {age: 'bins(5, 20)', postcode: 'mask', city: 'city.csv', job: 'even(5)'} (default: none)",
        read: read_hierarchies,
    },
    ArgumentEntry {
        name: "algorithm",
        help: "how classes are formed (default: 'optimized')",
        read: |spec, value, _| {
            let name = value.text().ok_or("must be a name in quotes")?;
            Ok(spec.with_algorithm(name))
        },
    },
    ArgumentEntry {
        name: "block",
        help: "individuals per block of similar individuals, or 'all' (default: 25000)",
        read: read_block,
    },
    ArgumentEntry {
        name: "notation",
        help: "generalized values 'typed' (intervals as structs, sets as lists) or as 'text' (default: 'typed')",
        read: |spec, value, _| Ok(spec.with_notation(choice(value)?)),
    },
    ArgumentEntry {
        name: "null_id",
        help: "records without an id: 'error' or 'drop' (default: 'error')",
        read: |spec, value, _| Ok(spec.with_null_id(choice(value)?)),
    },
    ArgumentEntry {
        name: "null_sensitive",
        help: "records without a sensitive value: 'error', 'drop_rows' or 'conservative' (default: 'error')",
        read: |spec, value, _| Ok(spec.with_null_sensitive(choice(value)?)),
    },
    ArgumentEntry {
        name: "contradictory",
        help: "individuals whose records disagree on a quasi-identifier: 'error', 'cover' or 'drop' (default: 'error')",
        read: |spec, value, _| Ok(spec.with_contradictory(choice(value)?)),
    },
    ArgumentEntry {
        name: "normalize",
        help: "count sensitive values that differ only in case, spacing or Unicode form as one (default: false)",
        read: |spec, value, _| match value {
            ArgumentValue::Boolean(normalize) => Ok(spec.with_normalize(*normalize)),
            _ => Err("must be true or false".into()),
        },
    },
    ArgumentEntry {
        name: "seed",
        help: "makes the release reproducible by whoever knows the seed (default: random)",
        read: |spec, value, _| match value {
            ArgumentValue::Number(seed) | ArgumentValue::Text(seed) => Ok(spec.with_seed(seed)),
            _ => Err("must be a number or a string".into()),
        },
    },
];

/// What only the functions of one system take, by the name of the system.
static OWN: &[(&str, &[ArgumentEntry])] = &[
    ("buckets", flags::ARGUMENTS),
    ("fingerprints", FINGERPRINT_ARGUMENTS),
];

/// What only functions that publish fingerprints take.
static FINGERPRINT_ARGUMENTS: &[ArgumentEntry] = &[ArgumentEntry {
    name: "output",
    help: "a row for each label of an individual ('records'), or for each individual ('individuals') (default: 'records')",
    read: |spec, value, _| Ok(spec.with_fingerprint_rows(choice(value)?)),
}];

/// Reads the arguments of a call, all but the input.
pub(super) fn read(
    function: &str,
    arguments: &[(String, ArgumentValue)],
    load: &mut dyn Load,
) -> Result<Spec> {
    let mut spec = Spec::new(function);
    let twice = |(i, (name, _)): &(usize, &(String, ArgumentValue))| {
        arguments[..*i].iter().any(|(earlier, _)| earlier == name)
    };
    if let Some((_, (name, _))) = arguments.iter().enumerate().find(twice) {
        return Err(error::argument(function, name, "is given twice"));
    }
    // Categories belong to sensitive columns, which must be known by then.
    let (last, first): (Vec<_>, Vec<_>) = arguments.iter().partition(|(n, _)| n == "categories");
    for (name, value) in first.into_iter().chain(last) {
        let refuse = |refusal: Refusal| match refusal {
            Refusal::Allowed(allowed) => {
                error::argument(function, name, format!("{allowed}, not {value}"))
            }
            Refusal::Reason(reason) => error::argument(function, name, reason),
        };
        let mut refused = spec.properties().refused.iter();
        if let Some((_, reason)) = refused.find(|(refused, _)| refused == name) {
            return Err(error::argument(function, name, reason));
        }
        spec = if let Some(entry) = arguments_of(function).find(|a| a.name == name) {
            (entry.read)(spec, value, load).map_err(refuse)?
        } else if parameters(function).any(|p| p == name) {
            let read = match name.as_str() {
                "categories" => read_categories(spec, value, load),
                "division" => read_division(spec, value),
                _ => match value.plain() {
                    Some(text) => Ok(spec.with_parameter(name, text)),
                    None => Err("must be one value".into()),
                },
            };
            read.map_err(refuse)?
        } else {
            return Err(unknown(function, name));
        };
    }
    Ok(spec)
}

/// The column that tells individuals apart, as a call names it.
pub(super) fn id(arguments: &[(String, ArgumentValue)]) -> Option<&str> {
    let id = arguments.iter().find(|(name, _)| name == "id");
    id.and_then(|(_, value)| value.text())
}

/// The arguments that a function takes besides the input and parameters.
pub fn arguments_of(function: &str) -> impl Iterator<Item = &'static ArgumentEntry> {
    let properties = properties(function);
    let own = OWN.iter().find(|(system, _)| {
        let name = properties.map(|properties| properties.name);
        name == Some(*system)
    });
    let taken = move |argument: &&ArgumentEntry| {
        properties.is_none_or(|p| {
            // Algorithms form classes.
            (argument.name != "algorithm" || p.groups.is_none())
                && p.refused.iter().all(|(name, _)| *name != argument.name)
        })
    };
    let common = ARGUMENTS.iter().filter(taken);
    common.chain(own.map_or(&[] as &[_], |(_, own)| own))
}

fn properties(function: &str) -> Option<&'static SystemProperties> {
    system::find(function).map(|function| function.system.properties())
}

/// Parameters of the function and its models, and options of all algorithms if one of them forms classes.
fn parameters(function: &str) -> impl Iterator<Item = &'static str> {
    let models = model::offered_by(function).flat_map(|m| m.parameters);
    let properties = properties(function);
    let classes = properties.is_some_and(|properties| properties.groups.is_none());
    let algorithms = ALGORITHMS.iter().filter(move |_| classes);
    let algorithms = algorithms.flat_map(|a| a.options);
    let own = properties.map_or(&[] as &[_], |properties| properties.parameters);
    let own = own.iter().map(|(name, _)| *name);
    models.chain(algorithms).map(|p| p.name).chain(own)
}

fn unknown(function: &str, name: &str) -> DataFusionError {
    let names: Vec<&str> = ["input"]
        .into_iter()
        .chain(arguments_of(function).map(|a| a.name))
        .chain(parameters(function))
        .collect();
    let nearest = error::did_you_mean(name, names.iter().copied());
    error::call(
        function,
        format!(
            "there is no argument '{name}'{nearest} (arguments: {})",
            names.join(", ")
        ),
    )
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
    value.text().and_then(C::named).ok_or_else(|| {
        let names: Vec<_> = C::ALTERNATIVES.iter().map(|(name, _)| *name).collect();
        format!("must be one of '{}'", names.join("', '")).into()
    })
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

//! `match_fraction(age, '>', 30)`: how likely a generalized value satisfies a predicate.

mod known;

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::error;
use crate::measure::cells::{
    Cell, CellColumn, CellForm, Comparison, Point, Reader, Selection, literals, value_type,
};

use self::known::Known;

const NAME: &str = "match_fraction";

/// The hierarchies of running plans.
static KNOWN: Known = Known::new();

/// The function, for plans.
pub(crate) fn match_fraction() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(MatchFraction::new())));
    Arc::clone(&FUNCTION)
}

/// The scalar function `match_fraction(generalized, predicate, …)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MatchFraction {
    signature: Signature,
}

impl MatchFraction {
    fn new() -> Self {
        Self {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }
}

/// What is asked of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Predicate {
    Compared(Comparison),
    Between { not: bool },
    In { not: bool },
    Null { not: bool },
    Like { not: bool },
}

const PREDICATES: &[(&str, Predicate)] = &[
    ("=", Predicate::Compared(Comparison::Equal)),
    ("<>", Predicate::Compared(Comparison::NotEqual)),
    ("!=", Predicate::Compared(Comparison::NotEqual)),
    ("<", Predicate::Compared(Comparison::Less)),
    ("<=", Predicate::Compared(Comparison::LessOrEqual)),
    (">", Predicate::Compared(Comparison::Greater)),
    (">=", Predicate::Compared(Comparison::GreaterOrEqual)),
    ("between", Predicate::Between { not: false }),
    ("not between", Predicate::Between { not: true }),
    ("in", Predicate::In { not: false }),
    ("not in", Predicate::In { not: true }),
    ("is null", Predicate::Null { not: false }),
    ("is not null", Predicate::Null { not: true }),
    ("like", Predicate::Like { not: false }),
    ("not like", Predicate::Like { not: true }),
];

impl Predicate {
    fn named(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let name = words.join(" ").to_lowercase();
        let known = PREDICATES.iter().find(|(n, _)| *n == name);
        known.map(|(_, predicate)| *predicate).ok_or_else(|| {
            let names: Vec<&str> = PREDICATES.iter().map(|(n, _)| *n).collect();
            let nearest = error::did_you_mean(&name, names.iter().copied());
            error::argument(
                NAME,
                "predicate",
                format!(
                    "must be one of '{}', not '{text}'{nearest}",
                    names.join("', '")
                ),
            )
        })
    }

    /// Number of constants it takes.
    fn constants(self) -> usize {
        match self {
            Predicate::Between { .. } => 2,
            Predicate::Null { .. } => 0,
            _ => 1,
        }
    }
}

impl ScalarUDFImpl for MatchFraction {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let given = args.arg_fields.len();
        let Some(Some(predicate)) = args.scalar_arguments.get(1) else {
            return Err(usage());
        };
        let text = predicate.try_as_str().flatten().ok_or_else(usage)?;
        let predicate = Predicate::named(text)?;
        let wanted = 2 + predicate.constants();
        if given != wanted && given != wanted + 1 {
            let constants = error::count(predicate.constants() as u64, "constant");
            return Err(error::call(
                NAME,
                format!(
                    "'{text}' takes {constants}, and after them at most a domain; {} came",
                    given - 2
                ),
            ));
        }
        Ok(Arc::new(Field::new(NAME, DataType::Float64, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [generalized, predicate, rest @ ..] = args.args.as_slice() else {
            return Err(usage());
        };
        let ColumnarValue::Scalar(predicate) = predicate else {
            return Err(usage());
        };
        let predicate = Predicate::named(predicate.try_as_str().flatten().ok_or_else(usage)?)?;
        let constant = rest.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let column = match generalized {
            ColumnarValue::Array(array) => Arc::clone(array),
            ColumnarValue::Scalar(value) => {
                value.to_array_of_size(if constant { 1 } else { rows })?
            }
        };
        if !constant {
            let rest: Vec<ArrayRef> = rest
                .iter()
                .map(|a| a.to_array(rows))
                .collect::<Result<_>>()?;
            let fractions = (0..rows)
                .map(|i| {
                    let at: Vec<ArrayRef> = rest.iter().map(|a| a.slice(i, 1)).collect();
                    let fraction = fractions(&column.slice(i, 1), predicate, &at)?;
                    Ok(fraction.is_valid(0).then(|| fraction.value(0)))
                })
                .collect::<Result<Float64Array>>()?;
            return Ok(ColumnarValue::Array(Arc::new(fractions)));
        }
        let rest: Vec<ArrayRef> = rest.iter().map(one_row).collect::<Result<_>>()?;
        let fractions = fractions(&column, predicate, &rest)?;
        Ok(match generalized {
            ColumnarValue::Array(_) => ColumnarValue::Array(Arc::new(fractions)),
            ColumnarValue::Scalar(_) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&fractions, 0)?)
            }
        })
    }
}

/// A constant as an array of one row. A list is one already, and stays the same one, by which it is known again.
fn one_row(constant: &ColumnarValue) -> Result<ArrayRef> {
    match constant {
        ColumnarValue::Scalar(ScalarValue::List(list)) => Ok(Arc::clone(list) as ArrayRef),
        other => other.to_array(1),
    }
}

fn usage() -> DataFusionError {
    error::call(
        NAME,
        "expected a published column, a predicate in quotes and its constants: (age, '>', 30), (age, 'between', 30, 40), (postcode, 'in', [10070, 10073])",
    )
}

/// The fractions of a column for constants that are arrays of one row.
fn fractions(column: &ArrayRef, predicate: Predicate, rest: &[ArrayRef]) -> Result<Float64Array> {
    let (constants, domain) = rest.split_at(predicate.constants().min(rest.len()));
    let (reader, target) = reading(column.data_type(), constants);
    let Some(selection) = selection(predicate, constants, target.as_ref())? else {
        // A comparison with NULL is neither true nor false.
        return Ok(Float64Array::from(vec![0.0; column.len()]));
    };
    let (reader, domain) = match domain.first() {
        Some(hierarchy) if is_hierarchy(hierarchy.data_type()) => {
            let reader = KNOWN.reader(reader, hierarchy)?;
            let domain = reader.labels().and_then(|labels| labels.domain()).cloned();
            (reader, domain)
        }
        Some(domain) => {
            let domain = domain_of(reader.clone(), domain)?;
            (reader, domain)
        }
        None => (reader, None),
    };
    let CellColumn { cells, codes } = reader.read(column)?;
    let shares: Vec<Option<f64>> = cells
        .iter()
        .map(|cell| match &domain {
            Some(domain) => cell.within(domain).share(&selection),
            None => cell.share(&selection),
        })
        .collect();
    Ok(codes.iter().map(|code| shares[*code as usize]).collect())
}

/// Whether a type is that of a hierarchy: a list of labels per leaf.
fn is_hierarchy(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(row) => match row.data_type() {
            DataType::List(label) => CellForm::of(label.data_type()) == CellForm::Text,
            _ => false,
        },
        _ => false,
    }
}

/// How the column is read, and the type that constants take to be compared with it.
fn reading(column: &DataType, constants: &[ArrayRef]) -> (Reader, Option<DataType>) {
    if let Some(value_type) = value_type(column) {
        return (Reader::new(), Some(value_type));
    }
    // Texts do not say what they hold: the constants do.
    let constant = constants.first().map(|c| item_type(c.data_type()));
    match constant {
        Some(t) if t.is_numeric() => (Reader::new().with_numbers(), None),
        Some(t) if t.is_temporal() || t == DataType::Boolean => {
            (Reader::new().with_type(t.clone()), Some(t))
        }
        _ => (Reader::new(), None),
    }
}

/// The type of the constants in a list, or of a single one.
fn item_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            match item.data_type() {
                DataType::Struct(fields) => fields
                    .find("lo")
                    .map_or(DataType::Null, |(_, f)| f.data_type().clone()),
                other => other.clone(),
            }
        }
        other => other.clone(),
    }
}

/// The values that satisfy a predicate; `None` if it compares with NULL.
fn selection(
    predicate: Predicate,
    constants: &[ArrayRef],
    target: Option<&DataType>,
) -> Result<Option<Selection>> {
    let read = |array: &ArrayRef| constants_of(array, target);
    let one =
        |array: &ArrayRef| Ok::<_, DataFusionError>(read(array)?.into_iter().next().flatten());
    let values = |selection: Selection, not: bool| {
        if not {
            selection.complement().and(&Selection::values())
        } else {
            selection
        }
    };
    Ok(match (predicate, constants) {
        (Predicate::Compared(how), [constant]) => {
            one(constant)?.map(|point| Selection::compared(how, point))
        }
        (Predicate::Between { not }, [lo, hi]) => match (one(lo)?, one(hi)?) {
            (Some(lo), Some(hi)) => Some(values(Selection::between(lo, hi), not)),
            _ => None,
        },
        (Predicate::Null { not: false }, _) => Some(Selection::missing()),
        (Predicate::Null { not: true }, _) => Some(Selection::values()),
        (Predicate::Like { not }, [pattern]) => {
            let text = ScalarValue::try_from_array(pattern, 0)?;
            text.try_as_str()
                .flatten()
                .map(|pattern| Ok::<_, DataFusionError>(values(like(pattern)?, not)))
                .transpose()?
        }
        (Predicate::In { not }, [list]) => {
            let listed = listed(list, target)?;
            // NOT IN (…, NULL) is never true.
            listed.and_then(|(selection, null)| (!(not && null)).then(|| values(selection, not)))
        }
        _ => return Err(usage()),
    })
}

/// Constants as points.
fn constants_of(array: &ArrayRef, target: Option<&DataType>) -> Result<Vec<Option<Point>>> {
    let own;
    let target = match target {
        Some(target) => target,
        // Beside texts, a decimal is a number as any other.
        None if array.data_type().is_decimal() => &DataType::Float64,
        None => {
            own = array.data_type().clone();
            &own
        }
    };
    literals(array, target).map_err(|_| {
        error::call(
            NAME,
            format!(
                "a constant of type {} cannot be compared with values of type {target}",
                array.data_type()
            ),
        )
    })
}

/// What a list selects, and whether it holds NULL: values, or ranges as structs with `lo` and `hi`.
fn listed(list: &ArrayRef, target: Option<&DataType>) -> Result<Option<(Selection, bool)>> {
    if CellForm::of(list.data_type()) != CellForm::Sets {
        return Err(error::call(
            NAME,
            "'in' takes a list: (postcode, 'in', [10070, 10073])",
        ));
    }
    if list.is_null(0) {
        return Ok(None);
    }
    let items = match list.data_type() {
        DataType::List(_) => list.as_list::<i32>().value(0),
        DataType::LargeList(_) => list.as_list::<i64>().value(0),
        _ => list.as_fixed_size_list().value(0),
    };
    if CellForm::of(items.data_type()) == CellForm::Intervals {
        return ranges(&items, target).map(|selection| Some((selection, false)));
    }
    let points = constants_of(&items, target)?;
    let null = points.iter().any(Option::is_none);
    Ok(Some((
        Selection::one_of(points.into_iter().flatten()),
        null,
    )))
}

/// Ranges with both ends included; a NULL end is no end.
fn ranges(items: &ArrayRef, target: Option<&DataType>) -> Result<Selection> {
    let structs = items.as_struct();
    let end = |name: &str| {
        let column = structs.column_by_name(name).ok_or_else(usage)?;
        constants_of(column, target)
    };
    let open = |name: &str| {
        structs
            .column_by_name(name)
            .and_then(|c| c.as_boolean_opt())
    };
    let (lo_open, hi_open) = (open("lo_open"), open("hi_open"));
    let is_open = |flags: Option<&datafusion::arrow::array::BooleanArray>, i: usize| {
        flags.is_some_and(|f| f.is_valid(i) && f.value(i))
    };
    let mut selection = Selection::nothing();
    for (i, (lo, hi)) in end("lo")?.into_iter().zip(end("hi")?).enumerate() {
        let from = match lo {
            Some(lo) if is_open(lo_open, i) => Selection::compared(Comparison::Greater, lo),
            Some(lo) => Selection::compared(Comparison::GreaterOrEqual, lo),
            None => Selection::values(),
        };
        let to = match hi {
            Some(hi) if is_open(hi_open, i) => Selection::compared(Comparison::Less, hi),
            Some(hi) => Selection::compared(Comparison::LessOrEqual, hi),
            None => Selection::values(),
        };
        selection = selection.or(&from.and(&to));
    }
    Ok(selection)
}

/// `LIKE 'abc%'` and `LIKE 'abc'`.
pub(super) fn like(pattern: &str) -> Result<Selection> {
    let prefix = pattern.strip_suffix('%');
    if prefix.unwrap_or(pattern).contains(['%', '_', '\\']) {
        return Err(error::call(
            NAME,
            "'like' knows patterns with one % at their end, no others",
        ));
    }
    Ok(match prefix {
        Some(prefix) => Selection::prefixed(prefix),
        None => Selection::compared(Comparison::Equal, Point::text(pattern)),
    })
}

/// A domain given as a published value would be: `{lo: 0, hi: 120}`, `['F', 'M']`, `'[0, 120]'`, or a list of texts in
/// the text notation.
fn domain_of(reader: Reader, domain: &ArrayRef) -> Result<Option<Cell>> {
    if domain.is_null(0) {
        return Ok(None);
    }
    let texts = match domain.data_type() {
        DataType::List(item) if CellForm::of(item.data_type()) == CellForm::Text => {
            Some(domain.as_list::<i32>().value(0))
        }
        _ => None,
    };
    let cells = reader.read(texts.as_ref().unwrap_or(domain))?.cells;
    Ok(Cell::hull(&cells))
}

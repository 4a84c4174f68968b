//! From published columns to cells.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, StructArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::error::ArrowError;

use super::calendar::calendar;
use super::point::points;
use super::text::Notation;
use super::{Cell, CellColumn, Interner, LabelCells, Point};

/// How a column shows its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellForm {
    /// Structs of `lo` and `hi`.
    Intervals,
    /// Lists of values.
    Sets,
    /// Texts, in the text notation unless they are plain.
    Text,
    /// Exact values.
    Plain,
}

impl CellForm {
    /// The form of columns of a type.
    pub fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Struct(fields)
                if fields.find("lo").is_some() && fields.find("hi").is_some() =>
            {
                CellForm::Intervals
            }
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                CellForm::Sets
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => CellForm::Text,
            DataType::Dictionary(_, value) => CellForm::of(value),
            _ => CellForm::Plain,
        }
    }
}

/// Whether the type alone says that a column is generalized.
pub fn is_generalized(data_type: &DataType) -> bool {
    matches!(
        CellForm::of(data_type),
        CellForm::Intervals | CellForm::Sets
    )
}

/// The type of the values behind a published column; `None` for texts, which do not say it.
pub fn value_type(data_type: &DataType) -> Option<DataType> {
    let plain = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        other => other.clone(),
    };
    match data_type {
        DataType::Struct(fields) => fields.find("lo").map(|(_, field)| plain(field)),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(plain(item))
        }
        DataType::Dictionary(_, value) => value_type(value),
        other if CellForm::of(other) == CellForm::Text => None,
        other => Some(other.clone()),
    }
}

/// What texts are read as.
#[derive(Debug, Clone, Default, PartialEq)]
enum Values {
    /// Names; ends of intervals as numbers where they are.
    #[default]
    Unknown,
    /// Whole numbers, or reals where a cell shows a fraction.
    Numbers,
    /// Values of this type.
    Typed(DataType),
}

/// How a published column is read.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    values: Values,
    labels: Option<Arc<LabelCells>>,
    plain: bool,
}

impl Reader {
    /// Reads texts as names, and whatever is typed as its type says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads texts as values of this type, that of the original column, so that both can be compared.
    #[must_use]
    pub fn with_type(mut self, value_type: DataType) -> Self {
        self.values = Values::Typed(match value_type {
            DataType::Dictionary(_, value) => *value,
            other => other,
        });
        self
    }

    /// Reads texts as numbers.
    #[must_use]
    pub fn with_numbers(mut self) -> Self {
        self.values = Values::Numbers;
        self
    }

    /// Knows the labels of a hierarchy.
    #[must_use]
    pub fn with_labels(mut self, labels: Arc<LabelCells>) -> Self {
        self.labels = Some(labels);
        self
    }

    /// Knows the labels of a hierarchy given as a list of labels per leaf, from the leaf to the root. Leaves are read as
    /// the column's values are, so that they can be compared.
    pub fn with_hierarchy(self, rows: &ListArray) -> Result<Self, ArrowError> {
        let labels = cast(rows.values(), &DataType::Utf8)?;
        let labels = labels.as_string::<i32>();
        let chain = |row: usize| -> Vec<String> {
            let offsets = rows.value_offsets();
            let labels = (offsets[row] as usize..offsets[row + 1] as usize)
                .filter(|i| labels.is_valid(*i))
                .map(|i| labels.value(i).to_owned());
            labels.collect()
        };
        let chains: Vec<Vec<String>> = (0..rows.len())
            .filter(|row| rows.is_valid(*row))
            .map(chain)
            .collect();
        let leaves = chains.iter().map(|chain| chain.first().map(String::as_str));
        let leaves: ArrayRef = Arc::new(leaves.collect::<StringArray>());
        let leaves = match &self.values {
            Values::Unknown => points(&leaves)?,
            Values::Typed(wanted) => points(&cast(&leaves, wanted)?)?,
            Values::Numbers => {
                let number = |text: &str| numbers(&[text]).and_then(|mut read| read.pop());
                let texts = leaves.as_string::<i32>().iter();
                texts.map(|text| number(text?)).collect()
            }
        };
        Ok(self.with_labels(Arc::new(LabelCells::of(leaves, &chains))))
    }

    /// Whether both read texts as values of the same type.
    pub fn reads_as(&self, other: &Self) -> bool {
        self.values == other.values && self.plain == other.plain
    }

    /// The labels of the hierarchy it knows.
    pub fn labels(&self) -> Option<&Arc<LabelCells>> {
        self.labels.as_ref()
    }

    /// Reads texts as they are: a column that is not generalized.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.plain = true;
        self
    }

    /// Reads a whole column.
    pub fn read(self, array: &ArrayRef) -> Result<CellColumn, ArrowError> {
        let mut interner = Interner::new(self);
        let codes = interner.read(array)?;
        Ok(CellColumn {
            cells: interner.into_cells(),
            codes,
        })
    }

    /// The cells of an array, one each.
    pub(super) fn cells(&self, array: &ArrayRef) -> Result<Vec<Cell>, ArrowError> {
        match (array.data_type(), CellForm::of(array.data_type())) {
            (DataType::Dictionary(_, value), _) => self.cells(&cast(array, value)?),
            (_, CellForm::Intervals) => self.intervals(array.as_struct()),
            (_, CellForm::Sets) => self.sets(array),
            (_, CellForm::Text) if !self.plain => {
                self.texts(cast(array, &DataType::Utf8)?.as_string())
            }
            _ => {
                let values = points(&self.typed(array)?)?;
                Ok(values.into_iter().map(exact).collect())
            }
        }
    }

    fn intervals(&self, array: &StructArray) -> Result<Vec<Cell>, ArrowError> {
        let end = |name: &str| {
            let column = array.column_by_name(name).ok_or_else(|| {
                ArrowError::SchemaError("an interval has the fields lo and hi".to_owned())
            })?;
            points(&self.typed(column)?)
        };
        let ends = end("lo")?.into_iter().zip(end("hi")?).enumerate();
        Ok(ends
            .map(|(i, ends)| match ends {
                _ if array.is_null(i) => Cell::Suppressed,
                (None, None) => Cell::Missing,
                (Some(lo), Some(hi)) if lo <= hi => Cell::Interval(lo, hi),
                // Half an interval, or one the wrong way round, says nothing that could be relied on.
                _ => Cell::Suppressed,
            })
            .collect())
    }

    fn sets(&self, array: &ArrayRef) -> Result<Vec<Cell>, ArrowError> {
        let item = match array.data_type() {
            DataType::LargeList(item) | DataType::FixedSizeList(item, _) => Arc::clone(item),
            DataType::List(item) => Arc::clone(item),
            other => {
                return Err(ArrowError::SchemaError(format!("{other} is not a list")));
            }
        };
        let lists = cast(array, &DataType::List(item))?;
        let lists = lists.as_list::<i32>();
        let values = points(&self.typed(lists.values())?)?;
        let offsets = lists.value_offsets();
        Ok((0..lists.len())
            .map(|i| {
                let items = &values[offsets[i] as usize..offsets[i + 1] as usize];
                if lists.is_null(i) || items.is_empty() {
                    Cell::Suppressed
                } else if items.iter().all(Option::is_none) {
                    Cell::Missing
                } else {
                    Cell::set(items.iter().flatten().cloned())
                }
            })
            .collect())
    }

    /// Values in the type they are compared in.
    fn typed(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let Values::Typed(wanted) = &self.values else {
            return Ok(Arc::clone(array));
        };
        let plain_number = |t: &DataType| t.is_integer() || t.is_floating();
        let given = array.data_type();
        if given == wanted || plain_number(given) && plain_number(wanted) {
            return Ok(Arc::clone(array));
        }
        let values = cast(array, wanted)?;
        let lost = values.null_count().saturating_sub(array.null_count());
        if lost > 0 {
            return Err(unreadable(lost));
        }
        Ok(values)
    }

    fn texts(&self, array: &StringArray) -> Result<Vec<Cell>, ArrowError> {
        let label = |text: &str| {
            let given = self.labels.as_ref().and_then(|l| l.cell(text));
            given.cloned().or_else(|| match &self.values {
                Values::Typed(value_type) => calendar(text, value_type),
                _ => None,
            })
        };
        let labels: Vec<Option<Cell>> = array.iter().map(|text| label(text?)).collect();
        let notations: Vec<Option<Notation>> = array
            .iter()
            .zip(&labels)
            .map(|(text, label)| text.filter(|_| label.is_none()).map(Notation::of))
            .collect();
        let mut values = self.values_of(&notations)?.into_iter();
        let mut unread = 0;
        let mut cells = Vec::with_capacity(array.len());
        for ((text, label), notation) in array.iter().zip(labels).zip(&notations) {
            let cell = match (text, notation) {
                (None, _) => Some(Cell::Missing),
                (Some(_), None) => label,
                (_, Some(notation)) => {
                    let count = notation.values().len();
                    let values: Option<Vec<Point>> = values.by_ref().take(count).collect();
                    values.and_then(|values| self.cell(notation, values))
                }
            };
            unread += usize::from(cell.is_none());
            cells.push(cell.unwrap_or(Cell::Suppressed));
        }
        if unread > 0 {
            return Err(unreadable(unread));
        }
        Ok(cells)
    }

    /// All values in some notations, one after the other; `None` for what cannot be read.
    fn values_of(&self, notations: &[Option<Notation>]) -> Result<Vec<Option<Point>>, ArrowError> {
        match &self.values {
            Values::Typed(wanted) => {
                let texts = notations.iter().flatten().flat_map(Notation::values);
                let texts: ArrayRef = Arc::new(texts.map(Some).collect::<StringArray>());
                points(&cast(&texts, wanted)?)
            }
            values => Ok(notations
                .iter()
                .flatten()
                .flat_map(|notation| {
                    let texts = notation.values();
                    let interval = matches!(notation, Notation::Interval { .. });
                    match numbers(&texts) {
                        Some(read) if interval || *values == Values::Numbers => {
                            read.into_iter().map(Some).collect()
                        }
                        _ if *values == Values::Numbers => vec![None; texts.len()],
                        _ => texts.into_iter().map(|t| Some(Point::text(t))).collect(),
                    }
                })
                .collect()),
        }
    }

    fn cell(&self, notation: &Notation, values: Vec<Point>) -> Option<Cell> {
        match notation {
            Notation::Suppressed => Some(Cell::Suppressed),
            // Where there is a hierarchy, every value is one of its labels.
            Notation::Plain(_) if self.labels.is_some() => None,
            Notation::Plain(_) => values.into_iter().next().map(Cell::exact),
            Notation::Set(_) => Some(Cell::set(values)),
            Notation::Masked { prefix, stars } => Some(self.masked(prefix, *stars)),
            Notation::Interval {
                lo_open, hi_open, ..
            } => {
                let [lo, hi]: [Point; 2] = values.try_into().ok()?;
                // Whole numbers have a next one; on a line an end more or less makes no difference.
                let (lo, hi) = match (lo, hi) {
                    (Point::Integer(lo), Point::Integer(hi)) => (
                        Point::Integer(lo + i128::from(*lo_open)),
                        Point::Integer(hi - i128::from(*hi_open)),
                    ),
                    ends => ends,
                };
                (lo <= hi).then_some(Cell::Interval(lo, hi))
            }
        }
    }

    /// A mask over whole numbers is an interval.
    fn masked(&self, prefix: &str, stars: u32) -> Cell {
        let whole = match &self.values {
            Values::Typed(t) => t.is_integer(),
            Values::Numbers => true,
            Values::Unknown => false,
        };
        let step = 10i128.checked_pow(stars);
        let shown = prefix.parse::<i128>().ok().filter(|n| *n > 0);
        match (whole, shown, step) {
            (true, Some(shown), Some(step)) if shown.checked_mul(step).is_some() => Cell::Interval(
                Point::Integer(shown * step),
                Point::Integer(shown * step + (step - 1)),
            ),
            _ => Cell::Masked {
                prefix: prefix.into(),
                stars,
            },
        }
    }
}

fn exact(value: Option<Point>) -> Cell {
    value.map_or(Cell::Missing, Cell::exact)
}

fn numbers(texts: &[&str]) -> Option<Vec<Point>> {
    let whole: Option<Vec<Point>> = texts
        .iter()
        .map(|t| t.parse().ok().map(Point::Integer))
        .collect();
    whole.or_else(|| {
        let reals = texts.iter();
        reals
            .map(|t| t.parse().ok().and_then(Point::real))
            .collect()
    })
}

fn unreadable(count: usize) -> ArrowError {
    ArrowError::ParseError(format!(
        "{count} distinct published values are neither in the text notation nor values of the column or labels of its hierarchy"
    ))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, Int32Builder, ListBuilder};
    use datafusion::arrow::buffer::NullBuffer;
    use datafusion::arrow::datatypes::Fields;

    use super::*;

    fn whole(lo: i128, hi: i128) -> Cell {
        Cell::Interval(Point::Integer(lo), Point::Integer(hi))
    }

    fn texts(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn typed_intervals() -> Result<(), ArrowError> {
        let ends = |v: Vec<Option<i32>>| Arc::new(Int32Array::from(v)) as ArrayRef;
        let fields = Fields::from(vec![
            Field::new("lo", DataType::Int32, true),
            Field::new("hi", DataType::Int32, true),
        ]);
        let array: ArrayRef = Arc::new(StructArray::try_new(
            fields,
            vec![
                ends(vec![Some(33), None, None, Some(33)]),
                ends(vec![Some(34), None, None, Some(34)]),
            ],
            Some(NullBuffer::from(vec![true, true, false, true])),
        )?);
        let column = Reader::new().read(&array)?;
        assert_eq!(
            column.cells,
            [whole(33, 34), Cell::Missing, Cell::Suppressed]
        );
        assert_eq!(column.codes, [0, 1, 2, 0]);
        assert_eq!(column.cell(3), &whole(33, 34));
        Ok(())
    }

    #[test]
    fn typed_sets() -> Result<(), ArrowError> {
        let mut lists = ListBuilder::new(Int32Builder::new());
        lists.append_value([Some(10_073), Some(10_070)]);
        lists.append_value([None]);
        lists.append_null();
        let array: ArrayRef = Arc::new(lists.finish());
        let column = Reader::new().read(&array)?;
        let set = Cell::set([Point::Integer(10_070), Point::Integer(10_073)]);
        assert_eq!(column.cells, [set, Cell::Missing, Cell::Suppressed]);
        Ok(())
    }

    #[test]
    fn texts_take_the_original_type() -> Result<(), ArrowError> {
        let array = texts(&[
            Some("[33, 34]"),
            Some("{33, 35}"),
            Some("36"),
            Some("3*"),
            Some("*"),
            None,
            Some("[30, 40["),
        ]);
        let cells = Reader::new().with_type(DataType::Int32).read(&array)?.cells;
        assert_eq!(
            cells,
            [
                whole(33, 34),
                Cell::set([Point::Integer(33), Point::Integer(35)]),
                Cell::exact(Point::Integer(36)),
                whole(30, 39),
                Cell::Suppressed,
                Cell::Missing,
                whole(30, 39),
            ]
        );
        assert_eq!(Reader::new().with_numbers().read(&array)?.cells, cells);
        Ok(())
    }

    #[test]
    fn names_dates_and_reals() -> Result<(), ArrowError> {
        let read = |value_type, text| {
            let column = Reader::new()
                .with_type(value_type)
                .read(&texts(&[Some(text)]));
            column.map(|c| c.cells[0].clone())
        };
        assert_eq!(
            read(DataType::Date32, "[1970-01-02, 1970-01-03]")?,
            whole(1, 2)
        );
        assert_eq!(
            read(DataType::Float64, "[1, 2.5]")?,
            Cell::Interval(Point::Real(1.0), Point::Real(2.5))
        );
        assert_eq!(
            read(DataType::Utf8, "{M, F}")?,
            Cell::set([Point::text("F"), Point::text("M")])
        );
        let number = Reader::new()
            .with_numbers()
            .read(&texts(&[Some("[0.5, 2]")]))?;
        assert_eq!(
            number.cells,
            [Cell::Interval(Point::Real(0.5), Point::Real(2.0))]
        );
        Ok(())
    }

    #[test]
    fn labels_and_plain_texts() -> Result<(), ArrowError> {
        let labels = LabelCells::try_new(
            &[
                texts(&[Some("Lyon"), Some("Nice")]),
                texts(&[Some("France"), Some("France")]),
            ],
            &DataType::Utf8,
        )?;
        let array = texts(&[Some("France"), Some("Lyon"), Some("{Lyon, Nice}")]);
        let column = Reader::new().with_labels(Arc::new(labels)).read(&array)?;
        let both = Cell::set([Point::text("Lyon"), Point::text("Nice")]);
        let lyon = Cell::exact(Point::text("Lyon"));
        assert_eq!(column.cells, [both.clone(), lyon, both]);
        let plain = Reader::new().plain().read(&array)?;
        assert_eq!(plain.cells[2], Cell::exact(Point::text("{Lyon, Nice}")));
        Ok(())
    }

    #[test]
    fn what_cannot_be_read_is_counted_not_shown() {
        let array = texts(&[Some("secret"), Some("[1, 2]"), Some("hidden")]);
        let error = Reader::new().with_type(DataType::Int32).read(&array);
        let message = error.map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("2 distinct"), "{message}");
        assert!(!message.contains("secret") && !message.contains("hidden"));
    }
}

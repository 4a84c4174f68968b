//! Anatomized tables in one relation: the rows of all tables, each with the columns of its own table.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

use super::super::codes::invalid;
use super::{AnatomyTable, ShownTables};

/// One of the tables, taken out.
struct Part {
    gid: ArrayRef,
    columns: Vec<ArrayRef>,
    count: ArrayRef,
}

impl Part {
    fn table(&self) -> AnatomyTable<'_> {
        AnatomyTable {
            gid: &self.gid,
            columns: &self.columns,
            count: &self.count,
        }
    }
}

impl ShownTables {
    /// Reads a relation in long form.
    ///
    /// `subtable` names the table of each row: `qi_1`, `qi_2` … for the sub-tables, `sa` for the sensitive values. Sub-table
    /// `i` has the columns `division[i]` of `columns`; its rows are NULL in all others, and in `sensitive`. `whole` is
    /// as for [`ShownTables::with_prior`].
    pub fn from_long_form(
        subtable: &ArrayRef,
        table: AnatomyTable<'_>,
        division: &[Vec<usize>],
        sensitive: &ArrayRef,
        whole: Option<(&ArrayRef, &ArrayRef)>,
    ) -> Result<Self, ArrowError> {
        let rows = subtable.len();
        let arrays = [table.gid, table.count, sensitive];
        if arrays
            .into_iter()
            .chain(table.columns)
            .any(|a| a.len() != rows)
        {
            return invalid("verify: columns of an anatomized table differ in length".to_owned());
        }
        if division
            .iter()
            .flatten()
            .any(|column| *column >= table.columns.len())
        {
            return invalid("verify: a sub-table has a column that is not there".to_owned());
        }
        let names = cast(subtable, &DataType::Utf8)?;
        let names = names.as_string::<i32>();
        let of = |name: &str| -> Vec<u32> {
            let is = |row: &u32| {
                let row = *row as usize;
                names.is_valid(row) && names.value(row) == name
            };
            (0..rows as u32).filter(is).collect()
        };
        let nulls: Vec<_> = table.columns.iter().map(|c| c.logical_nulls()).collect();
        let value_nulls = sensitive.logical_nulls();
        let shown = |nulls: &Option<NullBuffer>, row: usize| {
            nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
        };
        let mut stray = 0;
        let mut known = 0;
        let mut part = |name: &str, own: &[usize], values: bool| -> Result<Part, ArrowError> {
            let rows = of(name);
            known += rows.len();
            let shows = |row: &&u32| {
                let row = **row as usize;
                let others = nulls.iter().enumerate();
                let mut others = others.filter(|(column, _)| !own.contains(column));
                others.any(|(_, nulls)| shown(nulls, row)) || (!values && shown(&value_nulls, row))
            };
            stray += rows.iter().filter(shows).count();
            let rows = UInt32Array::from(rows);
            let taken = |array: &ArrayRef| take(array, &rows, None);
            let columns = match values {
                true => vec![taken(sensitive)?],
                false => own
                    .iter()
                    .map(|column| taken(&table.columns[*column]))
                    .collect::<Result<_, _>>()?,
            };
            Ok(Part {
                gid: taken(table.gid)?,
                columns,
                count: taken(table.count)?,
            })
        };
        let sub_tables = division
            .iter()
            .enumerate()
            .map(|(number, own)| part(&format!("qi_{}", number + 1), own, false))
            .collect::<Result<Vec<_>, _>>()?;
        let values = part("sa", &[], true)?;
        let tables: Vec<AnatomyTable<'_>> = sub_tables.iter().map(Part::table).collect();
        let mut anatomy = Self::read(&tables, values.table(), whole)?;
        anatomy.faults.unknown_table = rows - known;
        anatomy.faults.stray = stray;
        Ok(anatomy)
    }
}

//! The classes that published rows show.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::ExecutionPlan;
use hashbrown::HashMap;

use crate::check::comparable_rows;
use crate::engine::collect;
use crate::error;
use crate::measure::CompareSpec;
use crate::measure::cells::{Interner, LabelCells, Point, Reader};

/// How each published column is read: as values of the original's type, with the labels of its hierarchy.
#[derive(Debug)]
pub(super) struct Readers {
    columns: Vec<Reader>,
    _reservation: MemoryReservation,
}

impl Readers {
    pub async fn read(
        spec: &CompareSpec,
        children: &[Arc<dyn ExecutionPlan>],
        context: &Arc<TaskContext>,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let original = children[1].schema();
        let mut hierarchies = children[2..].iter();
        let mut columns = vec![];
        for (at, asked) in spec.columns.iter().enumerate() {
            let value_type = original.field(1 + at).data_type();
            let mut reader = Reader::new().with_type(value_type.clone());
            if asked.labels
                && let Some(hierarchy) = hierarchies.next()
            {
                let hierarchy = collect(hierarchy, context, &reservation).await?;
                let labels = LabelCells::try_new(hierarchy.columns(), value_type)?;
                reader = reader.with_labels(Arc::new(labels));
            }
            columns.push(reader);
        }
        Ok(Self {
            columns,
            _reservation: reservation,
        })
    }
}

/// The name of a class: the bytes of its published values.
pub(super) type ClassName = Arc<[u8]>;

/// Classes that are remembered; then memory is given back and they are read again.
const MOST_CLASSES: usize = 1 << 16;

/// The classes of a published table, as far as they were read.
pub(super) struct Shown {
    columns: Vec<Interner>,
    numbers: HashMap<ClassName, u32>,
    names: Vec<ClassName>,
    /// The cells of each class, one after the other.
    cells: Vec<u32>,
    /// The class of each row of the batch that was read last.
    rows: Vec<u32>,
    bytes: usize,
}

impl Shown {
    pub fn new(readers: &Readers) -> Self {
        Self {
            columns: readers.columns.iter().cloned().map(Interner::new).collect(),
            numbers: HashMap::new(),
            names: vec![],
            cells: vec![],
            rows: vec![],
            bytes: 0,
        }
    }

    /// Reads the classes of a batch's rows.
    pub fn read(&mut self, spec: &CompareSpec, columns: &[ArrayRef]) -> Result<()> {
        if self.names.len() > MOST_CLASSES {
            self.columns.iter_mut().for_each(Interner::clear);
            self.numbers.clear();
            self.names.clear();
            self.cells.clear();
            self.bytes = 0;
        }
        self.rows.clear();
        let mut fresh = vec![];
        for (at, row) in (0u32..).zip(&comparable_rows(columns)?) {
            let next = self.names.len() as u32;
            let number = match self.numbers.get(row.data()) {
                Some(number) => *number,
                None => {
                    let name = ClassName::from(row.data());
                    self.bytes += 2 * (name.len() + 64);
                    self.numbers.insert(Arc::clone(&name), next);
                    self.names.push(name);
                    fresh.push(at);
                    next
                }
            };
            self.rows.push(number);
        }
        if fresh.is_empty() {
            return Ok(());
        }
        let (width, fresh) = (columns.len(), UInt32Array::from(fresh));
        let begin = self.cells.len();
        self.cells.resize(begin + width * fresh.len(), 0);
        self.bytes += 4 * width * fresh.len();
        for (at, (column, interner)) in columns.iter().zip(&mut self.columns).enumerate() {
            let known = interner.cells().len();
            let codes = interner.read(&take(column, &fresh, None)?);
            // The reader's messages count cells and show none.
            let codes = codes.map_err(|e| {
                let name = &spec.columns[at].name;
                error::data(
                    &spec.function,
                    format!("column '{name}' cannot be read: {e}"),
                )
            })?;
            self.bytes += 256 * (interner.cells().len() - known);
            for (class, code) in codes.into_iter().enumerate() {
                self.cells[begin + class * width + at] = code;
            }
        }
        Ok(())
    }

    /// The class of a row of the batch that was read last.
    pub fn class(&self, row: usize) -> u32 {
        self.rows[row]
    }

    pub fn name(&self, class: u32) -> &ClassName {
        &self.names[class as usize]
    }

    /// Whether a class covers some values, one per column.
    pub fn covers(&self, class: u32, values: &[Option<Point>]) -> bool {
        let begin = class as usize * self.columns.len();
        let cells = self.cells[begin..].iter().zip(&self.columns);
        let mut cells = cells.map(|(code, column)| &column.cells()[*code as usize]);
        let mut values = values.iter();
        values.all(|value| cells.next().is_some_and(|cell| cell.covers(value.as_ref())))
    }

    pub fn size(&self) -> usize {
        self.bytes + 4 * self.rows.capacity()
    }
}

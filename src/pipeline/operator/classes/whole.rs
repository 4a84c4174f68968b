//! What is read once, for all classes: the sensitive values of the whole table, and the hierarchy of their labels.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, UInt64Array};
use datafusion::arrow::compute::{cast, concat_batches, sort_to_indices, take};
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::{Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use hashbrown::HashMap;

use crate::check::{ShownClasses, comparable_rows};
use crate::engine::sliced_size;
use crate::error;
use crate::measure::{ClassesSpec, LabelPlaces, Reference};

/// The sensitive values of the whole table.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) reference: Reference,
    /// The number of each value; `None` if the values were not asked for.
    numbers: Option<HashMap<Box<[u8]>, u32>>,
    /// The hierarchy of the values, and the place of each number.
    pub(super) labels: Option<(LabelPlaces, Vec<u32>)>,
    _reservation: MemoryReservation,
}

impl Whole {
    pub(super) async fn read(
        spec: &ClassesSpec,
        values: Option<Arc<dyn ExecutionPlan>>,
        labels: Option<Arc<dyn ExecutionPlan>>,
        context: &Arc<TaskContext>,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let Some(values) = values else {
            return Ok(Self {
                reference: Reference::default().with_c(spec.c.0, spec.c.1),
                numbers: None,
                labels: None,
                _reservation: reservation,
            });
        };
        let table = read(spec, &values, context, &reservation).await?;
        let labels = match labels {
            Some(labels) => {
                let rows = read(spec, &labels, context, &reservation).await?;
                Some(LabelPlaces::try_new(rows.columns())?)
            }
            None => None,
        };
        Self::of(spec, &table, labels, reservation)
    }

    fn of(
        spec: &ClassesSpec,
        table: &RecordBatch,
        labels: Option<LabelPlaces>,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let mut order: Vec<u64> = (0..table.num_rows() as u64).collect();
        if spec.ordered {
            let sorted = sort_to_indices(table.column(0), None, None)?;
            order = sorted.values().iter().map(|&i| u64::from(i)).collect();
        } else {
            // In any order that is the same in every run: what is sampled depends on the numbers.
            let rows = comparable_rows(&[Arc::clone(table.column(0))])?;
            order.sort_unstable_by_key(|&i| rows.row(i as usize));
        }
        let order = UInt64Array::from(order);
        let values = take(table.column(0), &order, None)?;
        let records = take(table.column(1), &order, None)?;
        let records = records.as_primitive::<Int64Type>();
        let rows = comparable_rows(&[values])?;
        let mut numbers: HashMap<Box<[u8]>, u32> = HashMap::with_capacity(rows.num_rows());
        let mut counts: Vec<u64> = vec![];
        let mut first: Vec<u64> = vec![];
        for (at, row) in rows.iter().enumerate() {
            // The engine may tell -0.0 from 0.0; we do not.
            let next = counts.len() as u32;
            let number = *numbers.entry(row.data().into()).or_insert(next);
            if number == next {
                counts.push(0);
                first.push(order.value(at));
            }
            counts[number as usize] += u64::try_from(records.value(at)).unwrap_or_default();
        }
        let mut reference = Reference::new(&counts, spec.ordered).with_c(spec.c.0, spec.c.1);
        if spec.categories {
            let categories = take(table.column(2), &UInt64Array::from(first.clone()), None)?;
            let categories = categories.as_primitive::<Int32Type>();
            if categories.null_count() > 0 {
                return Err(error::data(
                    &spec.function,
                    format!(
                        "{} in no category; every value of the sensitive column needs one",
                        match categories.null_count() as u64 {
                            1 => "1 sensitive value is".to_owned(),
                            n => format!("{n} sensitive values are"),
                        }
                    ),
                ));
            }
            let categories = categories.values().iter().map(|&c| c as u32);
            reference = reference.with_categories(categories.collect());
        }
        let labels = match labels {
            Some(labels) => {
                // The first of equal values stands for all.
                let first = take(table.column(0), &UInt64Array::from(first), None)?;
                let places = places(spec, &labels, &first)?;
                Some((labels, places))
            }
            None => None,
        };
        Ok(Self {
            reference,
            numbers: Some(numbers),
            labels,
            _reservation: reservation,
        })
    }

    /// The number of the value with each code.
    pub(super) fn numbers(
        &self,
        published: &ShownClasses,
        sensitive: &ArrayRef,
    ) -> Result<Option<Vec<u32>>> {
        let Some(numbers) = &self.numbers else {
            return Ok(None);
        };
        let examples = UInt32Array::from(published.examples().to_vec());
        let shown = take(sensitive, &examples, None)?;
        let rows = comparable_rows(&[Arc::clone(&shown)])?;
        let nulls = shown.logical_nulls();
        let number = |code: usize| {
            // No record shows NULL, perhaps: its entry is not looked at.
            if code == 0 || nulls.as_ref().is_some_and(|n| n.is_null(code)) {
                return Ok(u32::MAX);
            }
            match numbers.get(rows.row(code).data()) {
                Some(number) => Ok(*number),
                None => internal_err!("a value is not among the values of the table"),
            }
        };
        (0..rows.num_rows())
            .map(number)
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// All rows of a child that is read once.
async fn read(
    spec: &ClassesSpec,
    child: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    reservation: &MemoryReservation,
) -> Result<RecordBatch> {
    let mut stream = child.execute(0, Arc::clone(context))?;
    let mut batches = vec![];
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|e| error::input(&spec.function, e))?;
        // The values, their bytes in the map, and their order.
        reservation.try_grow(3 * sliced_size(&batch) + 32 * batch.num_rows())?;
        batches.push(batch);
    }
    Ok(concat_batches(&child.schema(), &batches)?)
}

/// The place of each value in the hierarchy.
fn places(spec: &ClassesSpec, labels: &LabelPlaces, values: &ArrayRef) -> Result<Vec<u32>> {
    let texts = cast(values, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>().iter();
    let places: Vec<Option<u32>> = texts.map(|text| labels.place(text?)).collect();
    match places.iter().filter(|place| place.is_none()).count() {
        0 => Ok(places.into_iter().flatten().collect()),
        foreign => Err(error::data(
            &spec.function,
            format!(
                "{} in the hierarchy of the sensitive column",
                match foreign {
                    1 => "1 sensitive value is not".to_owned(),
                    n => format!("{n} sensitive values are not"),
                }
            ),
        )),
    }
}

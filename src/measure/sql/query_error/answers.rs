//! `__workload_answers(workload, roles, …)`: the answers of all queries of a workload, as an aggregate.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use super::NAME;
use super::buckets::BucketAnswers;
use crate::error;
use crate::measure::query_error::{Answers, Fixed, GroupAnswers, Role, Totals, Workload};

/// The function, for plans.
pub(crate) fn workload_answers() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::new_from_impl(WorkloadAnswers {
            signature: Signature::variadic_any(Volatility::Immutable),
        }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WorkloadAnswers {
    signature: Signature,
}

/// Sums in fixed point, one per query, and then the number of rows.
fn sums_type() -> DataType {
    let item = Field::new_list_field(DataType::Decimal128(38, 0), true);
    DataType::List(Arc::new(item))
}

impl AggregateUDFImpl for WorkloadAnswers {
    fn name(&self) -> &str {
        "__workload_answers"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(sums_type())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format!("{}[sums]", args.name);
        Ok(vec![Arc::new(Field::new(name, sums_type(), true))])
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sums::default()))
    }
}

/// Reads the workload and the roles, which are the same in every row.
pub(super) fn called_with(values: &[ArrayRef]) -> Result<(Arc<Workload>, Vec<Role>)> {
    let unreadable = || exec_datafusion_err!("{NAME}: the workload cannot be read");
    let [workload, roles, ..] = values else {
        return Err(unreadable());
    };
    let workload = cast(&workload.slice(0, 1), &DataType::Binary)?;
    let roles = cast(&roles.slice(0, 1), &DataType::Utf8)?;
    let bytes = workload.as_binary::<i32>();
    let workload = Workload::from_bytes(bytes.value(0)).map_err(|_| unreadable())?;
    let roles = Role::parse(roles.as_string::<i32>().value(0)).ok_or_else(unreadable)?;
    Ok((workload, roles))
}

/// An error of Arrow's, which must not show a cell.
pub(super) fn unreadable(error: datafusion::arrow::error::ArrowError) -> DataFusionError {
    use datafusion::arrow::error::ArrowError;
    match error {
        ArrowError::ParseError(message) | ArrowError::InvalidArgumentError(message) => {
            error::data(NAME, message)
        }
        _ => error::data(NAME, "a column cannot be read in the type of the original"),
    }
}

/// What is counted.
#[derive(Debug)]
enum Counting {
    /// Records, or individuals.
    Rows(Box<Answers>),
    /// Groups of an anatomized table.
    Groups(Box<GroupAnswers>),
    /// Buckets with their members: three sums per query.
    Buckets(Box<BucketAnswers>),
    /// A column is summed.
    Totals(Box<Totals>),
}

impl Counting {
    fn new(workload: &Arc<Workload>, roles: &[Role]) -> Self {
        match roles {
            [Role::Groups] => Self::Groups(Box::new(GroupAnswers::new(workload))),
            [Role::Buckets] => Self::Buckets(Box::new(BucketAnswers::new(workload))),
            [.., Role::Number] => Self::Totals(Box::new(Totals::new(workload))),
            roles => Self::Rows(Box::new(Answers::new(workload, roles))),
        }
    }

    fn add(&mut self, values: &[ArrayRef]) -> Result<()> {
        match (self, values) {
            (Self::Rows(answers), values) => answers.add(values),
            (Self::Totals(answers), values) => answers.add(values),
            (Self::Groups(answers), [groups]) => answers.add(groups),
            (Self::Buckets(answers), [buckets]) => answers.add(buckets),
            (Self::Groups(_) | Self::Buckets(_), _) => {
                return internal_err!("groups are one argument");
            }
        }
        .map_err(unreadable)
    }

    fn sums(&self) -> &[Fixed] {
        match self {
            Self::Rows(answers) => answers.sums(),
            Self::Groups(answers) => answers.sums(),
            Self::Buckets(answers) => answers.sums(),
            Self::Totals(answers) => answers.sums(),
        }
    }

    fn rows(&self) -> u64 {
        match self {
            Self::Rows(answers) => answers.rows(),
            Self::Groups(answers) => answers.rows(),
            Self::Buckets(answers) => answers.rows(),
            Self::Totals(answers) => answers.rows(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Rows(answers) => answers.size(),
            Self::Groups(answers) => answers.size(),
            Self::Buckets(answers) => answers.size(),
            Self::Totals(answers) => answers.size(),
        }
    }
}

/// Sums that are found as soon as the workload is known.
#[derive(Debug, Default)]
struct Sums {
    answers: Option<Counting>,
    /// Sums of other partitions, and their rows.
    merged: Vec<Fixed>,
    rows: u64,
}

impl Sums {
    fn list(&self) -> Result<ScalarValue> {
        let own = self.answers.as_ref().map_or(&[] as &[_], Counting::sums);
        let length = own.len().max(self.merged.len());
        let mut sums = vec![Fixed::default(); length];
        for part in [own, &self.merged] {
            sums.iter_mut().zip(part).for_each(|(a, b)| a.merge(*b));
        }
        let rows = self.rows + self.answers.as_ref().map_or(0, Counting::rows);
        let raw = sums.iter().map(|s| s.raw()).chain([i128::from(rows)]);
        let raw = Decimal128Array::from_iter_values(raw).with_precision_and_scale(38, 0)?;
        let list = crate::measure::sql::estimate::list(Arc::new(raw))?;
        Ok(list)
    }
}

impl Accumulator for Sums {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if values.first().is_none_or(|v| v.is_empty()) {
            return Ok(());
        }
        let answers = match &mut self.answers {
            Some(answers) => answers,
            empty => {
                let (workload, roles) = called_with(values)?;
                empty.insert(Counting::new(&workload, &roles))
            }
        };
        answers.add(&values[2..])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.list()
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.merged.len() * size_of::<Fixed>()
            + self.answers.as_ref().map_or(0, Counting::size)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.list()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        for list in lists.iter().flatten() {
            let (sums, rows) = read_sums(&list);
            self.merged
                .resize(self.merged.len().max(sums.len()), Fixed::default());
            self.merged
                .iter_mut()
                .zip(&sums)
                .for_each(|(a, b)| a.merge(*b));
            self.rows += rows;
        }
        Ok(())
    }
}

/// The sums of a list, and the number of rows at its end.
pub(super) fn read_sums(list: &ArrayRef) -> (Vec<Fixed>, u64) {
    let raw = list.as_primitive::<Decimal128Type>().values();
    match raw.split_last() {
        Some((rows, sums)) => (
            sums.iter().map(|s| Fixed::from_raw(*s)).collect(),
            u64::try_from(*rows).unwrap_or_default(),
        ),
        None => (vec![], 0),
    }
}

//! An aggregate: which share of sets occurs only once, and how often does the rarest?

use std::mem::size_of;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, UInt64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use hashbrown::HashMap;

/// Different sets counted one by one. With more of them, a part chosen by their hashes stands for all.
const MOST_SETS: usize = 1 << 20;

/// Of sets, given as lists of hashes: the share of those that occur once, how often the rarest occurs, and 1 if both come
/// from a sample: the first is then an estimate, and the second at least what it would be.
pub(crate) fn unique_sets() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(UniqueSets::new())));
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct UniqueSets {
    signature: Signature,
}

impl UniqueSets {
    fn new() -> Self {
        Self {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for UniqueSets {
    fn name(&self) -> &str {
        "anonymize_unique_sets"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(fields()))
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sets::new(MOST_SETS)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format!("{}[sets]", args.name);
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, false))])
    }
}

fn fields() -> Fields {
    let field = |name: &str| Field::new(name, DataType::Float64, true);
    Fields::from(
        ["unique_sets", "rarest_set", "sets_are_sampled"]
            .map(field)
            .to_vec(),
    )
}

/// How often sets occur, those only whose hash has `zeros` zeros at its end.
#[derive(Debug)]
struct Sets {
    most: usize,
    zeros: u32,
    counts: HashMap<u64, u64>,
    /// How many sets there were, whatever their hash.
    all: u64,
}

impl Sets {
    fn new(most: usize) -> Self {
        Self {
            most,
            zeros: 0,
            counts: HashMap::new(),
            all: 0,
        }
    }

    fn add(&mut self, hash: u64, count: u64) {
        if hash.trailing_zeros() >= self.zeros {
            *self.counts.entry(hash).or_default() += count;
            while self.counts.len() > self.most {
                self.zeros += 1;
                let zeros = self.zeros;
                self.counts.retain(|hash, _| hash.trailing_zeros() >= zeros);
            }
        }
    }

    /// Of all sets, so that it does not matter much whether a frequent one is in the sample.
    fn share(&self) -> Option<f64> {
        let once = self.counts.values().filter(|&&count| count == 1).count();
        let once = once as f64 * f64::from(self.zeros).exp2();
        (self.all > 0).then(|| (once / self.all as f64).min(1.0))
    }
}

impl Accumulator for Sets {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for set in values[0].as_list::<i32>().iter().flatten() {
            for hash in set.as_primitive::<UInt64Type>().iter().flatten() {
                self.all += 1;
                self.add(hash, 1);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let rarest = self.counts.values().min().map(|count| *count as f64);
        let sampled = if self.zeros > 0 { 1.0 } else { 0.0 };
        let values = [self.share(), rarest, Some(sampled)];
        let columns = values.map(|value| Arc::new(Float64Array::from(vec![value])) as ArrayRef);
        let figures = StructArray::try_new(fields(), columns.to_vec(), None)?;
        Ok(ScalarValue::Struct(Arc::new(figures)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.capacity() * (size_of::<(u64, u64)>() + 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut bytes = Vec::with_capacity(16 * (1 + self.counts.len()));
        bytes.extend(u64::from(self.zeros).to_le_bytes());
        bytes.extend(self.all.to_le_bytes());
        for (hash, count) in &self.counts {
            bytes.extend(hash.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
        Ok(vec![ScalarValue::Binary(Some(bytes))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states[0].as_binary::<i32>().iter().flatten() {
            let (numbers, _) = state.as_chunks::<8>();
            let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
            let (Some(zeros), Some(all)) = (numbers.next(), numbers.next()) else {
                return internal_err!("a state without a beginning");
            };
            self.all += all;
            self.zeros = self.zeros.max(zeros as u32);
            let zeros = self.zeros;
            self.counts.retain(|hash, _| hash.trailing_zeros() >= zeros);
            while let (Some(hash), Some(count)) = (numbers.next(), numbers.next()) {
                self.add(hash, count);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ListArray, UInt64Array};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::Float64Type;

    use super::*;

    #[test]
    fn counted_where_they_fit_and_estimated_where_not() {
        // Hashes 1 to 4000; every fourth occurs twice.
        let hashes = |i: u64| blake3::hash(&i.to_le_bytes()).as_bytes()[..8].to_vec();
        let hash = |i: u64| u64::from_le_bytes(hashes(i).try_into().unwrap());
        let (mut exact, mut few) = (Sets::new(10_000), Sets::new(400));
        let add = |sets: &mut Sets, set: u64| {
            let hashes = UInt64Array::from(vec![hash(set)]);
            let list = ListArray::new(
                Arc::new(Field::new_list_field(DataType::UInt64, true)),
                OffsetBuffer::from_lengths([1]),
                Arc::new(hashes),
                None,
            );
            sets.update_batch(&[Arc::new(list)]).unwrap();
        };
        for i in 0..4000 {
            add(&mut exact, i);
            add(&mut few, i);
        }
        let mut other = Sets::new(400);
        for i in (0..4000).step_by(4) {
            add(&mut exact, i);
            add(&mut other, i);
        }
        let ScalarValue::Binary(state) = other.state().unwrap().remove(0) else {
            panic!("a binary state");
        };
        let state: ArrayRef = Arc::new(datafusion::arrow::array::BinaryArray::from_iter([state]));
        few.merge_batch(&[state]).unwrap();
        let figures = |sets: &mut Sets| {
            let ScalarValue::Struct(figures) = sets.evaluate().unwrap() else {
                panic!("a struct");
            };
            [0, 1, 2].map(|at| figures.column(at).as_primitive::<Float64Type>().value(0))
        };
        let [share, rarest, sampled] = figures(&mut exact);
        assert!((share - 0.6).abs() < 1e-12);
        assert_eq!((rarest, sampled), (1.0, 0.0));
        let [estimated, _, sampled] = figures(&mut few);
        assert!((estimated - 0.6).abs() < 0.1, "{estimated}");
        assert_eq!(sampled, 1.0);
        assert!(few.counts.len() <= 400);
        // A frequent set changes what is estimated as it changes the truth, whether it is in the sample or not.
        for frequent in 0..40 {
            let mut few = Sets::new(400);
            (0..4000).for_each(|i| add(&mut few, i));
            (0..4000).for_each(|_| add(&mut few, frequent));
            let [estimated, ..] = figures(&mut few);
            assert!((estimated - 0.5).abs() < 0.06, "{estimated}");
        }
        let mut twice = Sets::new(10_000);
        for i in (0..10).chain(0..10).chain(0..5) {
            add(&mut twice, i);
        }
        assert_eq!(figures(&mut twice), [0.0, 2.0, 0.0]);
    }
}

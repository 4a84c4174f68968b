//! Answers to all queries of a workload in one pass over a table.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::error::ArrowError;

use super::planes::Planes;
use super::{Fixed, Matching, Workload};

/// What an input column is to the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Exact values of a column.
    Exact(usize),
    /// Generalized values of a column.
    Published(usize),
    /// Bits of the queries that may match, found before.
    Bits,
    /// Groups of an anatomized table, see [`GroupAnswers`](super::GroupAnswers).
    Groups,
    /// Buckets with their members.
    Buckets,
    /// Numbers that are summed instead of counting records, see [`Totals`](super::Totals).
    Number,
}

impl Role {
    /// Reads roles as plans hold them: `p0 p1 e2`, `p0 b`, `e0 e1 n`.
    pub fn parse(text: &str) -> Option<Vec<Self>> {
        let role = |word: &str| {
            let column = || word.get(1..)?.parse().ok();
            match word.chars().next()? {
                'e' => column().map(Role::Exact),
                'p' => column().map(Role::Published),
                'b' => Some(Role::Bits),
                'g' => Some(Role::Groups),
                'l' => Some(Role::Buckets),
                'n' => Some(Role::Number),
                _ => None,
            }
        };
        text.split_whitespace().map(role).collect()
    }
}

#[derive(Debug)]
enum Input {
    Column(Box<Matching>),
    Bits,
}

impl Input {
    fn column(matching: Matching) -> Self {
        Input::Column(Box::new(matching))
    }
}

/// Evaluates a workload over batches.
///
/// Instead of asking each query of all records, each record is asked which queries it matches: the bits of its values are
/// combined word by word, and what is left is counted.
#[derive(Debug)]
pub struct Answers {
    workload: Arc<Workload>,
    inputs: Vec<Input>,
    /// For each query, the generalized inputs that it asks for.
    asked: Vec<Vec<u32>>,
    sums: Vec<Fixed>,
    rows: u64,
    /// Matches of the records at hand, which show the same generalized values.
    counts: Planes,
}

impl Answers {
    /// Nothing counted yet.
    pub fn new(workload: &Arc<Workload>, roles: &[Role]) -> Self {
        let inputs: Vec<Input> = roles
            .iter()
            .map(|role| match role {
                Role::Exact(column) => Input::column(Matching::exact(workload, *column)),
                Role::Published(column) => Input::column(Matching::published(workload, *column)),
                Role::Bits | Role::Groups | Role::Buckets | Role::Number => Input::Bits,
            })
            .collect();
        let asked = workload.queries.iter().map(|query| {
            let asks = |role: &Role| match role {
                Role::Published(column) => query.iter().any(|(c, _)| c == column),
                _ => false,
            };
            let inputs = roles.iter().enumerate().filter(|(_, role)| asks(role));
            inputs.map(|(i, _)| i as u32).collect()
        });
        Self {
            inputs,
            asked: asked.collect(),
            sums: vec![Fixed::default(); workload.queries.len()],
            rows: 0,
            counts: Planes::new(workload.words()),
            workload: Arc::clone(workload),
        }
    }

    /// Adds the rows of a batch.
    pub fn add(&mut self, arrays: &[ArrayRef]) -> Result<(), ArrowError> {
        let rows = arrays.first().map_or(0, |a| a.len());
        let mut codes: Vec<Vec<u32>> = Vec::with_capacity(self.inputs.len());
        for (input, array) in self.inputs.iter_mut().zip(arrays) {
            codes.push(match input {
                Input::Column(matching) => matching.read(array)?,
                Input::Bits => vec![],
            });
        }
        let generalized: Vec<usize> = (0..self.inputs.len())
            .filter(|i| self.asked.iter().any(|asked| asked.contains(&(*i as u32))))
            .collect();
        let words = self.workload.words();
        // Records that follow each other often differ in the last column only.
        let mut most = vec![u64::MAX; words];
        let mut matched = vec![0u64; words];
        let last = self.inputs.len().saturating_sub(1);
        let mut start = 0;
        for row in 0..rows {
            if row > start
                && generalized
                    .iter()
                    .any(|i| codes[*i][row] != codes[*i][start])
            {
                self.finish(&codes, start);
                start = row;
            }
            let same = |codes: &Vec<u32>| row > 0 && codes.get(row) == codes.get(row - 1);
            if !(0..last).all(|i| self.is_column(i) && same(&codes[i])) {
                most.fill(u64::MAX);
                (0..last).for_each(|i| self.narrow(i, &codes, arrays, row, &mut most));
            }
            matched.copy_from_slice(&most);
            if last < self.inputs.len() {
                self.narrow(last, &codes, arrays, row, &mut matched);
            }
            self.counts.add(&matched);
            if self.counts.is_full() {
                self.finish(&codes, start);
            }
        }
        if rows > 0 {
            self.finish(&codes, start);
        }
        self.rows += rows as u64;
        Ok(())
    }

    fn is_column(&self, input: usize) -> bool {
        matches!(self.inputs[input], Input::Column(_))
    }

    /// Leaves of some queries those that an input of a row may match.
    fn narrow(
        &self,
        input: usize,
        codes: &[Vec<u32>],
        arrays: &[ArrayRef],
        row: usize,
        matched: &mut [u64],
    ) {
        match &self.inputs[input] {
            Input::Column(matching) => {
                let bits = matching.bits(codes[input][row]);
                matched.iter_mut().zip(bits).for_each(|(m, b)| *m &= b);
            }
            Input::Bits => {
                let bytes = arrays[input].as_binary::<i32>();
                if bytes.is_null(row) {
                    matched.fill(0);
                    return;
                }
                let bits = bytes.value(row).chunks_exact(8).map(word);
                matched.iter_mut().zip(bits).for_each(|(m, b)| *m &= b);
            }
        }
    }

    /// Adds the matches of records that show the same generalized values as `row`: each as likely as those values say.
    fn finish(&mut self, codes: &[Vec<u32>], row: usize) {
        let Self {
            inputs,
            asked,
            sums,
            counts,
            ..
        } = self;
        counts.take(|query, count| {
            let (Some(asked), Some(sum)) = (asked.get(query), sums.get_mut(query)) else {
                return;
            };
            let mut expected = f64::from(count);
            for input in asked {
                let input = *input as usize;
                if let Input::Column(matching) = &inputs[input] {
                    expected *= matching.share(codes[input][row], query);
                }
            }
            sum.add(expected);
        });
    }

    /// The answers so far.
    pub fn sums(&self) -> &[Fixed] {
        &self.sums
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes in use.
    pub fn size(&self) -> usize {
        let inputs = self.inputs.iter().map(|input| match input {
            Input::Column(matching) => matching.size(),
            Input::Bits => 0,
        });
        inputs.sum::<usize>() + self.sums.len() * (size_of::<Fixed>() + 4)
    }
}

/// Eight bytes as a word.
pub(super) fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, StringArray};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::Predicate;
    use super::super::workload::tests::{draw, example};
    use super::*;
    use crate::measure::cells::Point;

    #[test]
    fn exact_answers_are_those_of_each_query_alone() -> Result<(), ArrowError> {
        let workload = example(draw(130, 1, true));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let numbers: Vec<i32> = (0..500).map(|_| rng.random_range(-5..110)).collect();
        let names: Vec<&str> = (0..500)
            .map(|_| ["a", "b", "c", "d", "e"][rng.random_range(0..5)])
            .collect();
        let arrays: [ArrayRef; 2] = [
            Arc::new(Int32Array::from(numbers.clone())),
            Arc::new(StringArray::from(names.clone())),
        ];
        let mut answers = Answers::new(&workload, &[Role::Exact(0), Role::Exact(3)]);
        for (at, length) in [(0, 100), (100, 200), (300, 200)] {
            answers.add(&arrays.each_ref().map(|a| a.slice(at, length)))?;
        }
        assert_eq!(answers.rows(), 500);
        for (q, query) in workload.queries.iter().enumerate() {
            let holds = |row: usize| {
                query
                    .iter()
                    .all(|(column, predicate)| match (column, predicate) {
                        (0, Predicate::Range(s)) => {
                            s.contains(&Point::Integer(numbers[row].into()))
                        }
                        (3, Predicate::Values(bits)) => workload
                            .values(3, bits)
                            .any(|v| *v == Point::text(names[row])),
                        _ => true,
                    })
            };
            let expected = (0..500).filter(|row| holds(*row)).count();
            assert_eq!(answers.sums()[q].value(), expected as f64);
        }
        Ok(())
    }

    #[test]
    fn estimates_do_not_depend_on_batches_and_order() -> Result<(), ArrowError> {
        let workload = example(draw(70, 2, true));
        let ranges: Vec<String> = (0..60)
            .map(|i| format!("[{}, {}]", i / 7, i / 7 + 9))
            .collect();
        let names: Vec<String> = (0..60)
            .map(|i| ["a", "{a, c}", "*"][i % 3].to_owned())
            .collect();
        let disease: Vec<&str> = (0..60).map(|i| ["a", "b", "c", "d"][i % 4]).collect();
        let columns = |order: &[usize]| -> [ArrayRef; 3] {
            let pick = |v: &[String]| order.iter().map(|i| v[*i].clone()).collect::<Vec<_>>();
            [
                Arc::new(StringArray::from(pick(&ranges))),
                Arc::new(StringArray::from(pick(&names))),
                Arc::new(StringArray::from(
                    order.iter().map(|i| disease[*i]).collect::<Vec<_>>(),
                )),
            ]
        };
        let roles = [Role::Published(0), Role::Published(2), Role::Exact(3)];
        let run = |order: &[usize], step: usize| -> Result<Vec<f64>, ArrowError> {
            let mut answers = Answers::new(&workload, &roles);
            for part in order.chunks(step) {
                answers.add(&columns(part))?;
            }
            Ok(answers.sums().iter().map(|s| s.value()).collect())
        };
        let order: Vec<usize> = (0..60).collect();
        let mut shuffled = order.clone();
        shuffled.sort_by_key(|i| i * 37 % 61);
        let (whole, parts, other) = (run(&order, 60)?, run(&order, 7)?, run(&shuffled, 13)?);
        for q in 0..whole.len() {
            assert!((whole[q] - parts[q]).abs() < 1e-12);
            assert!((whole[q] - other[q]).abs() < 1e-12);
        }
        assert!(whole.iter().any(|e| *e > 0.0 && e.fract() > 0.0));
        Ok(())
    }

    #[test]
    fn roles() {
        let roles = [Role::Published(0), Role::Exact(12), Role::Bits];
        assert_eq!(Role::parse("p0 e12 b"), Some(roles.to_vec()));
        assert_eq!(Role::parse("g"), Some(vec![Role::Groups]));
        assert_eq!(Role::parse("l n"), Some(vec![Role::Buckets, Role::Number]));
        assert_eq!(Role::parse("x1"), None);
    }
}

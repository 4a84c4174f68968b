//! Random count queries as the papers ask them: λ quasi-identifiers and the sensitive column, each with a predicate
//! (Wang 2018, section 5; the shares of the domains follow Xiao and Tao 2006).

mod bytes;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use rand::seq::index::sample;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::measure::cells::{Cell, Comparison, LabelCells, Point, Selection};

/// How queries are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// Number of queries.
    pub queries: u32,
    /// Quasi-identifiers with a predicate per query.
    pub dimensions: u32,
    /// The share of records that a query is meant to select, if columns were independent and uniform.
    pub selectivity: f64,
    /// Two draws with the same seed over the same domains are equal.
    pub seed: u64,
    /// Whether the last column is sensitive and has a predicate in every query.
    pub sensitive: bool,
}

/// A column that queries speak of.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadColumn {
    /// The type of its original values.
    pub value_type: DataType,
    /// What it may hold: an interval or a set; anything else allows no predicate.
    pub domain: Cell,
    /// The labels under which it is published, if it has a hierarchy.
    pub labels: Option<Arc<LabelCells>>,
}

/// What a query asks of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// A value in a range of the domain.
    Range(Selection),
    /// One of some values of the domain: a bit for each.
    Values(Box<[u64]>),
}

/// A drawn workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The columns: quasi-identifiers, then the sensitive one if there is one.
    pub attributes: Vec<WorkloadColumn>,
    /// How it was drawn.
    pub draw: Draw,
    /// Predicates of each query with the column they are about, in the order of columns.
    pub queries: Vec<Vec<(usize, Predicate)>>,
}

impl Workload {
    /// Draws queries.
    ///
    /// With λ predicates on quasi-identifiers and one on the sensitive column, each selects a share of
    /// `selectivity^(1 / (λ + 1))` of its domain: numbers in a range of that length, names as a random set of that size.
    pub fn new(attributes: Vec<WorkloadColumn>, draw: Draw) -> Arc<Self> {
        let queries = (0..draw.queries)
            .map(|number| {
                let mut rng = ChaCha8Rng::seed_from_u64(draw.seed);
                rng.set_stream(u64::from(number));
                query(&attributes, &draw, &mut rng)
            })
            .collect();
        Arc::new(Self {
            attributes,
            draw,
            queries,
        })
    }

    /// Number of 64-bit words with a bit for each query.
    pub fn words(&self) -> usize {
        self.queries.len().div_ceil(64)
    }

    /// The values of a set domain that a predicate takes.
    pub fn values<'a>(&'a self, column: usize, bits: &'a [u64]) -> impl Iterator<Item = &'a Point> {
        let values = match &self.attributes[column].domain {
            Cell::Set(values) => values.as_ref(),
            _ => &[],
        };
        let taken = move |i: &usize| has(bits, *i);
        (0..values.len()).filter(taken).map(move |i| &values[i])
    }
}

/// Whether a bit is set.
pub(super) fn has(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

/// Sets a bit.
pub(super) fn set(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}

fn query(
    attributes: &[WorkloadColumn],
    draw: &Draw,
    rng: &mut ChaCha8Rng,
) -> Vec<(usize, Predicate)> {
    let qi = attributes.len() - usize::from(draw.sensitive);
    let dimensions = (draw.dimensions as usize).min(qi);
    let mut columns = sample(rng, qi, dimensions).into_vec();
    columns.sort_unstable();
    if draw.sensitive {
        columns.push(qi);
    }
    let share = draw.selectivity.powf(1.0 / columns.len().max(1) as f64);
    columns
        .into_iter()
        .map(|column| (column, predicate(&attributes[column].domain, share, rng)))
        .collect()
}

fn predicate(domain: &Cell, share: f64, rng: &mut ChaCha8Rng) -> Predicate {
    match domain {
        Cell::Interval(Point::Integer(lo), Point::Integer(hi)) => {
            let all = (hi - lo + 1) as f64;
            let length = (share * all).round().clamp(1.0, all) as i128;
            let from = lo + rng.random_range(0..=(hi - lo + 1 - length));
            Predicate::Range(Selection::between(
                Point::Integer(from),
                Point::Integer(from + length - 1),
            ))
        }
        Cell::Interval(lo, hi) => {
            let (lo, hi) = (lo.number().unwrap_or(0.0), hi.number().unwrap_or(0.0));
            let length = share * (hi - lo);
            let from = lo + rng.random::<f64>() * (hi - lo - length);
            let end = |how, at| Selection::compared(how, Point::Real(at));
            let from_on = end(Comparison::GreaterOrEqual, from);
            Predicate::Range(from_on.and(&end(Comparison::LessOrEqual, from + length)))
        }
        Cell::Set(values) => {
            let taken = (share * values.len() as f64).round() as usize;
            let taken = taken.clamp(1, values.len());
            let mut bits = vec![0; values.len().div_ceil(64)];
            for at in sample(rng, values.len(), taken) {
                set(&mut bits, at);
            }
            Predicate::Values(bits.into())
        }
        // Nothing is known of the column, so nothing can be asked.
        _ => Predicate::Range(Selection::nothing()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn example(draw: Draw) -> Arc<Workload> {
        let attribute = |value_type, domain| WorkloadColumn {
            value_type,
            domain,
            labels: None,
        };
        let names = ["a", "b", "c", "d"].map(Point::text);
        let mut attributes = vec![
            attribute(
                DataType::Int32,
                Cell::Interval(Point::Integer(0), Point::Integer(99)),
            ),
            attribute(
                DataType::Float64,
                Cell::Interval(Point::Real(0.0), Point::Real(1.0)),
            ),
            attribute(DataType::Utf8, Cell::set(names.clone())),
        ];
        if draw.sensitive {
            attributes.push(attribute(DataType::Utf8, Cell::set(names)));
        }
        Workload::new(attributes, draw)
    }

    pub fn draw(queries: u32, dimensions: u32, sensitive: bool) -> Draw {
        Draw {
            queries,
            dimensions,
            selectivity: 0.1,
            seed: 7,
            sensitive,
        }
    }

    #[test]
    fn queries_have_their_dimensions_and_shares() {
        let workload = example(draw(200, 2, true));
        let share = 0.1f64.powf(1.0 / 3.0);
        for query in &workload.queries {
            assert_eq!(query.len(), 3);
            assert_eq!(query[2].0, 3, "the sensitive column is always asked for");
            assert!(query[0].0 < query[1].0);
            for (column, predicate) in query {
                let domain = &workload.attributes[*column].domain;
                let selected = match predicate {
                    Predicate::Range(selection) => domain.share(selection),
                    Predicate::Values(bits) => {
                        Some(workload.values(*column, bits).count() as f64 / 4.0)
                    }
                };
                let selected = selected.unwrap_or(-1.0);
                assert!((selected - share).abs() < 0.04, "{selected} {share}");
            }
        }
    }

    #[test]
    fn draws_repeat_and_seeds_differ() {
        let first = example(draw(50, 1, false));
        assert_eq!(first, example(draw(50, 1, false)));
        let mut other = draw(50, 1, false);
        other.seed = 8;
        assert_ne!(first.queries, example(other).queries);
        // More queries are the same ones and further ones.
        assert_eq!(first.queries[..], example(draw(60, 1, false)).queries[..50]);
    }

    #[test]
    fn bytes_and_back() -> Result<(), String> {
        for workload in [example(draw(20, 2, true)), example(draw(3, 3, false))] {
            assert_eq!(Workload::from_bytes(&workload.to_bytes())?, workload);
            let mut attributes = workload.attributes.clone();
            let cells = ["all", "*"].map(|label| (label.into(), attributes[0].domain.clone()));
            let labels = LabelCells::from_cells(cells, attributes[0].domain.clone());
            attributes[0].labels = Some(Arc::new(labels));
            let labelled = Workload::new(attributes, workload.draw.clone());
            assert_eq!(Workload::from_bytes(&labelled.to_bytes())?, labelled);
        }
        assert!(Workload::from_bytes(&[1, 2, 3]).is_err());
        Ok(())
    }
}

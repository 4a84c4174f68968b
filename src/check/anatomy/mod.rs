//! The independent checker of anatomized releases: sub-tables and a table of sensitive values that share group ids.
//!
//! ```text
//!   qi_1: gid, columns…, count ─┐
//!   qi_2: gid, columns…, count ─┼─► Anatomy ──► verify_anatomy(bounds) ──► AnatomyAttained    what holds
//!   sa:   gid, value, count    ─┘   groups                          └────► AnatomyViolation   what does not
//! ```
//!
//! α, β, γ and δ of every group are counted again from the rows that a reader sees (Yao et al. 2021, Eqs. 3, 5, 7 and 8),
//! with integers of any size. Whatever the bounds, every group is in every table, with as many individuals; no row is
//! repeated, and no row has a count that is not a positive number.

mod long_form;
mod natural;
mod tables;
mod violation;

use std::cmp::Ordering;

use datafusion::arrow::array::make_comparator;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::error::ArrowError;

use self::tables::Group;
use super::codes::with_one_nan_and_zero;
use super::ratio::Ratio;

pub use tables::{AnatomyTable, ShownTables};
pub use violation::AnatomyViolation;

/// Upper bounds on every group; one that is `None` is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnatomyBounds {
    /// Share of the most frequent tuple of each sub-table (Eq. 3).
    pub alpha: Option<Ratio>,
    /// Share of the most frequent sensitive value (Eq. 5).
    pub beta: Option<Ratio>,
    /// Product of these shares (Eq. 7).
    pub gamma: Option<Ratio>,
    /// Distance of any sensitive value's share from its share of the whole table (Eq. 8).
    pub delta: Option<Ratio>,
}

impl AnatomyBounds {
    /// The bounds as they were written, by name; `None` if one cannot be read.
    pub fn read<'a>(bound: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let ratio = |name: &str| match bound(name) {
            Some(text) => text.parse().ok().map(Some),
            None => Some(None),
        };
        Some(Self {
            alpha: ratio("alpha")?,
            beta: ratio("beta")?,
            gamma: ratio("gamma")?,
            delta: ratio("delta")?,
        })
    }
}

/// What holds in all groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnatomyAttained {
    /// Groups.
    pub groups: usize,
    /// Individuals of all groups.
    pub individuals: u64,
    /// Individuals of the smallest group.
    pub smallest_group: u64,
    /// Individuals of the largest group.
    pub largest_group: u64,
    /// The largest share of a tuple in a sub-table of a group: the smallest α that holds.
    pub alpha: Ratio,
    /// The largest share of a sensitive value in a group: the smallest β that holds.
    pub beta: Ratio,
    /// The largest product of shares, to the precision of floating point.
    pub gamma: f64,
    /// The largest distance between shares of sensitive values, to the precision of floating point.
    pub delta: f64,
}

impl AnatomyAttained {
    /// What holds in these groups and in others.
    pub fn and(self, others: Self) -> Self {
        Self {
            groups: self.groups + others.groups,
            individuals: self.individuals.saturating_add(others.individuals),
            smallest_group: self.smallest_group.min(others.smallest_group),
            largest_group: self.largest_group.max(others.largest_group),
            alpha: self.alpha.max(others.alpha),
            beta: self.beta.max(others.beta),
            gamma: self.gamma.max(others.gamma),
            delta: self.delta.max(others.delta),
        }
    }
}

/// Checks that every group satisfies the bounds.
///
/// A release without groups violates nothing; whether it is worth publishing is for the caller to say.
///
/// # Errors
/// The first [`AnatomyViolation`] in the order of its variants, bounds in the order of their names.
pub fn verify_anatomy(
    anatomy: &ShownTables,
    bounds: &AnatomyBounds,
) -> Result<AnatomyAttained, AnatomyViolation> {
    let tables = anatomy.groups.iter().map(|group| group.individuals.len());
    anatomy.check_form(tables.max().unwrap_or(0))?;
    let share = |part: u64, group: &Group| Ratio::of(part as usize, group.size() as usize);
    let admits =
        |bound: Ratio, part: u64, group: &Group| bound.admits(part as usize, group.size() as usize);
    require(anatomy, "alpha", bounds.alpha, |bound, group| {
        group
            .tuples()
            .iter()
            .all(|most| admits(bound, *most, group))
    })?;
    require(anatomy, "beta", bounds.beta, |bound, group| {
        admits(bound, group.most_frequent_value(), group)
    })?;
    require(anatomy, "gamma", bounds.gamma, |bound, group| {
        group.within_gamma(bound)
    })?;
    require(anatomy, "delta", bounds.delta, |bound, group| {
        anatomy.within_delta(group, bound)
    })?;

    let none = Ratio::of(0, 1);
    let groups = || anatomy.groups.iter();
    let gamma = |group: &Group| {
        let shares = group
            .most
            .iter()
            .map(|most| *most as f64 / group.size() as f64);
        shares.product::<f64>()
    };
    let delta = |group: &Group| {
        let scale = group.size() as f64 * anatomy.whole as f64;
        anatomy
            .distances(group)
            .map(|d| d as f64 / scale)
            .fold(0.0, f64::max)
    };
    let alphas = groups().flat_map(|group| group.tuples().iter().map(|most| share(*most, group)));
    let betas = groups().map(|group| share(group.most_frequent_value(), group));
    Ok(AnatomyAttained {
        groups: anatomy.groups.len(),
        individuals: groups().fold(0, |sum, group| group.size().saturating_add(sum)),
        smallest_group: groups().map(Group::size).min().unwrap_or(0),
        largest_group: groups().map(Group::size).max().unwrap_or(0),
        alpha: alphas.max().unwrap_or(none),
        beta: betas.max().unwrap_or(none),
        gamma: groups().map(gamma).fold(0.0, f64::max),
        delta: groups().map(delta).fold(0.0, f64::max),
    })
}

fn require(
    anatomy: &ShownTables,
    parameter: &'static str,
    bound: Option<Ratio>,
    holds: impl Fn(Ratio, &Group) -> bool,
) -> Result<(), AnatomyViolation> {
    let Some(bound) = bound else {
        return Ok(());
    };
    let mut violating = anatomy.groups.iter().filter(|group| !holds(bound, group));
    match violating.next() {
        None => Ok(()),
        Some(first) => Err(AnatomyViolation::Bound {
            parameter,
            violating: 1 + violating.count(),
            groups: anatomy.groups.len(),
            individuals: first.size(),
        }),
    }
}

/// How many rows do not come after the one before them by group id and columns. In a table that is sorted by what it
/// publishes, 0, the order of rows says nothing that the rows do not.
pub fn rows_out_of_order(table: &AnatomyTable<'_>) -> Result<usize, ArrowError> {
    let columns = [table.gid].into_iter().chain(table.columns);
    let compare = columns
        .map(|column| {
            let column = with_one_nan_and_zero(column)?;
            make_comparator(&column, &column, SortOptions::default())
        })
        .collect::<Result<Vec<_>, _>>()?;
    let rises = |row: usize| {
        let mut columns = compare.iter().map(|compare| compare(row - 1, row));
        columns.find(|order| order.is_ne()) == Some(Ordering::Less)
    };
    Ok((1..table.gid.len()).filter(|row| !rises(*row)).count())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringArray, UInt64Array};

    use super::*;

    /// The arrays of one table.
    #[derive(Clone)]
    struct Arrays {
        gid: ArrayRef,
        columns: Vec<ArrayRef>,
        count: ArrayRef,
    }

    impl Arrays {
        fn new(rows: &[(u64, &str, i64)]) -> Self {
            let gid = rows.iter().map(|row| row.0);
            let value = rows.iter().map(|row| row.1);
            let count = rows.iter().map(|row| row.2);
            Self {
                gid: Arc::new(UInt64Array::from_iter_values(gid)),
                columns: vec![Arc::new(StringArray::from_iter_values(value))],
                count: Arc::new(Int64Array::from_iter_values(count)),
            }
        }

        fn table(&self) -> AnatomyTable<'_> {
            AnatomyTable {
                gid: &self.gid,
                columns: &self.columns,
                count: &self.count,
            }
        }
    }

    /// Table 3 of the paper.
    const AGES: [(u64, &str, i64); 8] = [
        (1, "30 11100", 1),
        (1, "33 12200", 1),
        (1, "42 11100", 1),
        (1, "45 12200", 1),
        (2, "30 11100", 1),
        (2, "32 25300", 1),
        (2, "33 12200", 1),
        (2, "44 23200", 1),
    ];
    const JOBS: [(u64, &str, i64); 7] = [
        (1, "F Engineer", 1),
        (1, "F Teacher", 1),
        (1, "M Engineer", 1),
        (1, "M Teacher", 1),
        (2, "F Doctor", 1),
        (2, "M Doctor", 2),
        (2, "M Police", 1),
    ];
    const SALARIES: [(u64, &str, i64); 7] = [
        (1, "4500", 2),
        (1, "4700", 1),
        (1, "6000", 1),
        (2, "4000", 1),
        (2, "6000", 1),
        (2, "6400", 1),
        (2, "6700", 1),
    ];

    fn read(ages: &Arrays, jobs: &Arrays, salaries: &Arrays) -> ShownTables {
        ShownTables::try_new(&[ages.table(), jobs.table()], salaries.table()).unwrap()
    }

    fn table_3() -> ShownTables {
        read(
            &Arrays::new(&AGES),
            &Arrays::new(&JOBS),
            &Arrays::new(&SALARIES),
        )
    }

    const NONE: AnatomyBounds = AnatomyBounds {
        alpha: None,
        beta: None,
        gamma: None,
        delta: None,
    };

    fn ratio(numerator: u64, denominator: u64) -> Option<Ratio> {
        Ratio::try_new(numerator, denominator).ok()
    }

    #[test]
    fn table_3_attains_its_bounds_and_no_smaller_ones() {
        let anatomy = table_3();
        let attained = verify_anatomy(&anatomy, &NONE).unwrap();
        assert_eq!((attained.groups, attained.individuals), (2, 8));
        assert_eq!((attained.smallest_group, attained.largest_group), (4, 4));
        assert_eq!(attained.alpha, Ratio::of(1, 2));
        assert_eq!(attained.beta, Ratio::of(1, 2));
        assert_eq!((attained.gamma, attained.delta), (1.0 / 32.0, 0.25));
        let bounds = |n: u64, d: u64| {
            [
                AnatomyBounds {
                    alpha: ratio(n, d),
                    ..NONE
                },
                AnatomyBounds {
                    beta: ratio(n, d),
                    ..NONE
                },
                AnatomyBounds {
                    gamma: ratio(n, d),
                    ..NONE
                },
                AnatomyBounds {
                    delta: ratio(n, d),
                    ..NONE
                },
            ]
        };
        for (place, (n, d), violating) in [
            (0, (1, 2), 1),
            (1, (1, 2), 1),
            (2, (1, 32), 2),
            (3, (1, 4), 2),
        ] {
            assert!(verify_anatomy(&anatomy, &bounds(n, d)[place]).is_ok());
            let less = bounds(n * 1_000_000_000 - 1, d * 1_000_000_000)[place];
            let expected = AnatomyViolation::Bound {
                parameter: ["alpha", "beta", "gamma", "delta"][place],
                violating,
                groups: 2,
                individuals: 4,
            };
            assert_eq!(verify_anatomy(&anatomy, &less), Err(expected));
        }
    }

    #[test]
    fn a_value_that_a_group_lacks_counts() {
        // Half of all have x; the second group has nobody with it.
        let values = Arrays::new(&[(1, "x", 2), (2, "y", 1), (2, "z", 1)]);
        let others = Arrays::new(&[(1, "a", 2), (2, "a", 2)]);
        let anatomy = ShownTables::try_new(&[others.table()], values.table()).unwrap();
        let delta = |n, d| {
            verify_anatomy(
                &anatomy,
                &AnatomyBounds {
                    delta: ratio(n, d),
                    ..NONE
                },
            )
        };
        assert!(delta(1, 2).is_ok());
        assert!(delta(499, 1000).is_err());
        // Against a whole table in which w is frequent and not here at all.
        let whole: ArrayRef = Arc::new(StringArray::from(vec!["w", "x", "y", "z"]));
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![12, 2, 1, 1]));
        let anatomy =
            ShownTables::with_prior(&[others.table()], values.table(), &whole, &counts).unwrap();
        let attained = verify_anatomy(&anatomy, &NONE).unwrap();
        assert_eq!(attained.delta, 0.875);
        let few: ArrayRef = Arc::new(Int64Array::from(vec![12, 1, 1, 0]));
        let anatomy =
            ShownTables::with_prior(&[others.table()], values.table(), &whole, &few).unwrap();
        let beyond = AnatomyViolation::BeyondPrior { values: 2 };
        assert_eq!(verify_anatomy(&anatomy, &NONE), Err(beyond));
    }

    #[test]
    fn gamma_of_many_tables_and_large_groups_is_exact() {
        // 3,000,001 of 6,000,001 in each of eleven tables, beyond 128 bits.
        let rows = Arrays::new(&[(1, "a", 3_000_001), (1, "b", 3_000_000)]);
        let tables = vec![rows.table(); 11];
        let anatomy = ShownTables::try_new(&tables, rows.table()).unwrap();
        let gamma = |n, d| {
            verify_anatomy(
                &anatomy,
                &AnatomyBounds {
                    gamma: ratio(n, d),
                    ..NONE
                },
            )
        };
        // 2^-12 is exceeded, but by less than a hundred-thousandth of it.
        assert!(gamma(1, 4096).is_err());
        assert!(gamma(100_001, 409_600_000).is_ok());
    }

    #[test]
    fn faults_of_form_are_refused_whatever_the_bounds() {
        let (ages, jobs, salaries) = (
            Arrays::new(&AGES),
            Arrays::new(&JOBS),
            Arrays::new(&SALARIES),
        );
        let refused = |anatomy: &ShownTables| verify_anatomy(anatomy, &NONE).unwrap_err();
        // A group that is not in one table.
        let fewer = Arrays::new(&AGES[..4]);
        let sizes = AnatomyViolation::Sizes { groups: 1 };
        assert_eq!(refused(&read(&fewer, &jobs, &salaries)), sizes);
        let fewer = Arrays::new(&SALARIES[..3]);
        assert_eq!(refused(&read(&ages, &jobs, &fewer)), sizes);
        // One individual less than in the other tables.
        let fewer = Arrays::new(&JOBS[1..]);
        assert_eq!(refused(&read(&ages, &fewer, &salaries)), sizes);
        // A tuple in two rows.
        let mut rows = SALARIES.to_vec();
        rows[0].2 = 1;
        rows.push((1, "4500", 1));
        let repeated = AnatomyViolation::Repeated { rows: 1 };
        assert_eq!(refused(&read(&ages, &jobs, &Arrays::new(&rows))), repeated);
        for count in [0, -2] {
            let mut rows = SALARIES.to_vec();
            rows[0].2 = count;
            let no_count = AnatomyViolation::NoCount { rows: 1 };
            assert_eq!(refused(&read(&ages, &jobs, &Arrays::new(&rows))), no_count);
        }
        let mut nameless = ages.clone();
        let gids = [
            Some(1),
            Some(1),
            Some(1),
            None,
            Some(2),
            Some(2),
            Some(2),
            Some(2),
        ];
        nameless.gid = Arc::new(UInt64Array::from(gids.to_vec()));
        let no_group = AnatomyViolation::NoGroup { rows: 1 };
        assert_eq!(refused(&read(&nameless, &jobs, &salaries)), no_group);
        let two = [salaries.columns[0].clone(), salaries.columns[0].clone()];
        let two = AnatomyTable {
            columns: &two,
            ..salaries.table()
        };
        assert!(ShownTables::try_new(&[ages.table()], two).is_err());
        let short = AnatomyTable {
            count: &jobs.count,
            ..ages.table()
        };
        assert!(ShownTables::try_new(&[short], salaries.table()).is_err());
    }

    #[test]
    fn no_groups_violate_nothing() {
        let empty = Arrays::new(&[]);
        let anatomy = ShownTables::try_new(&[empty.table()], empty.table()).unwrap();
        let bounds = AnatomyBounds {
            alpha: ratio(1, 9),
            beta: ratio(1, 9),
            gamma: ratio(1, 9),
            delta: ratio(1, 9),
        };
        let attained = verify_anatomy(&anatomy, &bounds).unwrap();
        assert_eq!((attained.groups, attained.individuals), (0, 0));
    }

    #[test]
    fn the_order_of_rows_is_that_of_what_they_show() {
        let sorted = Arrays::new(&SALARIES);
        assert_eq!(rows_out_of_order(&sorted.table()).unwrap(), 0);
        // As the paper prints them: 4500, 6000, 4700 and 6700, 4000, 6400, 6000.
        let printed = [0, 2, 1, 6, 3, 5, 4].map(|row| SALARIES[row]);
        assert_eq!(
            rows_out_of_order(&Arrays::new(&printed).table()).unwrap(),
            3
        );
    }

    #[test]
    fn violations_name_counts_and_nothing_else() {
        let canary = Arrays::new(&[(770_001, "CANARY", 5), (770_001, "CANARY-2", 1)]);
        let anatomy = ShownTables::try_new(&[canary.table()], canary.table()).unwrap();
        let bounds = AnatomyBounds {
            beta: ratio(1, 2),
            ..NONE
        };
        let violation = verify_anatomy(&anatomy, &bounds).unwrap_err();
        for said in [violation.to_string(), format!("{violation:?}")] {
            assert!(!said.contains("CANARY") && !said.contains("770"), "{said}");
        }
        assert_eq!(
            violation.to_string(),
            "1 of 1 groups exceed beta; the first of them has 6 individuals"
        );
    }

    /// Table 3 in one relation: table, group, age, job, salary, count.
    fn long_form() -> (ArrayRef, Arrays, ArrayRef) {
        let (mut names, mut gids, mut counts) = (vec![], vec![], vec![]);
        let mut columns = [vec![], vec![], vec![]];
        for (place, (name, rows)) in [("qi_1", &AGES[..]), ("qi_2", &JOBS), ("sa", &SALARIES)]
            .into_iter()
            .enumerate()
        {
            for (gid, value, count) in rows {
                names.push(name);
                gids.push(*gid);
                counts.push(*count);
                for (column, values) in columns.iter_mut().enumerate() {
                    values.push((column == place).then_some(*value));
                }
            }
        }
        let [ages, jobs, salaries] = columns.map(|c| Arc::new(StringArray::from(c)) as ArrayRef);
        let arrays = Arrays {
            gid: Arc::new(UInt64Array::from(gids)),
            columns: vec![ages, jobs],
            count: Arc::new(Int64Array::from(counts)),
        };
        (Arc::new(StringArray::from(names)), arrays, salaries)
    }

    #[test]
    fn one_relation_reads_as_its_tables() {
        let (names, arrays, salaries) = long_form();
        let division = [vec![0], vec![1]];
        let read = |names: &ArrayRef, arrays: &Arrays, salaries: &ArrayRef| {
            let anatomy =
                ShownTables::from_long_form(names, arrays.table(), &division, salaries, None);
            verify_anatomy(&anatomy.unwrap(), &NONE)
        };
        let expected = verify_anatomy(&table_3(), &NONE);
        assert_eq!(read(&names, &arrays, &salaries), expected);
        // A row that shows a value of another table.
        let mut linked = arrays.clone();
        linked.columns[1] = {
            let mut jobs: Vec<Option<&str>> = arrays.columns[1].as_string::<i32>().iter().collect();
            jobs[3] = Some("F Engineer");
            Arc::new(StringArray::from(jobs))
        };
        let stray = Err(AnatomyViolation::Stray { rows: 1 });
        assert_eq!(read(&names, &linked, &salaries), stray);
        let mut told: Vec<Option<&str>> = salaries.as_string::<i32>().iter().collect();
        told[9] = Some("4500");
        let told: ArrayRef = Arc::new(StringArray::from(told));
        assert_eq!(read(&names, &arrays, &told), stray);
        let mut others: Vec<Option<&str>> = names.as_string::<i32>().iter().collect();
        others[0] = Some("qi_3");
        others[1] = None;
        let others: ArrayRef = Arc::new(StringArray::from(others));
        let unknown = Err(AnatomyViolation::UnknownTable { rows: 2 });
        assert_eq!(read(&others, &arrays, &salaries), unknown);
        let beyond = [vec![0], vec![2]];
        let read = ShownTables::from_long_form(&names, arrays.table(), &beyond, &salaries, None);
        assert!(read.is_err());
    }
}

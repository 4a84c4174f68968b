//! What is published of groups: per sub-table who shows what how often, and nothing about who is who.

use super::division::Division;
use super::estimate::CountEstimate;
use super::groups::{DivideError, Groups};
use super::individuals::CodedIndividuals;

/// Sub-tables and the table of sensitive values, each in its own canonical order (docs/theory/papers.md S8).
///
/// Rows are sorted by the group's id and then by their codes. If codes keep the order of values, the order of rows says
/// nothing that their values do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The rows of each sub-table.
    pub sub_tables: Vec<Vec<Row>>,
    /// The rows of the table of sensitive values.
    pub sensitive: Vec<Row>,
}

/// A sub-tuple, or a sensitive value, in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The published id of the group.
    pub gid: u64,
    /// A member that has these values: where to take them from, not to be published.
    pub individual: u32,
    /// How many members have them.
    pub count: u32,
}

/// Publishes groups under the given ids.
///
/// `gids` has an id for each group, no two the same. They must be random: the order in which groups come, that of their
/// first members, tells how they were formed. A caller with a key takes a keyed hash of something of the group's first
/// member that is not published, such as its pseudonym, which needs no numbering across blocks; or numbers groups by it.
pub fn publish(
    individuals: &CodedIndividuals,
    division: &Division,
    groups: &Groups,
    gids: &[u64],
) -> Result<Published, DivideError> {
    let publisher = Publisher::try_new(individuals, division, groups, gids)?;
    let sub_tables = 0..division.tables().len();
    Ok(Published {
        sub_tables: sub_tables.map(|table| publisher.sub_table(table)).collect(),
        sensitive: publisher.sensitive(),
    })
}

/// Publishes one table at a time, for a caller who makes several side by side.
#[derive(Debug)]
pub struct Publisher<'a> {
    individuals: &'a CodedIndividuals,
    division: &'a Division,
    groups: &'a Groups,
    gids: &'a [u64],
    /// Groups by their ids.
    order: Vec<usize>,
}

impl<'a> Publisher<'a> {
    /// Of groups, under ids as for [`publish`].
    pub fn try_new(
        individuals: &'a CodedIndividuals,
        division: &'a Division,
        groups: &'a Groups,
        gids: &'a [u64],
    ) -> Result<Self, DivideError> {
        if gids.len() != groups.len() {
            return Err(DivideError::Malformed("another number of group ids"));
        }
        if division.columns() != individuals.columns().len() {
            return Err(DivideError::Malformed(
                "the division has another number of columns",
            ));
        }
        let mut order: Vec<usize> = (0..gids.len()).collect();
        order.sort_unstable_by_key(|group| gids[*group]);
        if order.windows(2).any(|pair| gids[pair[0]] == gids[pair[1]]) {
            return Err(DivideError::Malformed("two groups have the same id"));
        }
        Ok(Self {
            individuals,
            division,
            groups,
            gids,
            order,
        })
    }

    /// The rows of a sub-table.
    pub fn sub_table(&self, number: usize) -> Vec<Row> {
        let columns = self.individuals.columns();
        let own = self.division.tables()[number].iter();
        self.rows(own.map(|c| columns[*c].as_slice()))
    }

    /// The rows of the table of sensitive values.
    pub fn sensitive(&self) -> Vec<Row> {
        self.rows([self.individuals.sensitive()].into_iter())
    }

    fn rows<'c>(&self, columns: impl Iterator<Item = &'c [u32]>) -> Vec<Row> {
        let keys = keys(self.individuals.len(), columns);
        let mut rows = Vec::with_capacity(self.groups.individuals());
        let mut members: Vec<(u64, u32)> = vec![];
        for group in &self.order {
            members.clear();
            let own = self.groups.members(*group).iter();
            members.extend(own.map(|member| (keys[*member as usize], *member)));
            // Of several members with the same codes the first stands for them.
            members.sort_unstable();
            for same in members.chunk_by(|a, b| a.0 == b.0) {
                rows.extend(same.first().map(|(_, individual)| Row {
                    gid: self.gids[*group],
                    individual: *individual,
                    count: same.len() as u32,
                }));
            }
        }
        rows
    }
}

/// A number for each individual, in the order of its codes: that of the first column, then that of the second.
fn keys<'c>(individuals: usize, columns: impl Iterator<Item = &'c [u32]>) -> Vec<u64> {
    let mut keys = vec![0; individuals];
    let mut used = 0;
    for column in columns {
        let bits = u32::BITS
            - column
                .iter()
                .max()
                .map_or(u32::BITS, |code| code.leading_zeros());
        if used + bits > u64::BITS {
            used = shorten(&mut keys);
        }
        for (key, code) in keys.iter_mut().zip(column) {
            *key = *key << bits | u64::from(*code);
        }
        used += bits;
    }
    keys
}

/// Numbers keys from 0 in their order; how many bits the numbers need, at most 32.
fn shorten(keys: &mut [u64]) -> u32 {
    let mut sorted: Vec<(u64, u32)> = keys.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let mut last = 0;
    for (number, same) in (0u64..).zip(sorted.chunk_by(|a, b| a.0 == b.0)) {
        for (_, individual) in same {
            keys[*individual as usize] = number;
        }
        last = number;
    }
    u64::BITS - last.leading_zeros()
}

impl Published {
    /// Answers a count query (Yao 2021, Eq. 11).
    ///
    /// `matches` says of a sub-table's number and a row of it whether the row satisfies the query's condition on that
    /// sub-table's columns; `true` if there is none. `sensitive` says so of a row of the table of sensitive values.
    pub fn estimate(
        &self,
        matches: impl Fn(usize, &Row) -> bool,
        sensitive: impl Fn(&Row) -> bool,
    ) -> CountEstimate {
        let mut estimate = CountEstimate::new();
        let mut tables: Vec<_> = self.sub_tables.iter().map(|rows| by_gid(rows)).collect();
        for values in by_gid(&self.sensitive) {
            let found = |rows: &[Row], matches: &dyn Fn(&Row) -> bool| {
                let matching = rows.iter().filter(|row| matches(row));
                matching.map(|row| u64::from(row.count)).sum::<u64>()
            };
            // All tables have the same groups in the same order.
            let matching: Vec<u64> = tables
                .iter_mut()
                .enumerate()
                .map(|(table, groups)| {
                    let rows = groups.next().unwrap_or_default();
                    found(rows, &|row| matches(table, row))
                })
                .collect();
            let individuals = found(values, &|_| true);
            estimate.add(individuals, &matching, found(values, &sensitive));
        }
        estimate
    }
}

fn by_gid(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| a.gid == b.gid)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, UInt32Array, UInt64Array};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::example::{self, AGE, ZIP};
    use super::super::{GroupBounds, Method, Prior};
    use super::*;
    use crate::algorithm::Cancel;
    use crate::check::{self, AnatomyBounds, AnatomyTable, ShownTables};
    use crate::model::Ratio;

    #[test]
    fn table_3() {
        let individuals = example::table_1();
        let groups = Groups::new(vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        let published = publish(&individuals, &example::table_4(), &groups, &[1, 2]).unwrap();
        let code =
            |column: usize, row: &Row| individuals.columns()[column][row.individual as usize];
        let ages: Vec<_> = published.sub_tables[0]
            .iter()
            .map(|row| (row.gid, code(AGE, row), code(ZIP, row), row.count))
            .collect();
        // Sorted by value, where the paper keeps the order of Table 1 (docs/theory/papers.md S8).
        let expected = [
            (1, 0, 0, 1),
            (1, 2, 1, 1),
            (1, 3, 0, 1),
            (1, 5, 1, 1),
            (2, 0, 0, 1),
            (2, 1, 3, 1),
            (2, 2, 1, 1),
            (2, 4, 2, 1),
        ];
        assert_eq!(ages, expected);
        let counts = |rows: &[Row]| {
            rows.iter()
                .map(|row| (row.gid, row.count))
                .collect::<Vec<_>>()
        };
        // Four different pairs of gender and job in the first group; two male doctors in the second.
        let jobs = [(1, 1), (1, 1), (1, 1), (1, 1), (2, 1), (2, 2), (2, 1)];
        assert_eq!(counts(&published.sub_tables[1]), jobs);
        let salaries = [(1, 2), (1, 1), (1, 1), (2, 1), (2, 1), (2, 1), (2, 1)];
        assert_eq!(counts(&published.sensitive), salaries);
    }

    #[test]
    fn keys_keep_the_order_of_codes() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for bits in [1, 9, 20, 32] {
            let columns: Vec<Vec<u32>> = (0..7)
                .map(|_| {
                    let few: Vec<u32> = (0..3)
                        .map(|_| random.random::<u32>() >> (32 - bits))
                        .collect();
                    (0..300).map(|_| few[random.random_range(0..3)]).collect()
                })
                .collect();
            let keys = keys(300, columns.iter().map(Vec::as_slice));
            let codes = |i: usize| columns.iter().map(move |c| c[i]);
            for a in 0..300 {
                for b in 0..300 {
                    assert_eq!(keys[a].cmp(&keys[b]), codes(a).cmp(codes(b)));
                }
            }
        }
        assert_eq!(keys(2, [].into_iter()), [0, 0]);
    }

    #[test]
    fn table_3_is_no_output_of_the_algorithm() {
        // Its first group has 4,500 twice; Algorithm 1 takes one record from each bucket (docs/theory/papers.md S11).
        let individuals = example::table_1();
        let requirements = example::bounds("0.5", "0.25", "1", "1");
        let prior = Prior::of(&individuals).unwrap();
        let division = example::table_4();
        let cancel = Cancel::default();
        let groups = Method::Slppa.groups(&individuals, &division, &prior, &requirements, &cancel);
        let groups = groups.unwrap();
        assert_eq!(groups.len(), 2);
        let gids: Vec<u64> = (0..).take(groups.len()).collect();
        let published = publish(&individuals, &division, &groups, &gids).unwrap();
        assert!(published.sensitive.iter().all(|row| row.count == 1));
    }

    #[test]
    fn ids_are_one_for_each_group() {
        let individuals = example::table_1();
        let groups = Groups::new(vec![(0..4).collect(), (4..8).collect()]);
        let published = |gids: &[u64]| publish(&individuals, &example::table_4(), &groups, gids);
        assert!(published(&[7, 7]).is_err() && published(&[7]).is_err());
        assert!(publish(&individuals, &Division::each(3), &groups, &[1, 2]).is_err());
        // Tables are sorted by id, whatever the order of groups.
        let gids = |gids| {
            published(gids)
                .unwrap()
                .sensitive
                .iter()
                .map(|row| row.gid)
                .collect()
        };
        let seen: Vec<u64> = gids(&[9, 3]);
        assert!(seen.is_sorted() && seen[0] == 3);
    }

    /// The share of individuals for whom the j-th place of a group in one table and in the other are the same person's.
    fn relinked(individuals: &CodedIndividuals, published: &Published) -> f64 {
        let places = |rows: &[Row]| -> Vec<u32> {
            let repeated = |row: &Row| vec![row.individual; row.count as usize];
            rows.iter().flat_map(repeated).collect()
        };
        let (first, second) = (
            places(&published.sub_tables[0]),
            places(&published.sub_tables[1]),
        );
        let columns = individuals.columns();
        let same = first.iter().zip(&second).filter(|(a, b)| {
            columns[1][**a as usize] == columns[1][**b as usize]
                && columns[0][**a as usize] == columns[0][**b as usize]
        });
        same.count() as f64 / individuals.len() as f64
    }

    #[test]
    fn positions_do_not_relink_sub_tables() {
        let n = 4000;
        let mut random = ChaCha8Rng::seed_from_u64(41);
        let mut shuffled = || {
            let mut ranks: Vec<u32> = (0..n).collect();
            for at in 0..ranks.len() {
                let other = random.random_range(at..ranks.len());
                ranks.swap(at, other);
            }
            ranks
        };
        let columns = vec![shuffled(), shuffled()];
        let sensitive: Vec<u32> = shuffled().iter().map(|rank| rank % 40).collect();
        let division = Division::each(2);
        let requirements = GroupBounds {
            alpha: None,
            beta: example::ratio("0.1"),
            gamma: None,
            delta: None,
        };
        let attack = |columns: Vec<Vec<u32>>| {
            let individuals = CodedIndividuals::try_new(columns, sensitive.clone()).unwrap();
            let prior = Prior::of(&individuals).unwrap();
            let cancel = Cancel::default();
            let method = Method::Slppa;
            let groups = method.groups(&individuals, &division, &prior, &requirements, &cancel);
            let groups = groups.unwrap();
            let gids: Vec<u64> = (0..groups.len() as u64).map(|g| g ^ 0x55).collect();
            let published = publish(&individuals, &division, &groups, &gids).unwrap();
            assert_eq!(groups.len(), 400);
            relinked(&individuals, &published)
        };
        // One of ten by chance.
        let sigma = (0.1 * 0.9 / f64::from(n)).sqrt();
        assert!(attack(columns) <= 0.1 + 3.0 * sigma);
        // Why codes must keep the order of values: by order of appearance they are the numbers of individuals.
        assert_eq!(attack(vec![(0..n).collect(), (0..n).collect()]), 1.0);
    }

    /// The arrays of a published table.
    fn arrays(rows: &[Row], columns: &[&[u32]]) -> (ArrayRef, Vec<ArrayRef>, ArrayRef) {
        let column = |codes: &&[u32]| -> ArrayRef {
            let codes = rows.iter().map(|row| codes[row.individual as usize]);
            Arc::new(UInt32Array::from_iter_values(codes))
        };
        (
            Arc::new(UInt64Array::from_iter_values(
                rows.iter().map(|row| row.gid),
            )),
            columns.iter().map(column).collect(),
            Arc::new(UInt32Array::from_iter_values(
                rows.iter().map(|row| row.count),
            )),
        )
    }

    /// What the independent checker says of published rows.
    fn verified(
        individuals: &CodedIndividuals,
        division: &Division,
        published: &Published,
        prior: &Prior,
        requirements: &GroupBounds,
    ) -> Result<check::AnatomyAttained, check::anatomy::AnatomyViolation> {
        let columns = individuals.columns();
        let tables: Vec<_> = published
            .sub_tables
            .iter()
            .zip(division.tables())
            .map(|(rows, own)| {
                let own: Vec<&[u32]> = own.iter().map(|c| columns[*c].as_slice()).collect();
                arrays(rows, &own)
            })
            .collect();
        let values = arrays(&published.sensitive, &[individuals.sensitive()]);
        fn table((gid, columns, count): &(ArrayRef, Vec<ArrayRef>, ArrayRef)) -> AnatomyTable<'_> {
            AnatomyTable {
                gid,
                columns,
                count,
            }
        }
        let tables: Vec<AnatomyTable<'_>> = tables.iter().map(table).collect();
        for table in tables.iter().chain([&table(&values)]) {
            assert_eq!(check::rows_out_of_order(table).unwrap(), 0);
        }
        let whole: ArrayRef = Arc::new(UInt32Array::from_iter_values(
            0..prior.counts().len() as u32,
        ));
        let counts: ArrayRef = Arc::new(UInt64Array::from(prior.counts().to_vec()));
        let anatomy = ShownTables::with_prior(&tables, table(&values), &whole, &counts).unwrap();
        let ratio = |ratio: Ratio| check::Ratio::try_new(ratio.numerator(), ratio.denominator());
        let bounds = AnatomyBounds {
            alpha: requirements.alpha.map(|r| ratio(r).unwrap()),
            beta: Some(ratio(requirements.beta).unwrap()),
            gamma: requirements.gamma.map(|r| ratio(r).unwrap()),
            delta: requirements.delta.map(|r| ratio(r).unwrap()),
        };
        check::verify_anatomy(&anatomy, &bounds)
    }

    #[test]
    fn the_independent_checker_agrees_on_random_tables() {
        let mut random = ChaCha8Rng::seed_from_u64(42);
        let (mut published_tables, mut exceeded) = (0, 0);
        for round in 0..4000u64 {
            let (individuals, division, requirements) = example::random(&mut random, 80);
            let prior = Prior::of(&individuals).unwrap();
            let method = [Method::Slppa, Method::SlppaSimilar, Method::Asn][round as usize % 3];
            let division = match method {
                Method::Asn => Division::each(3),
                _ => division,
            };
            let cancel = Cancel::default();
            let groups = method.groups(&individuals, &division, &prior, &requirements, &cancel);
            let Ok(groups) = groups else {
                continue;
            };
            published_tables += 1;
            let gids: Vec<u64> = (0..groups.len() as u64).map(|g| g ^ round).collect();
            let published = publish(&individuals, &division, &groups, &gids).unwrap();
            let check = |requirements: &GroupBounds| {
                verified(&individuals, &division, &published, &prior, requirements)
            };
            let attained = check(&requirements).unwrap();
            assert_eq!(attained.groups, groups.len());
            assert_eq!(attained.individuals, individuals.len() as u64);
            // One percent less of each bound: the checker says what the definitions say.
            let less = |ratio: Ratio| Ratio::new(ratio.numerator() * 99, ratio.denominator() * 100);
            for stricter in [
                GroupBounds {
                    alpha: requirements.alpha.and_then(less),
                    ..requirements
                },
                GroupBounds {
                    beta: less(requirements.beta).unwrap(),
                    ..requirements
                },
                GroupBounds {
                    gamma: requirements.gamma.and_then(less),
                    ..requirements
                },
                GroupBounds {
                    delta: requirements.delta.and_then(less),
                    ..requirements
                },
            ] {
                let holds = groups.iter().all(|group| {
                    example::satisfies(&individuals, &division, &prior, &stricter, group)
                });
                exceeded += usize::from(!holds);
                assert_eq!(check(&stricter).is_ok(), holds);
            }
        }
        assert!(
            published_tables > 1500 && exceeded > 300,
            "{published_tables} {exceeded}"
        );
    }

    #[test]
    fn blocks_together_satisfy_what_each_does() {
        let mut random = ChaCha8Rng::seed_from_u64(43);
        let mut divided = 0;
        for round in 0..300 {
            let (individuals, division, _) = example::random(&mut random, 400);
            let requirements = example::bounds("0.8", "0.6", "0.5", "0.2");
            let prior = Prior::of(&individuals).unwrap();
            let blocks = 1 + round % 4;
            let mut groups = vec![];
            let mut refused = vec![];
            let mut divide = |members: &[u32], refused: &mut Vec<u32>| {
                let of = |codes: &[u32]| members.iter().map(|m| codes[*m as usize]).collect();
                let columns = individuals.columns().iter().map(|c| of(c)).collect();
                let block =
                    CodedIndividuals::try_new(columns, of(individuals.sensitive())).unwrap();
                let cancel = Cancel::default();
                match Method::Slppa.groups(&block, &division, &prior, &requirements, &cancel) {
                    Ok(found) => {
                        let back =
                            |group: &[u32]| group.iter().map(|m| members[*m as usize]).collect();
                        groups.extend(found.iter().map(back));
                    }
                    Err(DivideError::Infeasible(_)) => refused.extend_from_slice(members),
                    Err(other) => panic!("{other:?}"),
                }
            };
            for block in 0..blocks {
                let all = 0..individuals.len() as u32;
                let members: Vec<u32> = all.filter(|i| *i as usize % blocks == block).collect();
                divide(&members, &mut refused);
            }
            // Refused blocks belong together.
            let mut left = vec![];
            divide(&refused.clone(), &mut left);
            if !left.is_empty() {
                continue;
            }
            divided += 1;
            let groups = Groups::new(groups);
            assert_eq!(groups.individuals(), individuals.len());
            let gids: Vec<u64> = (0..groups.len() as u64).collect();
            let published = publish(&individuals, &division, &groups, &gids).unwrap();
            verified(&individuals, &division, &published, &prior, &requirements).unwrap();
        }
        assert!(divided > 150, "{divided}");
    }
}

//! What a class attains: every measure that an audit reports, from its definition.

use crate::check::classes::{
    Answer, Class, ClassRequirement, Minimum, NULL, Shortfall, ShownClasses, Tally, eir_diverse,
    min_hitting_set,
};

/// What classes are measured against, besides themselves.
///
/// Values have numbers from 0; where they have an order, numbers follow it.
#[derive(Debug, Clone, Default)]
pub struct Reference {
    /// Records of the whole table with a value of each number or a smaller one.
    cumulated: Vec<u64>,
    /// The sums of `cumulated` up to each number.
    sums: Vec<u128>,
    /// Whether the values have an order.
    ordered: bool,
    /// The category of each value, from 0, the most sensitive.
    categories: Option<Vec<u32>>,
    /// The c of recursive (c, l)-diversity, as a fraction.
    c: (u64, u64),
}

impl Reference {
    /// The distribution of the whole table: how many records have the value of each number.
    pub fn new(records: &[u64], ordered: bool) -> Self {
        let (mut cumulated, mut sums) = (vec![], vec![]);
        let (mut records_so_far, mut sum) = (0u64, 0u128);
        for &records in records {
            records_so_far += records;
            sum += u128::from(records_so_far);
            cumulated.push(records_so_far);
            sums.push(sum);
        }
        Self {
            cumulated,
            sums,
            ordered,
            categories: None,
            c: (3, 1),
        }
    }

    /// With the category of each value, numbered from 0 for the most sensitive one.
    pub fn with_categories(mut self, categories: Vec<u32>) -> Self {
        self.categories = Some(categories);
        self
    }

    /// With another c of recursive (c, l)-diversity, `numerator / denominator`; it is 3 unless said otherwise.
    pub fn with_c(mut self, numerator: u64, denominator: u64) -> Self {
        self.c = (numerator, denominator);
        self
    }

    fn records(&self) -> u64 {
        self.cumulated.last().copied().unwrap_or(0)
    }

    fn records_with(&self, value: usize) -> u64 {
        let before = value.checked_sub(1).map_or(0, |at| self.cumulated[at]);
        self.cumulated[value] - before
    }
}

/// What one class attains. Shares are left as the two integers they are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measures {
    /// |Q|
    pub records: usize,
    /// n_Q
    pub individuals: usize,
    /// m_Q, different sensitive values, NULL not counted.
    pub values: usize,
    /// max |R(p)|
    pub most_records_of_an_individual: usize,
    /// max |R(s)|, NULL counted as a value.
    pub most_records_with_a_value: usize,
    /// max |P(s)|, NULL counted as a value.
    pub most_individuals_with_a_value: usize,
    /// Individuals all of whose sensitive values are NULL.
    pub individuals_without_value: usize,
    /// Records that repeat the individual and the value of another one.
    pub duplicate_records: usize,
    /// Individuals whose set of sensitive values nobody else in the class has.
    pub unique_fingerprints: usize,
    /// Fewest individuals with the same set of sensitive values: what is left to a reader who knows both.
    pub fewest_with_a_fingerprint: usize,
    /// Individuals whose number of records nobody else in the class has.
    pub unique_record_counts: usize,
    /// e to the entropy of the records' values: the l of entropy l-diversity.
    pub entropy_l: f64,
    /// The largest l of recursive (c, l)-diversity, by records.
    pub recursive_l: usize,
    /// Distance of the records' values from those of the whole table, all values equally far from each other.
    pub t_equal: f64,
    /// The same, with neighbours in the order of the values near each other; `None` if they have no order.
    pub t_ordered: Option<f64>,
    /// Different categories; `None` without categories.
    pub categories: Option<usize>,
    /// Most individuals with a value of one category; a missing value is one.
    pub most_individuals_in_a_category: usize,
    /// The category that most individuals have a value of, the most sensitive one of several; `None` if there is none.
    pub modal_category: Option<usize>,
    /// Individuals with a value of it.
    pub individuals_in_modal_category: usize,
    /// Records with a value of it.
    pub records_in_modal_category: usize,
    /// The total weight (Sun 2010, Definition 4) times the number of categories less one: the sum of the category
    /// numbers of each individual's most sensitive value, where one with a missing value weighs nothing.
    pub weight: usize,
}

/// Room to measure the classes of one [`ShownClasses`].
#[derive(Debug)]
pub struct Measurer<'a> {
    reference: &'a Reference,
    /// The number of each value code; `None` where nothing is known of the whole table.
    numbers: Option<&'a [u32]>,
    tally: Tally,
}

impl<'a> Measurer<'a> {
    /// To measure classes of `published`. `numbers[c]` is the number in `reference` of the value with code `c`; the
    /// entry for 0, NULL, is not used. Without numbers, nothing is said of distances and categories.
    pub fn new(
        published: &ShownClasses,
        reference: &'a Reference,
        numbers: Option<&'a [u32]>,
    ) -> Self {
        Self {
            reference,
            numbers,
            tally: published.tally(),
        }
    }

    /// Measures a class.
    pub fn measure(&mut self, class: &Class<'_>) -> Measures {
        let counts = class.counts(&mut self.tally);
        let mut measures = Measures {
            records: counts.records,
            individuals: counts.individuals,
            values: counts.values,
            most_records_of_an_individual: counts.most_records_of_an_individual,
            most_records_with_a_value: counts.most_records_with_a_value,
            most_individuals_with_a_value: counts.most_individuals_with_a_value,
            ..Measures::default()
        };
        for member in class.members {
            let (values, _) = class.values_of(member);
            measures.individuals_without_value += usize::from(values == [NULL]);
            measures.duplicate_records += member.records - values.len();
        }
        let fingerprints = runs(class.members.iter().map(|m| class.values_of(m).0));
        measures.unique_fingerprints = fingerprints.iter().filter(|n| **n == 1).count();
        measures.fewest_with_a_fingerprint = fingerprints.into_iter().min().unwrap_or(0);
        let counts = runs(class.members.iter().map(|m| m.records));
        measures.unique_record_counts = counts.iter().filter(|n| **n == 1).count();

        let records = records_by_value(class);
        let mut counts: Vec<u64> = records.iter().map(|&(_, records)| records).collect();
        measures.entropy_l = entropy_l(&counts);
        measures.recursive_l = recursive(&mut counts, self.reference.c);
        if let Some(numbers) = self.numbers {
            let mut numbered: Vec<(usize, u64)> = records
                .iter()
                .map(|&(code, records)| (numbers[code as usize] as usize, records))
                .collect();
            numbered.sort_unstable();
            measures.t_equal = equal_distance(&numbered, self.reference);
            measures.t_ordered = self
                .reference
                .ordered
                .then(|| ordered_distance(&numbered, self.reference));
            self.categories(class, numbers, &mut measures);
        }
        measures
    }

    /// Whether the class satisfies a requirement.
    pub fn satisfies(&mut self, class: &Class<'_>, requirement: &ClassRequirement) -> Answer {
        let counts = class.counts(&mut self.tally);
        match requirement.check(class, &counts) {
            Ok(()) => Answer::Holds,
            Err(Shortfall::Undecided) => Answer::Undecided,
            Err(_) => Answer::Fails,
        }
    }

    fn categories(&self, class: &Class<'_>, numbers: &[u32], measures: &mut Measures) {
        let Some(categories) = &self.reference.categories else {
            return;
        };
        let (mut holders, mut records): (Vec<usize>, Vec<usize>) = (vec![], vec![]);
        let mut with_missing = 0;
        let mut seen: Vec<u32> = vec![];
        for member in class.members {
            let (values, shown) = class.values_of(member);
            let known = values
                .iter()
                .zip(shown)
                .filter(|(value, _)| **value != NULL);
            let known = known.map(|(&value, &n)| (categories[numbers[value as usize] as usize], n));
            seen.clear();
            for (category, n) in known {
                seen.push(category);
                let category = category as usize;
                records.resize(records.len().max(category + 1), 0);
                records[category] += n as usize;
            }
            seen.sort_unstable();
            seen.dedup();
            if values.contains(&NULL) {
                with_missing += 1;
            } else if let Some(&most_sensitive) = seen.first() {
                measures.weight += most_sensitive as usize;
            }
            for &category in &seen {
                let category = category as usize;
                holders.resize(holders.len().max(category + 1), 0);
                holders[category] += 1;
            }
        }
        measures.categories = Some(holders.iter().filter(|&&n| n > 0).count());
        let most = holders.iter().copied().max().unwrap_or(0);
        measures.modal_category = holders.iter().position(|&n| n > 0 && n == most);
        measures.individuals_in_modal_category = most;
        measures.records_in_modal_category = measures.modal_category.map_or(0, |at| records[at]);
        measures.most_individuals_in_a_category = most.max(with_missing);
    }
}

/// The largest l of a class's EIR l-diversity, or `None` where it is at least `enough`, which is quicker to see.
pub fn eir_l(class: &Class<'_>, enough: Option<usize>) -> Option<Minimum> {
    let family = class.fingerprints();
    if enough.is_some_and(|l| eir_diverse(&family, l) == Answer::Holds) {
        return None;
    }
    Some(min_hitting_set(&family))
}

/// How often each different item occurs.
fn runs<T: Ord>(items: impl Iterator<Item = T>) -> Vec<usize> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    let runs = items.chunk_by(|a, b| a == b);
    runs.map(<[T]>::len).collect()
}

/// How many records show each value, NULL left out.
fn records_by_value(class: &Class<'_>) -> Vec<(u32, u64)> {
    let mut pairs: Vec<(u32, u64)> = vec![];
    for member in class.members {
        let (values, records) = class.values_of(member);
        let known = values.iter().zip(records).filter(|(v, _)| **v != NULL);
        pairs.extend(known.map(|(&value, &records)| (value, u64::from(records))));
    }
    pairs.sort_unstable();
    let by_value = pairs.chunk_by(|a, b| a.0 == b.0);
    by_value
        .map(|pairs| (pairs[0].0, pairs.iter().map(|(_, records)| records).sum()))
        .collect()
}

/// e to the entropy of values that occur so often; 0 without any.
fn entropy_l(counts: &[u64]) -> f64 {
    let all: u64 = counts.iter().sum();
    if counts.windows(2).all(|pair| pair[0] == pair[1]) {
        // As many equally frequent values: a logarithm and back would be off by a little.
        return counts.len() as f64;
    }
    let all = all as f64;
    let terms = counts.iter().map(|&count| {
        let share = count as f64 / all;
        -share * share.ln()
    });
    terms.sum::<f64>().exp()
}

/// The largest l with r_1 < c (r_l + … + r_m), where r_1 ≥ r_2 ≥ … are the counts (Machanavajjhala 2007, Def. 4.2); 0
/// if there is none.
fn recursive(counts: &mut [u64], (numerator, denominator): (u64, u64)) -> usize {
    counts.sort_unstable();
    let most = counts.last().copied().unwrap_or(0);
    let mut tail = 0;
    // From the rarest value on; the first l that holds is the largest.
    for (at, count) in counts.iter().enumerate() {
        tail += count;
        if u128::from(most) * u128::from(denominator) < u128::from(numerator) * u128::from(tail) {
            return counts.len() - at;
        }
    }
    0
}

/// Half the sum of |p − q| over all values, which is the sum of p − q over the values where p is larger.
fn equal_distance(class: &[(usize, u64)], table: &Reference) -> f64 {
    let records: u64 = class.iter().map(|(_, records)| records).sum();
    let (n, all) = (u128::from(records), u128::from(table.records()));
    if n == 0 || all == 0 {
        return 1.0;
    }
    let excess = class.iter().map(|&(value, records)| {
        let expected = u128::from(table.records_with(value)) * n;
        (u128::from(records) * all).saturating_sub(expected)
    });
    excess.sum::<u128>() as f64 / (n * all) as f64
}

/// The earth mover's distance where neighbours in the order of the values are 1 / (m − 1) apart (Li 2007): the sum of
/// |P − Q| over the cumulated shares of all values, divided by m − 1.
fn ordered_distance(class: &[(usize, u64)], table: &Reference) -> f64 {
    let records: u64 = class.iter().map(|(_, records)| records).sum();
    let (n, all) = (u128::from(records), u128::from(table.records()));
    if n == 0 || all == 0 {
        return 1.0;
    }
    let steps = table.cumulated.len() as u128 - 1;
    if steps == 0 {
        return 0.0;
    }
    let (mut distance, mut below, mut begin) = (0u128, 0u128, 0);
    for (value, records) in class.iter().copied().chain([(table.cumulated.len(), 0)]) {
        // From the value before to this one, the cumulated share of the class stays what it is.
        distance += gap(table, begin..value, below * all, n);
        below += u128::from(records);
        begin = value;
    }
    distance as f64 / (n * all * steps) as f64
}

/// The sum of |level − n · cumulated| over some values. Cumulated counts ascend, so they cross the level once.
fn gap(table: &Reference, values: std::ops::Range<usize>, level: u128, n: u128) -> u128 {
    if values.is_empty() {
        return 0;
    }
    let cumulated = &table.cumulated[values.clone()];
    let cross = values.start + cumulated.partition_point(|&c| u128::from(c) * n <= level);
    let sum = |range: std::ops::Range<usize>| {
        let upto = |end: usize| end.checked_sub(1).map_or(0, |at| table.sums[at]);
        upto(range.end) - upto(range.start)
    };
    let under = (cross - values.start) as u128 * level - n * sum(values.start..cross);
    let over = n * sum(cross..values.end) - (values.end - cross) as u128 * level;
    under + over
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use datafusion::arrow::array::{Array, ArrayRef, Int32Array, UInt32Array};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::check::classes::{Records, ShownAttribute};
    use crate::check::{Ratio, Sensitivity, check_sensitivity};

    /// Class, individual, value.
    type Record = (i32, i32, Option<i32>);

    const TABLES: u64 = 20_000;

    #[test]
    fn twenty_thousand_random_tables_agree_with_brute_force() {
        for seed in 0..TABLES {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (people, values) = (rng.random_range(1..=9), rng.random_range(1..=6));
            let nulls = rng.random_bool(0.2);
            let home: Vec<i32> = (0..people).map(|_| rng.random_range(0..3)).collect();
            let records: Vec<Record> = (0..rng.random_range(1..=20))
                .map(|_| {
                    let who = rng.random_range(0..people);
                    let value = rng.random_range(0..values);
                    let known = !nulls || rng.random_bool(0.8);
                    (home[who as usize], who, known.then_some(value))
                })
                .collect();
            check(seed, &records, values as usize);
        }
    }

    fn check(seed: u64, records: &[Record], values: usize) {
        let column = |f: &dyn Fn(&Record) -> Option<i32>| -> ArrayRef {
            Arc::new(records.iter().map(f).collect::<Int32Array>())
        };
        let class = column(&|r| Some(r.0));
        let (who, what) = (column(&|r| Some(r.1)), column(&|r| r.2));
        let published = ShownClasses::from_columns(&[class], &who, &what).unwrap();

        // The values of the whole table, in order, and the number of each code.
        let known: BTreeSet<i32> = records.iter().filter_map(|r| r.2).collect();
        let known: Vec<i32> = known.into_iter().collect();
        let whole: Vec<u64> = known
            .iter()
            .map(|v| records.iter().filter(|r| r.2 == Some(*v)).count() as u64)
            .collect();
        let category = |v: i32| (v % 3) as u32;
        let reference = Reference::new(&whole, true)
            .with_categories(known.iter().map(|v| category(*v)).collect())
            .with_c(5, 2);
        let numbers: Vec<u32> = published
            .examples()
            .iter()
            .map(|&record| match records[record as usize].2 {
                Some(value) => known.binary_search(&value).unwrap() as u32,
                None => u32::MAX,
            })
            .collect();
        let mut measurer = Measurer::new(&published, &reference, Some(&numbers));
        let mut all = vec![];
        for class in published.classes() {
            let member = class.members[0].records;
            assert!(member > 0);
            let name = first_classes(records)[class.tuple()];
            let of_class: Vec<Record> = records.iter().filter(|r| r.0 == name).copied().collect();
            let expected = brute_force(&of_class, &known, &whole, category);
            let measured = measurer.measure(&class);
            assert!(
                close(&measured, &expected),
                "seed {seed}, {values} values: {records:?}\n{measured:?}\n{expected:?}"
            );
            let fewest = fewest_values(&of_class);
            assert_eq!(
                eir_l(&class, None),
                Some(Minimum::Exact(fewest)),
                "seed {seed}"
            );
            assert_eq!(eir_l(&class, Some(fewest)), None, "seed {seed}");
            assert!(eir_l(&class, Some(fewest + 1)).is_some(), "seed {seed}");
            all.push(measured);
        }
        agrees_with_check_sensitivity(seed, records, category, &all);
    }

    /// k, p, the categories, their largest share and the total weight are what the models require.
    fn agrees_with_check_sensitivity(
        seed: u64,
        records: &[Record],
        category: impl Fn(i32) -> u32,
        classes: &[Measures],
    ) {
        let number = |n: i32| n as u32;
        let class: Vec<u32> = records.iter().map(|r| number(r.0)).collect();
        let individual: Vec<u32> = records.iter().map(|r| number(r.1)).collect();
        let attribute = ShownAttribute {
            value: records.iter().map(|r| r.2.map(number)).collect(),
            category: (0..6).map(|v| Some(category(v))).collect(),
            categories: 3,
        };
        let records = Records {
            class: &class,
            individual: &individual,
            attributes: &[attribute],
        };
        let check = |model: &str, alpha: &str| {
            let parameters = [("k", "1"), ("p", "0"), ("alpha", alpha)];
            let parameter = |name: &str| parameters.iter().find(|(n, _)| *n == name).map(|p| p.1);
            check_sensitivity(&records, &Sensitivity::named(model, parameter).unwrap())
        };
        let attained = check("p_plus_sensitive_k_anonymity", "").unwrap();
        let least = |f: fn(&Measures) -> usize| classes.iter().map(f).min().unwrap();
        assert_eq!(attained.smallest_class, least(|m| m.individuals));
        assert_eq!(attained.fewest_values, least(|m| m.values), "seed {seed}");
        let categories = least(|m| m.categories.unwrap());
        assert_eq!(attained.fewest_categories, categories, "seed {seed}");
        let shares = classes
            .iter()
            .map(|m| Ratio::of(m.most_individuals_in_a_category, m.individuals));
        let share = attained.largest_category_share;
        assert_eq!(Some(share), shares.max(), "seed {seed}");
        // Weights are halves: with three categories a step is one half.
        let weight = least(|m| m.weight);
        let decimal = |halves: usize| format!("{}.{}", halves / 2, halves % 2 * 5);
        let weighs = |halves| check("p_alpha_sensitive_k_anonymity", &decimal(halves));
        assert!(weight == 0 || weighs(weight).is_ok(), "seed {seed}");
        assert!(weighs(weight + 1).is_err(), "seed {seed}");
    }

    /// Classes in the order in which they appear.
    fn first_classes(records: &[Record]) -> Vec<i32> {
        let mut classes: Vec<i32> = vec![];
        for record in records {
            if !classes.contains(&record.0) {
                classes.push(record.0);
            }
        }
        classes
    }

    fn close(a: &Measures, b: &Measures) -> bool {
        let near = |x: f64, y: f64| (x - y).abs() < 1e-9;
        let integers = |m: &Measures| Measures {
            entropy_l: 0.0,
            t_equal: 0.0,
            t_ordered: None,
            ..*m
        };
        near(a.entropy_l, b.entropy_l)
            && near(a.t_equal, b.t_equal)
            && near(a.t_ordered.unwrap(), b.t_ordered.unwrap())
            && integers(a) == integers(b)
    }

    /// Every measure by counting again from the records of a class.
    fn brute_force(
        records: &[Record],
        known: &[i32],
        whole: &[u64],
        category: impl Fn(i32) -> u32,
    ) -> Measures {
        let people: BTreeSet<i32> = records.iter().map(|r| r.1).collect();
        let shown: BTreeSet<Option<i32>> = records.iter().map(|r| r.2).collect();
        let pairs: BTreeSet<(i32, Option<i32>)> = records.iter().map(|r| (r.1, r.2)).collect();
        let of = |who: i32| records.iter().filter(|r| r.1 == who).count();
        let with = |value: Option<i32>| records.iter().filter(|r| r.2 == value).count();
        let holders = |value: Option<i32>| pairs.iter().filter(|p| p.1 == value).count();
        let fingerprint = |who: i32| -> Vec<Option<i32>> {
            pairs.iter().filter(|p| p.0 == who).map(|p| p.1).collect()
        };
        let alone = |who: &&i32, key: &dyn Fn(i32) -> String| {
            people.iter().filter(|w| key(**w) == key(**who)).count() == 1
        };

        let n: usize = records.iter().filter(|r| r.2.is_some()).count();
        let all: u64 = whole.iter().sum();
        let p: Vec<f64> = known
            .iter()
            .map(|v| with(Some(*v)) as f64 / n as f64)
            .collect();
        let q: Vec<f64> = whole.iter().map(|w| *w as f64 / all as f64).collect();
        let entropy: f64 = p.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
        let t: f64 = p.iter().zip(&q).map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0;
        let mut cumulated = 0.0;
        let mut emd = 0.0;
        for (p, q) in p.iter().zip(&q) {
            cumulated += p - q;
            emd += cumulated.abs();
        }
        let mut counts: Vec<usize> = known
            .iter()
            .map(|v| with(Some(*v)))
            .filter(|c| *c > 0)
            .collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let recursive = (1..=counts.len())
            .filter(|l| 2 * counts[0] < 5 * counts[l - 1..].iter().sum::<usize>())
            .max();
        let mut in_category: BTreeMap<u32, BTreeSet<i32>> = BTreeMap::new();
        for (who, value) in &pairs {
            if let Some(value) = value {
                in_category
                    .entry(category(*value))
                    .or_default()
                    .insert(*who);
            }
        }
        let size = |c: &u32| in_category[c].len();
        let most = in_category.keys().map(size).max();
        let modal = in_category.keys().copied().find(|c| Some(size(c)) == most);
        Measures {
            records: records.len(),
            individuals: people.len(),
            values: shown.iter().flatten().count(),
            most_records_of_an_individual: people.iter().map(|w| of(*w)).max().unwrap(),
            most_records_with_a_value: shown.iter().map(|v| with(*v)).max().unwrap(),
            most_individuals_with_a_value: shown.iter().map(|v| holders(*v)).max().unwrap(),
            individuals_without_value: people.iter().filter(|w| fingerprint(**w) == [None]).count(),
            duplicate_records: records.len() - pairs.len(),
            unique_fingerprints: people
                .iter()
                .filter(|w| alone(w, &|who| format!("{:?}", fingerprint(who))))
                .count(),
            fewest_with_a_fingerprint: people
                .iter()
                .map(|who| {
                    let same = |w: &&i32| fingerprint(**w) == fingerprint(*who);
                    people.iter().filter(same).count()
                })
                .min()
                .unwrap(),
            unique_record_counts: people
                .iter()
                .filter(|w| alone(w, &|who| of(who).to_string()))
                .count(),
            entropy_l: if n == 0 { 0.0 } else { entropy.exp() },
            recursive_l: recursive.unwrap_or(0),
            t_equal: if n == 0 { 1.0 } else { t },
            t_ordered: Some(match (n, known.len()) {
                (0, _) => 1.0,
                (_, 1) => 0.0,
                (_, m) => emd / (m - 1) as f64,
            }),
            categories: Some(in_category.len()),
            most_individuals_in_a_category: in_category
                .values()
                .map(BTreeSet::len)
                .chain([holders(None)])
                .max()
                .unwrap(),
            modal_category: modal.map(|c| c as usize),
            individuals_in_modal_category: modal.map_or(0, |c| in_category[&c].len()),
            records_in_modal_category: modal.map_or(0, |c| {
                let values = records.iter().filter_map(|r| r.2);
                values.filter(|value| category(*value) == c).count()
            }),
            weight: people
                .iter()
                .map(|who| {
                    let of = fingerprint(*who).into_iter();
                    of.map(|v| v.map_or(0, &category)).min().unwrap() as usize
                })
                .sum(),
        }
    }

    /// The fewest values in a choice of one record of each individual without NULLs, by trying every set of values.
    fn fewest_values(records: &[Record]) -> usize {
        let mut people: BTreeMap<i32, BTreeSet<Option<i32>>> = BTreeMap::new();
        for record in records {
            people.entry(record.1).or_default().insert(record.2);
        }
        people.retain(|_, values| !values.contains(&None));
        (0u32..64)
            .filter(|set| {
                let hit = |v: &Option<i32>| v.is_some_and(|v| set >> v & 1 == 1);
                people.values().all(|values| values.iter().any(hit))
            })
            .map(u32::count_ones)
            .min()
            .unwrap_or(0) as usize
    }

    /// Li 2007's salary example: {3k, 4k, 5k} and {6k, 8k, 11k} against all nine salaries.
    #[test]
    fn the_distances_of_the_salary_example() {
        let reference = Reference::new(&[1; 9], true);
        let low = [(0, 1), (1, 1), (2, 1)];
        assert!((ordered_distance(&low, &reference) - 0.375).abs() < 1e-12);
        let mixed = [(3, 1), (5, 1), (8, 1)];
        assert!((ordered_distance(&mixed, &reference) - 1.0 / 6.0).abs() < 1e-3);
        assert!((equal_distance(&low, &reference) - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn recursive_diversity_is_strict() {
        // 3 < 3 · 1 does not hold, 3 < 3 · (1 + 1) does.
        assert_eq!(recursive(&mut [3, 1, 1], (3, 1)), 2);
        assert_eq!(recursive(&mut [3, 1, 1], (4, 1)), 3);
        assert_eq!(recursive(&mut [5], (1, 1)), 0);
        assert_eq!(recursive(&mut [], (3, 1)), 0);
    }

    #[test]
    fn nothing_is_said_of_distances_without_the_whole_table() {
        let who: ArrayRef = Arc::new(UInt32Array::from(vec![1, 2]));
        let published = ShownClasses::from_columns(&[], &who, &who).unwrap();
        let reference = Reference::default();
        let class = published.classes().next().unwrap();
        let measures = Measurer::new(&published, &reference, None).measure(&class);
        assert_eq!((measures.t_ordered, measures.categories), (None, None));
        assert_eq!(who.len(), measures.individuals);
    }
}

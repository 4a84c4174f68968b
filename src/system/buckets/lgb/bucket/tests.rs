use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use rand::{Rng, SeedableRng};

use super::*;
use crate::model::Ratio;
use crate::system::buckets::lgb::ValueOrder;
use crate::system::buckets::lgb::example::{closeness, diversity};

const WHERE: AttributePlace = AttributePlace::Sensitive(0);

fn form(ranks: &[u32], rule: &Rule, key: u8) -> Result<Buckets, Refusal> {
    let owners = (0..ranks.len() as u32).collect();
    let cancel = Cancel::default();
    bucketize(WHERE, ranks, owners, rule, &[key; 32], 1, &cancel)
}

/// Ranks with so many of each.
fn histogram(counts: &[usize]) -> Vec<u32> {
    let value = |(rank, count): (usize, &usize)| vec![rank as u32; *count];
    counts.iter().enumerate().flat_map(value).collect()
}

/// Every individual once, shown values those of the bucket; the values of each bucket.
fn values(buckets: &Buckets, ranks: &[u32]) -> Vec<Vec<u32>> {
    let mut all: Vec<u32> = vec![];
    let mut values = vec![];
    for bucket in 0..buckets.len() {
        let members = buckets.members(bucket);
        let sorted = |mut list: Vec<u32>| {
            list.sort_unstable();
            list
        };
        assert!(members.iter().all(|m| buckets.of(*m) == Some(bucket)));
        let donors = sorted(members.iter().map(|m| buckets.shown(*m).unwrap()).collect());
        assert_eq!(donors, sorted(members.to_vec()));
        all.extend(members);
        values.push(sorted(members.iter().map(|m| ranks[*m as usize]).collect()));
    }
    all.sort_unstable();
    assert_eq!(all, (0..ranks.len() as u32).collect::<Vec<_>>());
    values
}

fn is_unique(values: &[u32], l: u32) -> bool {
    values.windows(2).all(|pair| pair[0] < pair[1]) && values.len() >= l as usize
}

#[test]
fn every_small_histogram_is_divided_or_refused() {
    let mut divided = 0;
    for number in 0..6usize.pow(5) {
        let counts: Vec<usize> = (0..5).map(|v| number / 6usize.pow(v) % 6).collect();
        let ranks = histogram(&counts);
        let most = counts.iter().copied().max().unwrap_or(0);
        for l in 2..=4 {
            match form(&ranks, &diversity(l), 3) {
                Ok(buckets) => {
                    assert!(most * l as usize <= ranks.len());
                    let values = values(&buckets, &ranks);
                    assert!(values.iter().all(|v| is_unique(v, l)), "{counts:?} {l}");
                    divided += 1;
                }
                Err(Refusal::Unworkable(refusal)) => {
                    assert!(most * l as usize > ranks.len(), "{counts:?} {l}");
                    let best = refusal.largest_l();
                    assert_eq!(best, Some(ranks.len() / most).filter(|l| *l >= 2));
                    if let Some(best) = best {
                        assert!(form(&ranks, &diversity(best as u32), 3).is_ok());
                    }
                }
                Err(Refusal::Cancelled) => unreachable!(),
            }
        }
    }
    assert!(divided > 5000);
}

#[test]
fn large_skewed_histograms_are_divided() {
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(1);
    for _ in 0..200 {
        let l = rng.random_range(2..12);
        let others = rng.random_range(l..400) as usize;
        let mut counts: Vec<usize> = (0..others).map(|_| rng.random_range(1..4)).collect();
        let rest: usize = counts.iter().sum();
        // As frequent as eligibility allows: m · l ≤ m + rest.
        counts.push(rest / (l as usize - 1));
        let ranks = histogram(&counts);
        match form(&ranks, &diversity(l), 9) {
            Ok(buckets) => {
                let values = values(&buckets, &ranks);
                assert!(values.iter().all(|v| is_unique(v, l)));
            }
            Err(_) => assert!(counts.iter().max().unwrap() * l as usize > ranks.len()),
        }
    }
}

#[test]
fn an_ineligible_root_is_refused_with_the_best_l() {
    // docs/theory/papers.md L2: two values for sex, l = 5.
    let refusal = form(&histogram(&[6, 2]), &diversity(5), 1).unwrap_err();
    let text = "l = 5 is impossible: one value is 6 of the 8 secret values, no l works; t may";
    assert_eq!(refusal.to_string(), text);
    let refusal = form(&histogram(&[3, 2, 2, 2]), &diversity(5), 1).unwrap_err();
    let text =
        "l = 5 is impossible: one value is 3 of the 9 secret values, the largest l that works is 3";
    assert_eq!(refusal.to_string(), text);
    assert!(form(&histogram(&[3, 2, 2, 2]), &diversity(3), 1).is_ok());
    // Nobody keeps anything secret.
    assert_eq!(form(&[], &diversity(5), 1).unwrap().len(), 0);
}

#[test]
fn dividing_values_ends() {
    // docs/theory/papers.md L3: an upper median never ends for 1, 2, 3, 3 with l = 2.
    let ranks = histogram(&[1, 1, 2]);
    let buckets = values(&form(&ranks, &diversity(2), 1).unwrap(), &ranks);
    assert_eq!(buckets.len(), 2);
    // A median that leaves nothing above it.
    let ranks = histogram(&[1, 1, 1, 3]);
    assert!(form(&ranks, &diversity(2), 1).is_ok());
}

#[test]
fn ranges_cannot_be_cut_further() {
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(2);
    let cancel = Cancel::default();
    for _ in 0..2000 {
        let distinct = rng.random_range(1..20);
        let counts: Vec<usize> = (0..distinct).map(|_| rng.random_range(1..6)).collect();
        let ranks = histogram(&counts);
        let l = rng.random_range(2..4);
        let eligible = |range: &Range<usize>| {
            let part = &counts[range.clone()];
            let most = part.iter().copied().max().unwrap_or(usize::MAX);
            most.saturating_mul(l) <= part.iter().sum()
        };
        if !eligible(&(0..distinct)) {
            continue;
        }
        let owners = (0..ranks.len() as u32).collect();
        let owners = Owners::sort(owners, &ranks, &mut Random::new(&[1; 32], 1));
        let mut end = 0;
        for range in ranges::divide(&owners, l, &cancel).unwrap() {
            assert_eq!(range.start, end);
            end = range.end;
            assert!(eligible(&range));
            for cut in range.start + 1..range.end {
                let cuttable = eligible(&(range.start..cut)) && eligible(&(cut..range.end));
                assert!(!cuttable, "{counts:?} {range:?} {cut}");
            }
        }
        assert_eq!(end, distinct);
    }
}

/// The distance in floating point, from its definition.
fn distance(values: &[u32], whole: &[f64], order: ValueOrder) -> f64 {
    let n = values.len() as f64;
    let share = |rank: usize| values.iter().filter(|v| **v as usize == rank).count() as f64 / n;
    let differences = (0..whole.len()).map(|rank| share(rank) - whole[rank]);
    match order {
        ValueOrder::Nominal => differences.map(f64::abs).sum::<f64>() / 2.0,
        ValueOrder::Numeric => {
            let mut below = 0.0;
            let sums = differences.map(|d| {
                below += d;
                f64::abs(below)
            });
            let present = whole.iter().filter(|share| **share > 0.0).count();
            sums.sum::<f64>() / (present as f64 - 1.0)
        }
    }
}

#[test]
fn close_buckets_are_close_and_never_of_one_value() {
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(3);
    for _ in 0..2000 {
        let distinct = rng.random_range(2..6);
        let counts: Vec<usize> = (0..distinct).map(|_| rng.random_range(1..40)).collect();
        let ranks = histogram(&counts);
        let whole: Vec<f64> = counts
            .iter()
            .map(|c| *c as f64 / ranks.len() as f64)
            .collect();
        let t = format!("0.{:02}", rng.random_range(1..60));
        for order in [ValueOrder::Nominal, ValueOrder::Numeric] {
            let buckets = form(&ranks, &closeness(&t, order), 1).unwrap();
            for values in values(&buckets, &ranks) {
                assert!(values.iter().collect::<HashSet<_>>().len() >= 2);
                let bound = t.parse::<f64>().unwrap() + 1e-9;
                assert!(distance(&values, &whole, order) <= bound);
            }
        }
    }
}

#[test]
fn two_values_make_small_buckets() {
    // Half and half within 0.2: three members at least, because 1 : 2 is 0.167 off; alone or two alike are 0.5 off.
    let ranks = histogram(&[300, 300]);
    let buckets = form(&ranks, &closeness("0.2", ValueOrder::Nominal), 1).unwrap();
    assert_eq!(buckets.len(), 300, "pairs of both are exact");
    let ranks = histogram(&[400, 200]);
    let buckets = form(&ranks, &closeness("0.2", ValueOrder::Nominal), 1).unwrap();
    assert_eq!(buckets.len(), 200);
}

#[test]
fn boundaries_of_closeness_are_exact() {
    // Every bucket of three is 1 : 2 or 2 : 1, exactly 1/6 from one half.
    let ranks = histogram(&[3, 3]);
    let closer = |t: Ratio| Rule::Closeness {
        t,
        order: ValueOrder::Nominal,
        reference: Some(vec![1, 1].into()),
    };
    let whole = histogram(&[1, 2]);
    let sixth = Ratio::new(1, 6).unwrap();
    assert!(form(&whole, &closer(sixth), 1).is_ok());
    assert!(form(&whole, &closer("0.1666666".parse().unwrap()), 1).is_err());
    assert!(form(&ranks, &closer(sixth), 1).is_ok());
}

#[test]
fn the_smallest_t_is_named_and_works() {
    let rule = |t: Ratio, order| Rule::Closeness {
        t,
        order,
        reference: Some(vec![10, 10, 10, 0, 10].into()),
    };
    for order in [ValueOrder::Nominal, ValueOrder::Numeric] {
        let ranks = histogram(&[5, 3, 1]);
        let refusal = form(&ranks, &rule("0.01".parse().unwrap(), order), 1).unwrap_err();
        let Refusal::Unworkable(Unworkable::Closeness {
            best: Some(best), ..
        }) = refusal
        else {
            panic!("{refusal:?}");
        };
        let said = format!("t = 0.01 is impossible: the smallest t that works is {best}");
        assert_eq!(refusal.to_string(), said);
        assert!(form(&ranks, &rule(best, order), 1).is_ok());
        let less = Ratio::new(
            best.numerator() * 1_000_000 / best.denominator() - 1,
            1_000_000,
        );
        assert!(form(&ranks, &rule(less.unwrap(), order), 1).is_err());
    }
    let refusal = form(&[4, 4, 4], &closeness("0.2", ValueOrder::Nominal), 1).unwrap_err();
    let said = "t = 0.2 is impossible: all secret values are the same, no t works";
    assert_eq!(refusal.to_string(), said);
}

#[test]
fn values_are_permuted_uniformly_and_independently() {
    // docs/theory/papers.md L4: 6 orders of three values in each of two attributes, 36 pairs, 200 expected of each.
    let ranks = [0, 1, 2];
    let cancel = Cancel::default();
    let mut seen: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    for run in 0..7200u32 {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&run.to_le_bytes());
        let mut shown = vec![];
        for stream in [1, 2] {
            let owners = vec![0, 1, 2];
            let rule = diversity(3);
            let buckets = bucketize(WHERE, &ranks, owners, &rule, &key, stream, &cancel).unwrap();
            shown.extend((0..3).map(|i| buckets.shown(i).unwrap()));
        }
        *seen.entry(shown).or_default() += 1;
    }
    assert_eq!(seen.len(), 36);
    // 5 standard deviations are 70.
    assert!(seen.values().all(|n| (130..=270).contains(n)), "{seen:?}");
}

#[test]
fn owners_of_a_value_are_spread_at_random() {
    // Which of two owners of value 0 shares a bucket with the first owner of value 1.
    let ranks = [0, 0, 1, 1];
    let mut with_first = 0;
    for key in 0..=255 {
        let buckets = form(&ranks, &diversity(2), key).unwrap();
        with_first += u32::from(buckets.of(0) == buckets.of(2));
    }
    assert!((88..=168).contains(&with_first), "{with_first}");
}

#[test]
fn a_cancelled_run_stops() {
    let cancel = Cancel::default();
    cancel.cancel();
    let ranks = histogram(&[2, 2, 2]);
    for rule in [diversity(2), closeness("0.01", ValueOrder::Nominal)] {
        let owners = (0..6).collect();
        let stopped = bucketize(WHERE, &ranks, owners, &rule, &[1; 32], 1, &cancel);
        assert_eq!(stopped, Err(Refusal::Cancelled));
    }
}

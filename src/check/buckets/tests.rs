use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, ListArray, StringArray,
    StructArray, UInt32Array, UInt64Array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Int32Type};

use super::*;

fn ints(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn ids(values: &[u64]) -> ArrayRef {
    // 0 stands for none.
    let ids = values.iter().map(|id| (*id > 0).then_some(*id));
    Arc::new(ids.collect::<UInt64Array>())
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn column(value: &ArrayRef, bucket: &[u64]) -> LocalColumn {
    LocalColumn {
        value: Arc::clone(value),
        bucket: ids(bucket),
        table: None,
    }
}

fn who(n: i32) -> ArrayRef {
    ints(&(0..n).collect::<Vec<_>>())
}

const TWO: BucketRule = BucketRule::Diversity { l: 2 };

fn close(t: &str, ordered: bool) -> BucketRule {
    let t = t.parse().unwrap();
    BucketRule::Closeness { t, ordered }
}

/// Figure 2 of the paper: gender, then age and zip code with their buckets, and disease.
fn figure_2() -> (ArrayRef, LocalColumn, LocalColumn, LocalColumn) {
    let gender = texts(&["*", "*", "Male", "Male", "Female", "Male", "Female", "Male"]);
    let age = texts(&["25-28", "25-28", "16-22", "24", "31", "16-22", "29", "34"]);
    let zip = texts(&[
        "21344", "21357", "2135*", "213**", "21328", "2135*", "21328", "213**",
    ]);
    let disease = texts(&[
        "Bronchitis",
        "Gastritis",
        "Dyspepsia",
        "Pneumonia",
        "Flu",
        "Hepatitis",
        "Bronchitis",
        "Pneumonia",
    ]);
    (
        gender,
        column(&age, &[0, 0, 0, 1, 1, 0, 2, 2]),
        column(&zip, &[1, 1, 0, 0, 0, 0, 0, 0]),
        column(&disease, &[1, 1, 2, 2, 3, 3, 4, 4]),
    )
}

#[test]
fn figure_2_has_groups_and_buckets_of_two() {
    let (gender, age, zip, disease) = figure_2();
    let release = ShownBuckets::try_new(&who(8), &[gender], &[age, zip], &[disease]).unwrap();
    let attained = verify_local(&release, 2, &[TWO; 3]).unwrap();
    assert_eq!((attained.individuals, attained.groups), (8, 4));
    assert_eq!((attained.smallest_group, attained.largest_group), (2, 2));
    assert_eq!((attained.patterns, attained.smallest_pattern), (3, 2));
    let buckets: Vec<usize> = attained.attributes.iter().map(|a| a.buckets).collect();
    assert_eq!(buckets, [2, 1, 4]);

    let small = verify_local(&release, 3, &[TWO; 3]).unwrap_err();
    let said = "4 of 4 local groups have fewer than 3 individuals, the smallest 2";
    assert_eq!(small.to_string(), said);
    let three = BucketRule::Diversity { l: 3 };
    let narrow = verify_local(&release, 2, &[TWO, TWO, three]).unwrap_err();
    let said = "4 of 4 buckets of attribute 2 violate 3-diversity; the first of them has 2 values, one of them 1 times";
    assert_eq!(narrow.to_string(), said);
    // A rule that is missing is not one that holds.
    assert!(verify_local(&release, 2, &[TWO, TWO]).is_err());
}

/// The same values as a dictionary with an entry per row, backwards.
fn packed(values: &ArrayRef) -> ArrayRef {
    let keys = UInt32Array::from_iter_values((0..values.len() as u32).rev());
    let backwards = take(values, &keys, None).unwrap();
    Arc::new(DictionaryArray::new(keys, backwards))
}

#[test]
fn columns_may_be_dictionaries() {
    let (gender, age, zip, disease) = figure_2();
    let verdict = |pack: fn(&ArrayRef) -> ArrayRef, k: usize| {
        let packed = |column: &LocalColumn| LocalColumn {
            value: pack(&column.value),
            ..column.clone()
        };
        let (qi, semi_sensitive) = ([pack(&gender)], [packed(&age), packed(&zip)]);
        let sensitive = [packed(&disease)];
        let release = ShownBuckets::try_new(&who(8), &qi, &semi_sensitive, &sensitive).unwrap();
        verify_local(&release, k, &[TWO; 3])
    };
    for k in [2, 3] {
        assert_eq!(verdict(packed, k), verdict(Arc::clone, k));
    }

    let lists = [Some(vec![Some(1)]), Some(vec![Some(1), Some(2)]), None];
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    let sensitive = [column(&packed(&lists), &[1, 1, 1])];
    let release = ShownBuckets::try_new(&who(3), &[], &[], &sensitive).unwrap();
    let violation = verify_local(&release, 1, &[TWO]).unwrap_err();
    let unlike = LocalViolation::NoValue {
        attribute: 0,
        records: 2,
    };
    assert_eq!(violation, unlike);
}

#[test]
fn an_insider_learns_more() {
    // docs/theory/papers.md L5: one of three for an outsider, one of two for a member; 2 of 4, then 2 of 3.
    let values = ints(&[1, 2, 3, 1, 1, 2, 3]);
    let sensitive = column(&values, &[7, 7, 7, 9, 9, 9, 9]);
    let release = ShownBuckets::try_new(&who(7), &[], &[], &[sensitive]).unwrap();
    let attained = verify_local(&release, 7, &[close("1", false)]).unwrap();
    let attained = attained.attributes[0];
    assert_eq!(attained.outsider_share, Ratio::of(1, 2));
    assert_eq!(attained.insider_share, Ratio::of(2, 3));
    assert_eq!((attained.smallest_bucket, attained.largest_bucket), (3, 4));
    assert_eq!((attained.most_of_a_value, attained.owners), (2, 7));
    let unique = column(&ints(&[1, 2, 3]), &[7, 7, 7]);
    let release = ShownBuckets::try_new(&who(3), &[], &[], &[unique]).unwrap();
    let attained = verify_local(&release, 1, &[TWO]).unwrap().attributes[0];
    assert_eq!(attained.outsider_share, Ratio::of(1, 3));
    assert_eq!(attained.insider_share, Ratio::of(1, 2), "1 / (l − 1)");
}

#[test]
fn a_value_occurs_once_in_a_bucket_of_l() {
    // Two of four are 2-diverse and not 2-unique; in a table of their own they are counted alike.
    let values = ints(&[1, 2, 1, 2, 3, 4]);
    let bucket = [7, 7, 7, 7, 9, 9];
    let twice = column(&values, &bucket);
    let apart = LocalColumn {
        value: Arc::new(Int32Array::new_null(6)),
        bucket: ids(&bucket),
        table: Some(BucketTable {
            bucket: ids(&[7, 7, 9, 9]),
            value: ints(&[1, 2, 3, 4]),
            individuals: ints(&[2, 2, 1, 1]),
        }),
    };
    for column in [twice, apart] {
        let release = ShownBuckets::try_new(&who(6), &[], &[], &[column]).unwrap();
        let said = "1 of 2 buckets of attribute 0 violate 2-diversity; the first of them has 4 values, one of them 2 times";
        let violation = verify_local(&release, 1, &[TWO]).unwrap_err();
        assert_eq!(violation.to_string(), said);
        assert!(verify_local(&release, 1, &[close("1", false)]).is_ok());
    }
}

#[test]
fn distances_are_those_of_the_definition() {
    // All: two of three values 0, 1 and 2. Buckets {0, 1, 2} and {0, 1, 2}, then {0, 0, 1} and {1, 2, 2}.
    let even = vec![vec![(0, 1), (1, 1), (2, 1)]; 2];
    assert_eq!(largest_distance(&even, 3, false), Some(0.0));
    let apart = vec![vec![(0, 2), (1, 1)], vec![(1, 1), (2, 2)]];
    assert_eq!(largest_distance(&apart, 3, false), Some(1.0 / 3.0));
    // Below the first border 2/3 instead of 1/3, below the second 1 instead of 2/3.
    assert_eq!(largest_distance(&apart, 3, true), Some(1.0 / 3.0));
    assert_eq!(largest_distance(&[], 0, true), None);
}

#[test]
fn what_is_in_a_bucket_says_nothing_about_the_group() {
    // The permuted values differ, but all four are one group; whoever shows an age is another pattern.
    let age = ints(&[1, 2, 3, 4, 1, 1]);
    let semi = column(&age, &[5, 5, 6, 6, 0, 0]);
    let release = ShownBuckets::try_new(&who(6), &[], &[semi], &[]).unwrap();
    let attained = verify_local(&release, 2, &[TWO]).unwrap();
    assert_eq!((attained.groups, attained.largest_group), (2, 4));
    assert_eq!((attained.patterns, attained.smallest_pattern), (2, 2));
    assert!(verify_local(&release, 3, &[TWO]).is_err());
}

#[test]
fn faults_of_form_are_refused() {
    let values = ints(&[1, 2, 3, 4]);
    let violation = |who: &ArrayRef, column: LocalColumn| {
        let release = ShownBuckets::try_new(who, &[], &[], &[column]).unwrap();
        verify_local(&release, 1, &[TWO]).unwrap_err()
    };
    let good = || column(&values, &[1, 1, 2, 2]);
    assert_eq!(
        violation(&ints(&[1, 2, 2, 2]), good()),
        LocalViolation::SeveralRecords { individuals: 1 }
    );
    let nameless: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
    assert_eq!(
        violation(&nameless, good()),
        LocalViolation::NoPseudonym { records: 1 }
    );
    assert_eq!(
        violation(&who(4), column(&values, &[1, 1, 2, 0])),
        LocalViolation::NoBucket {
            attribute: 0,
            records: 1
        }
    );
    let missing: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
    assert_eq!(
        violation(&who(4), column(&missing, &[1, 1, 2, 2])),
        LocalViolation::NoValue {
            attribute: 0,
            records: 1
        }
    );
    let short = column(&ints(&[1]), &[1]);
    assert!(ShownBuckets::try_new(&who(4), &[], &[], &[short]).is_err());
}

#[test]
fn a_bucket_that_two_blocks_share_is_seen() {
    // docs/theory/papers.md G7: the union of two buckets of different values is none.
    let both = column(&ints(&[1, 2, 1, 2]), &[3, 3, 3, 3]);
    let release = ShownBuckets::try_new(&who(4), &[], &[], &[both]).unwrap();
    // Still no more than half, but no longer unique.
    let violation = verify_local(&release, 1, &[TWO]).unwrap_err();
    assert!(matches!(
        violation,
        LocalViolation::Bucket {
            size: 4,
            most: 2,
            ..
        }
    ));
}

#[test]
fn intervals_and_lists_of_one_value_are_values() {
    let interval = |ends: &[(i32, i32)]| -> ArrayRef {
        let fields = vec![
            Field::new("lo", DataType::Int32, true),
            Field::new("hi", DataType::Int32, true),
        ];
        let lo = ints(&ends.iter().map(|e| e.0).collect::<Vec<_>>());
        let hi = ints(&ends.iter().map(|e| e.1).collect::<Vec<_>>());
        Arc::new(StructArray::new(fields.into(), vec![lo, hi], None))
    };
    let violation = |value: ArrayRef, bucket: &[u64]| {
        let semi = column(&value, bucket);
        let release = ShownBuckets::try_new(&who(4), &[], &[semi], &[]).unwrap();
        verify_local(&release, 2, &[TWO])
    };
    let value = interval(&[(3, 3), (9, 9), (1, 5), (1, 5)]);
    assert_eq!(
        violation(Arc::clone(&value), &[1, 1, 0, 0]).unwrap().groups,
        2
    );
    let no_value = LocalViolation::NoValue {
        attribute: 0,
        records: 2,
    };
    assert_eq!(violation(value, &[0, 0, 1, 1]), Err(no_value));

    let lists = |lists: Vec<Vec<Option<i32>>>| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
            lists.into_iter().map(Some),
        ))
    };
    let one = |v| vec![Some(v)];
    let two = || vec![Some(1), Some(2)];
    let value = lists(vec![one(7), one(8), two(), two()]);
    assert_eq!(
        violation(Arc::clone(&value), &[1, 1, 0, 0]).unwrap().groups,
        2
    );
    assert_eq!(violation(value, &[0, 0, 1, 1]), Err(no_value));
    // A list of one NULL is missing.
    let value = lists(vec![one(7), vec![None], two(), two()]);
    assert!(violation(value, &[1, 1, 0, 0]).is_err());
    // Lists that do not begin at the first value of their buffer.
    let all = lists(vec![two(), one(7), one(8), two(), two()]);
    assert_eq!(violation(all.slice(1, 4), &[1, 1, 0, 0]).unwrap().groups, 2);
}

#[test]
fn closeness_is_exact_at_the_boundary() {
    // 4 of 6 against 3 of 6 ones: one third of a bucket of three against one half is exactly 1/6.
    let values = ints(&[1, 1, 2, 1, 2, 2]);
    let holds = |bucket: &[u64], rule| {
        let release = ShownBuckets::try_new(&who(6), &[], &[], &[column(&values, bucket)]);
        verify_local(&release.unwrap(), 1, &[rule]).is_ok()
    };
    let thirds = [1, 1, 1, 2, 2, 2];
    assert!(holds(&thirds, close("0.1666666666666666667", false)));
    assert!(!holds(&thirds, close("0.1666666666666666666", false)));
    // A bucket of one value is refused however close it is.
    let release = column(&ints(&[1, 1, 1, 1, 1, 2]), &[1, 1, 2, 2, 2, 2]);
    let release = ShownBuckets::try_new(&who(6), &[], &[], &[release]).unwrap();
    assert!(verify_local(&release, 1, &[close("0.9", false)]).is_err());
}

#[test]
fn order_matters_for_ordered_closeness() {
    // Salaries 1 to 9 (Li 2007): {1, 2, 3} is 0.375 off, {1, 5, 9} 1/12.
    let values = ints(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let distance = |bucket: &[u64]| {
        let release = ShownBuckets::try_new(&who(9), &[], &[], &[column(&values, bucket)]);
        let attained = verify_local(&release.unwrap(), 1, &[close("0.9", true)]).unwrap();
        attained.attributes[0].largest_distance.unwrap()
    };
    assert!((distance(&[1, 1, 1, 2, 2, 2, 3, 3, 3]) - 0.375).abs() < 1e-12);
    assert!((distance(&[1, 2, 3, 2, 1, 3, 3, 2, 1]) - 0.125).abs() < 0.05);
    let nominal = |bucket: &[u64]| {
        let release = ShownBuckets::try_new(&who(9), &[], &[], &[column(&values, bucket)]);
        let attained = verify_local(&release.unwrap(), 1, &[close("0.9", false)]).unwrap();
        attained.attributes[0].largest_distance.unwrap()
    };
    assert!((nominal(&[1, 1, 1, 2, 2, 2, 3, 3, 3]) - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn detached_tables_are_checked_against_their_members() {
    let hidden: ArrayRef = Arc::new(Int32Array::from(vec![None::<i32>; 4]));
    let table = |individuals: &[i32]| BucketTable {
        bucket: ids(&[8, 8, 9, 9]),
        value: texts(&["a", "b", "a", "c"]),
        individuals: ints(individuals),
    };
    let verdict = |value: &ArrayRef, table| {
        let column = LocalColumn {
            value: Arc::clone(value),
            bucket: ids(&[8, 9, 9, 8]),
            table: Some(table),
        };
        let release = ShownBuckets::try_new(&who(4), &[], &[], &[column]).unwrap();
        verify_local(&release, 2, &[TWO])
    };
    let attained = verdict(&hidden, table(&[1, 1, 1, 1])).unwrap();
    assert_eq!(attained.attributes[0].owners, 4);
    let unfit = LocalViolation::Table {
        attribute: 0,
        buckets: 1,
    };
    assert_eq!(verdict(&hidden, table(&[1, 2, 1, 1])), Err(unfit));
    assert!(verdict(&hidden, table(&[2, 0, 1, 1])).is_err());
    let shown = ints(&[1, 2, 3, 4]);
    let beside = LocalViolation::NoValue {
        attribute: 0,
        records: 4,
    };
    assert_eq!(verdict(&shown, table(&[1, 1, 1, 1])), Err(beside));
}

#[test]
fn the_publisher_sees_changed_values_and_wishes() {
    let original = ints(&[10, 20, 30, 40]);
    let secret = BooleanArray::from(vec![true, true, false, true]);
    let verdict = |value: &ArrayRef, bucket: &[u64]| {
        preserved(0, &column(value, bucket), &original, Some(&secret)).unwrap()
    };
    let nullable =
        |values: &[Option<i32>]| -> ArrayRef { Arc::new(Int32Array::from(values.to_vec())) };
    let good = nullable(&[Some(20), Some(10), Some(30), None]);
    assert_eq!(verdict(&good, &[1, 1, 0, 0]), Ok(()));
    let flags = |records| {
        Err(LocalViolation::Flags {
            attribute: 0,
            records,
        })
    };
    assert_eq!(verdict(&good, &[1, 1, 1, 0]), flags(1), "not a secret");
    assert_eq!(
        verdict(&ints(&[20, 10, 30, 40]), &[1, 1, 0, 0]),
        flags(1),
        "a secret is shown"
    );
    let values = Err(LocalViolation::Values {
        attribute: 0,
        buckets: 1,
    });
    let other = nullable(&[Some(20), Some(20), Some(30), None]);
    assert_eq!(verdict(&other, &[1, 1, 0, 0]), values);
    assert!(preserved(0, &column(&original, &[1; 4]), &ints(&[1]), None).is_err());
    let text = texts(&["a", "b", "c", "d"]);
    assert!(preserved(0, &column(&original, &[1; 4]), &text, None).is_err());
}

#[test]
fn flags_are_not_published() {
    // docs/theory/papers.md L6.
    let roles = ["individual", "age", "age_bid"];
    let flags = ["age_private"];
    assert_eq!(
        flags_absent(&["individual", "age", "age_bid"], &roles, &flags),
        Ok(())
    );
    let stray = Err(LocalViolation::Columns { columns: 1 });
    assert_eq!(flags_absent(&["age", "age_private"], &roles, &flags), stray);
    assert_eq!(
        flags_absent(&["age", "gid_of_input"], &roles, &flags),
        stray
    );
}

#[test]
fn violations_hold_no_value() {
    let values = texts(&["CANARY-1", "CANARY-1", "CANARY-2"]);
    let one = column(&values, &[77, 77, 78]);
    let release = ShownBuckets::try_new(&who(3), &[Arc::clone(&values)], &[], &[one]).unwrap();
    for k in [1, 2] {
        let violation = verify_local(&release, k, &[TWO]).unwrap_err();
        for said in [violation.to_string(), format!("{violation:?}")] {
            assert!(!said.contains("CANARY") && !said.contains("77"), "{said}");
        }
    }
}

#[test]
fn nobody_violates_nothing() {
    let none = column(&ints(&[]), &[]);
    let release = ShownBuckets::try_new(
        &who(0),
        &[],
        std::slice::from_ref(&none),
        std::slice::from_ref(&none),
    )
    .unwrap();
    let attained = verify_local(&release, 5, &[TWO, TWO]).unwrap();
    assert_eq!(
        (attained.groups, attained.smallest_group, attained.patterns),
        (0, 0, 0)
    );
    assert_eq!(attained.attributes[0].smallest_bucket, 0);
}

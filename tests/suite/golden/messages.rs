//! What is said about wrong calls of what measures, makes hierarchies and samples, and publishes. Messages of the anonymizing
//! functions are in the snapshots of `errors` and `anatomy`, those about jobs with the tests of the program.

use datafusion_anonymize::publish::{Ledger, OnOverlap, Publish};

use super::{golden, masked_names, measured, part};
use crate::engine::rows;

/// A function, the arguments of a good call, and how they are spoiled: a part of them, and what comes in its place.
type Spoiled = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const CALLS: &[Spoiled] = &[
    (
        "audit",
        "eir, id => individual, qi => [sex, birth_year], sensitive => ward",
        &[
            ("eir, ", ""),
            ("eir, ", "eri, "),
            ("eir", "'nowhere/t.parquet'"),
            ("eir", "42"),
            ("eir", "eir, visits, visits, visits"),
            ("id => individual, ", ""),
            ("individual", "indivdual"),
            ("individual", "[sex, ward]"),
            ("individual", "individual, one_row_per_individual => true"),
            ("id => individual", "one_row_per_individual => 3"),
            ("qi => [sex, birth_year], ", ""),
            ("[sex, birth_year]", "[]"),
            ("[sex, birth_year]", "[sex, sex]"),
            ("[sex, birth_year]", "[sex, ward]"),
            ("[sex, birth_year]", "[sex, age]"),
            ("[sex, birth_year]", "sex, qi => birth_year"),
            ("sensitive => ward", "sensitive => wrad"),
            (", sensitive => ward", ""),
            ("ward", "ward, sensitve => 3"),
            ("ward", "ward, l => 0"),
            ("ward", "ward, l => 'many'"),
            ("ward", "ward, k => 3"),
            ("ward", "ward, l => 3, alpha => 0.5, beta => 0.5"),
            ("ward", "ward, alpha => 0.5"),
            ("ward", "ward, alpha => 0.5, beta => 2"),
            ("ward", "ward, c => 0"),
            ("ward", "ward, categories => [['surgery']]"),
            ("ward", "ward, categories => [['surgery'], ['internal']]"),
            ("ward", "ward, categories => wards"),
            ("ward", "ward, population => vists"),
            (
                "ward",
                "ward, population => people, population_id => patent_id",
            ),
            ("ward", "ward, population_id => patient_id"),
            ("ward", "ward, population => wards"),
            ("ward", "ward, original => visits, original_id => patent_id"),
            ("ward", "ward, original => visits"),
            ("ward", "ward, original_id => patient_id"),
            ("ward", "ward, same_ids => true"),
            ("ward", "ward, hierarchy => {ward: nowhere}"),
            ("ward", "ward, hierarchy => {sxe: 'mask'}"),
            ("ward", "ward, hierarchy => 'mask'"),
            ("ward", "ward, seed => 1"),
        ],
    ),
    (
        "audit_classes",
        "eir, id => individual, qi => [sex, birth_year], sensitive => ward",
        &[
            ("eir, ", ""),
            ("ward", "ward, population => visits"),
            ("ward", "ward, seed => [1]"),
            ("individual", "sex"),
            ("sensitive => ward", "sensitive => [ward, sex]"),
        ],
    ),
    (
        "vulnerable_classes",
        "eir, id => individual, qi => [sex, birth_year], sensitive => ward, l => 3",
        &[
            ("eir, ", ""),
            (", l => 3", ""),
            ("l => 3", "l => 3, k => 0"),
            ("l => 3", "beta => 0.5"),
            ("l => 3", "l => 3, categories => [['a'], ['b']]"),
        ],
    ),
    (
        "similarity_attack",
        "eir, id => individual, qi => [sex, birth_year], sensitive => ward, categories => ranks",
        &[
            (", categories => ranks", ""),
            ("ranks", "[['surgery'], ['internal']]"),
            ("ranks", "[['surgery'], []]"),
            ("ranks", "[['surgery'], ['surgery']]"),
            ("ranks", "ranks, max_category_share => 2"),
            ("sensitive => ward", "sensitive => [ward, sex]"),
            ("sensitive => ward", "sensitive => []"),
        ],
    ),
    (
        "information_loss",
        "visits, eir, id => individual, original_id => patient_id, qi => [sex, birth_year], sensitive => ward",
        &[
            ("visits, eir, ", ""),
            ("visits, eir", "visits"),
            ("visits, eir", "visits, eri"),
            ("id => individual, ", ""),
            ("patient_id", "patent_id"),
            (", original_id => patient_id", ""),
            ("[sex, birth_year]", "[]"),
            ("[sex, birth_year]", "[sex, diagnosis]"),
            ("ward", "ward, same_ids => 7"),
            ("ward", "ward, domain => {birth_year: 3}"),
            ("ward", "ward, domain => {brith_year: [1, 2]}"),
            ("ward", "ward, hierarchy => {birth_year: 'bins(0)'}"),
            ("ward", "ward, hierarchy => {birth_year: 'bins(5, 20)'}"),
            ("ward", "ward, categorical => [wrad]"),
            ("eir", "slppa"),
        ],
    ),
    (
        "audit_buckets",
        "lgb",
        &[
            ("lgb", ""),
            ("lgb", "lbg"),
            ("lgb", "eir"),
            ("lgb", "visits"),
            ("lgb", "lgb, id => 3"),
            ("lgb", "lgb, id => individul"),
            ("lgb", "lgb, k => 3"),
            ("lgb", "lgb, 3, 4"),
            ("lgb", "lgb, published => lgb, published => lgb"),
        ],
    ),
    (
        "estimate",
        "eir, 'SELECT count(*) FROM eir WHERE birth_year > 1970'",
        &[
            (
                "eir, 'SELECT count(*) FROM eir WHERE birth_year > 1970'",
                "",
            ),
            (", 'SELECT count(*) FROM eir WHERE birth_year > 1970'", ""),
            ("count(*)", "sum(birth_year)"),
            ("count(*)", "count(*), count(*)"),
            ("count(*)", "*"),
            ("SELECT", "SELEC"),
            ("birth_year >", "brith_year >"),
            ("> 1970", "> sex"),
            ("birth_year > 1970", "birth_year % 2 = 0"),
            ("FROM eir", "FROM eir JOIN visits ON true"),
            ("1970'", "1970 ORDER BY 1'"),
            ("1970'", "1970 GROUP BY sex'"),
            ("1970'", "1970', id => indvidual"),
            ("1970'", "1970', qi => [age]"),
            ("1970'", "1970', domain => {birth_year: 3}"),
            ("1970'", "1970', hierarchy => {birth_year: 'bin(5)'}"),
            ("1970'", "1970', colour => 3"),
            ("1970'", "1970', 3"),
            ("1970'", "1970', anatomized => 'yes'"),
            ("1970'", "1970', anatomized => true"),
        ],
    ),
    (
        "estimated",
        "eir",
        &[
            ("eir", ""),
            ("eir", "eri"),
            ("eir", "eir, id => 3"),
            ("eir", "eir, qi => [age]"),
            ("eir", "eir, colour => 3"),
        ],
    ),
    (
        "estimate_sum",
        "lgb, 'SELECT sum(education_years) FROM lgb WHERE birth_year > 1970'",
        &[
            (
                ", 'SELECT sum(education_years) FROM lgb WHERE birth_year > 1970'",
                "",
            ),
            ("education_years", "birth_year"),
            ("education_years", "ward"),
            ("education_years", "salary"),
            ("sum(education_years)", "avg(education_years)"),
            ("1970'", "1970 OR education_years > 3'"),
            ("1970'", "1970 GROUP BY ward'"),
            ("1970'", "1970', id => indvidual"),
            ("1970'", "1970', colour => 3"),
            ("lgb,", "eir,"),
        ],
    ),
    (
        "query_error",
        "visits, eir, qi => [sex, birth_year], sensitive => ward",
        &[
            ("visits, eir, ", ""),
            ("visits, eir", "visits, eri"),
            ("qi => [sex, birth_year], ", ""),
            ("[sex, birth_year]", "[sex, age]"),
            ("sensitive => ward", "sensitive => wrad"),
            ("ward", "ward, queries => 0"),
            ("ward", "ward, selectivity => 2"),
            ("ward", "ward, dimensions => 9"),
            ("ward", "ward, count => 'people'"),
            ("ward", "ward, count => 'individuals'"),
            ("ward", "ward, floor => -1"),
            ("ward", "ward, seed => 'x'"),
            ("ward", "ward, show_predicates => 3"),
            ("ward", "ward, sum => education_years"),
            ("ward", "ward, domain => {ward: 3}"),
            ("ward", "ward, hierarchy => {ward: nowhere}"),
            ("ward", "ward, qeries => 3"),
            ("ward", "ward, seed => 1, seed => 2"),
        ],
    ),
    (
        "query_error_summary",
        "visits, eir, qi => [sex, birth_year], sensitive => ward",
        &[("visits, eir", "visits"), ("ward", "ward, qeries => 3")],
    ),
    (
        "hierarchy",
        "visits, column => birth_year, by => 'bins(5, 20)'",
        &[
            ("visits, column => birth_year, by => 'bins(5, 20)'", ""),
            (
                "visits, column => birth_year, by => 'bins(5, 20)'",
                "nowhere",
            ),
            (
                "visits, column => birth_year, by => 'bins(5, 20)'",
                "'nowhere.csv'",
            ),
            (
                "visits, column => birth_year, by => 'bins(5, 20)'",
                "visits",
            ),
            ("column => birth_year, ", ""),
            (", by => 'bins(5, 20)'", ""),
            ("birth_year", "brith_year"),
            ("birth_year", "ward"),
            ("5, 20", ""),
            ("5, 20", "5, 7"),
            ("5, 20", "0"),
            ("5, 20", "x"),
            ("bins(5, 20)", "binz(5)"),
            ("bins(5, 20)", "dates"),
            ("bins(5, 20)", "dates(week)"),
            ("bins(5, 20)", "mask(0)"),
            ("bins(5, 20)", "even(1)"),
            ("bins(5, 20)", "co_occurrence(5)"),
            ("'bins(5, 20)'", "'co_occurrence(5)', id => patent_id"),
            ("'bins(5, 20)'", "'bins(5)', id => patient_id"),
            ("'bins(5, 20)'", "wards"),
            ("'bins(5, 20)'", "'bins(5)', colour => 3"),
            ("'bins(5, 20)'", "3"),
        ],
    ),
    (
        "sample_patients",
        "100, 1",
        &[
            ("100", "0"),
            ("100", "-1"),
            ("100", "100000001"),
            ("100", "'x'"),
            ("100", "visits"),
            (", 1", ", -1"),
            (", 1", ", 'x'"),
            (", 1", ", 1, 1"),
            ("100, 1", "seeds => 3"),
            ("100, 1", "individuals => random()"),
        ],
    ),
    (
        "publish",
        "'FOLDER/t', (SELECT * FROM anonymize_ir(visits, id => patient_id, qi => [sex], sensitive => ward, k => 3))",
        &[
            ("'FOLDER/t', ", ""),
            ("'FOLDER/t'", "3"),
            ("'FOLDER/t'", "''"),
            ("'FOLDER/t'", "'FOLDER/*'"),
            ("'FOLDER/t'", "'nowhere://t'"),
            ("k => 3))", "k => 3)), l => 3"),
            ("k => 3))", "k => 3) LIMIT 3)"),
            ("k => 3))", "k => 3) WHERE sex IS NULL)"),
            ("k => 3))", "k => 100000))"),
            ("SELECT *", "SELECT sex"),
            (
                "(SELECT * FROM anonymize_ir(visits, id => patient_id, qi => [sex], sensitive => ward, k => 3))",
                "visits",
            ),
            (
                "(SELECT * FROM anonymize_ir(visits, id => patient_id, qi => [sex], sensitive => ward, k => 3))",
                "(SELECT * FROM audit_buckets(lgb))",
            ),
            (
                "(SELECT * FROM anonymize_ir(visits, id => patient_id, qi => [sex], sensitive => ward, k => 3))",
                "(SELECT * FROM anatomize_division(people, id => patient_id, qi => [sex], sensitive => ward))",
            ),
        ],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn golden_messages() {
    let ctx = measured::session(1).await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let mut accepted = vec![];
    for (function, good, spoiled) in CALLS {
        let said = async |arguments: &str| {
            // It answers nothing but counts.
            let what = if *function == "estimated" {
                "count(*)"
            } else {
                "*"
            };
            let sql = format!("SELECT {what} FROM {function}({arguments})");
            let answer = rows(&ctx, &sql.replace("FOLDER", &place)).await;
            answer.map_err(|error| error.strip_backtrace().replace(&place, "FOLDER"))
        };
        let mut text = String::new();
        for (from, to) in *spoiled {
            assert!(good.contains(from), "{function}: {from}");
            let arguments = good.replacen(from, to, 1);
            match said(&arguments).await {
                Ok(_) => accepted.push(format!("{function}({arguments})")),
                Err(message) => text += &format!("{function}({arguments})\n    {message}\n"),
            }
        }
        if let Err(message) = said(good).await {
            panic!("{function}({good}): {message}");
        }
        golden(&format!("messages_of_{function}"), &text);
    }
    assert!(accepted.is_empty(), "not refused:\n{}", accepted.join("\n"));
}

/// Of ledgers, and of targets that cannot be.
#[tokio::test(flavor = "multi_thread")]
async fn golden_messages_of_releases() {
    let ctx = super::session(1).await;
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let ledger = || Ledger::new(place("ledger"), "a secret of 24 characters").unwrap();
    let publish = async |to: Publish, k: u64| {
        let sql = format!(
            "SELECT * FROM anonymize_ir(visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, k => {k}, \
             seed => 11)"
        );
        let release = to.run(ctx.sql(&sql).await.unwrap()).await;
        let text = match release {
            Ok(release) => release.warnings.join("\n"),
            Err(error) => error.strip_backtrace(),
        };
        masked_names(&text.replace(&folder.path().display().to_string(), "FOLDER"))
    };
    let mut text = String::new();
    for (title, error) in [
        ("a short key", Ledger::new("x", "short")),
        (
            "a URL",
            Ledger::new("s3://bucket/ledger", "a secret of 24 characters"),
        ),
    ] {
        text += &part(title, &error.unwrap_err().strip_backtrace());
    }
    let to = Publish::to(place("first")).with_ledger(Some(ledger()));
    text += &part("a first release", &publish(to.clone(), 3).await);
    text += &part("the same target", &publish(to, 3).await);
    let to = Publish::to(place("again")).with_ledger(Some(ledger()));
    text += &part("the same people", &publish(to, 3).await);
    let to = Publish::to(place("other")).with_ledger(Some(ledger()));
    text += &part("other parameters", &publish(to, 4).await);
    let warned = ledger().with_on_overlap(OnOverlap::Warn);
    let to = Publish::to(place("warned")).with_ledger(Some(warned));
    text += &part("other parameters, warned", &publish(to, 4).await);
    std::fs::create_dir_all(place("strange")).unwrap();
    std::fs::write(place("strange/notes.txt"), "x").unwrap();
    text += &part(
        "a folder with a file",
        &publish(Publish::to(place("strange")), 3).await,
    );
    let to = Publish::to(place("strange/notes.txt"));
    text += &part("a file", &publish(to, 3).await);
    let people = ctx.sql("SELECT sex FROM people").await.unwrap();
    let to = Publish::to(place("t")).with_population(people.clone(), None);
    text += &part("a population without a column", &publish(to, 3).await);
    let to = Publish::to(place("t")).with_population(people, Some("who".to_owned()));
    text += &part("a population without its id", &publish(to, 3).await);
    std::fs::write(place("ledger/half.json"), "{").unwrap();
    let to = Publish::to(place("t")).with_ledger(Some(ledger()));
    text += &part("a broken ledger", &publish(to, 3).await);
    golden("messages_of_releases", &text);
}

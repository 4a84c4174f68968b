//! Columns whose type is not the one that planning sees first, and whatever types files have.

use std::path::Path;

use datafusion::common::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::publish::Publish;
use datafusion_anonymize::{Spec, anonymize};

use crate::calls::{CALLS, call};
use crate::engine::{context, make_wards, rows};

/// Expressions for the texts of a column, most of which have another type before the engine has analyzed the query, or
/// another one than plain text.
const TEXTS: &[&str] = &[
    "COLUMN",
    "CASE WHEN COLUMN = '' THEN 'unknown' ELSE COLUMN END",
    "CASE WHEN COLUMN = '' THEN arrow_cast('unknown', 'LargeUtf8') ELSE COLUMN END",
    "coalesce(COLUMN, 'unknown')",
    "coalesce(NULL, arrow_cast(COLUMN, 'Utf8View'), 'unknown')",
    "nullif(COLUMN, '')",
    "COLUMN || ''",
    "arrow_cast(COLUMN, 'Utf8')",
    "arrow_cast(COLUMN, 'LargeUtf8')",
    "arrow_cast(COLUMN, 'Utf8View')",
    "arrow_cast(COLUMN, 'Dictionary(Int32, Utf8)')",
    "CASE WHEN COLUMN = '' THEN 'unknown' ELSE arrow_cast(COLUMN, 'Dictionary(UInt16, Utf8)') END",
];

/// Stores a table in files of every kind, and says how each is named in a query.
async fn stored(ctx: &SessionContext, table: &str, folder: &Path) -> Vec<String> {
    let mut names = vec![table.to_owned()];
    for format in ["parquet", "csv", "arrow"] {
        let file = folder.join(format!("{table}.{format}"));
        let options = match format {
            "csv" => " OPTIONS ('format.has_header' 'true')",
            _ => "",
        };
        let copy = format!(
            "COPY {table} TO '{}' STORED AS {format}{options}",
            file.display()
        );
        rows(ctx, &copy).await.unwrap();
        let name = format!("{table}_{format}");
        let external = format!(
            "CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION '{}'{options}",
            file.display()
        );
        rows(ctx, &external).await.unwrap();
        names.push(name);
    }
    let view = format!("CREATE VIEW {table}_view AS SELECT * FROM {table}_parquet");
    rows(ctx, &view).await.unwrap();
    names.push(format!("{table}_view"));
    names
}

/// Calls that cannot be satisfied where all people have one disease, however it is spelled, and their argument.
const OF_ONE_DISEASE: &[(&str, &str)] = &[
    ("anonymize_eir", "l => 2"),
    ("anonymize_eir", "alpha => 0.9, beta => 0.9"),
    ("anonymize_ir", "k => 2, l => 2"),
    ("anonymize_ir", "alpha => 0.9, beta => 0.9"),
    ("anonymize_p_sensitive", "k => 2, p => 2"),
    ("anonymize_lgb", "k => 2, l => 2"),
    ("anonymize_lgb", "k => 2, l => 2, output => 'detached'"),
];

/// A context with `people`, who all have one disease that is spelled in four ways.
async fn people() -> SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let people = "CREATE TABLE people AS SELECT 'p' || value AS pid, 20 + value % 50 AS age, \
                  CASE value % 4 WHEN 0 THEN 'HIV' WHEN 1 THEN 'hiv' WHEN 2 THEN 'Hiv ' ELSE 'ＨＩＶ' END AS disease \
                  FROM range(0, 200)";
    rows(&ctx, people).await.unwrap();
    ctx
}

#[tokio::test(flavor = "multi_thread")]
async fn normalize_holds_whatever_the_type() {
    let ctx = people().await;
    let folder = tempfile::tempdir().unwrap();
    let tables = stored(&ctx, "people", folder.path()).await;
    let target = folder.path().join("release");
    for table in &tables {
        for expression in TEXTS {
            let expression = expression.replace("COLUMN", "disease");
            let sources = [
                format!("(SELECT pid, age, {expression} AS disease FROM {table})"),
                format!(
                    "(SELECT pid, age, {expression} AS disease FROM {table} WHERE age < 40 UNION ALL \
                     SELECT pid, age, disease FROM people WHERE age >= 40)"
                ),
            ];
            for source in &sources {
                for (function, model) in OF_ONE_DISEASE {
                    let called = |normalize: &str| {
                        format!(
                            "SELECT * FROM {function}({source}, id => pid, qi => [age], sensitive => disease, {model}{normalize})"
                        )
                    };
                    let said = rows(&ctx, &called(", normalize => true")).await;
                    let said = said.expect_err(&called(", normalize => true"));
                    let said = said.strip_backtrace();
                    let refused = ["cannot be reached", "is impossible"];
                    assert!(refused.iter().any(|r| said.contains(r)), "{said}");
                }
            }
        }
        // Without it, spellings are different values, and a release of them can be made.
        let call =
            format!("anonymize_eir({table}, id => pid, qi => [age], sensitive => disease, l => 2)");
        let frame = ctx.sql(&format!("SELECT * FROM {call}")).await.unwrap();
        let to = Publish::to(target.join(table).to_str().unwrap());
        to.run(frame).await.unwrap();
    }
}

/// The other ways in: a struct of options over a view, and DataFrames.
#[tokio::test(flavor = "multi_thread")]
async fn normalize_holds_whatever_the_way_in() {
    let ctx = people().await;
    let folder = tempfile::tempdir().unwrap();
    stored(&ctx, "people", folder.path()).await;
    let query = "SELECT pid, age, CASE WHEN disease = '' THEN 'unknown' ELSE disease END AS disease FROM people_parquet";
    let frame = ctx.sql(query).await.unwrap();
    ctx.register_table("spelled", frame.clone().into_view())
        .unwrap();
    rows(&ctx, &format!("CREATE VIEW spelled_in_sql AS {query}"))
        .await
        .unwrap();
    for table in ["spelled", "spelled_in_sql"] {
        for call in [
            format!(
                "anonymize_eir({table}, id => pid, qi => [age], sensitive => disease, l => 2, normalize => true)"
            ),
            format!(
                "anonymize_eir({table}, {{id: 'pid', qi: ['age'], sensitive: 'disease', l: 2, normalize: true}})"
            ),
        ] {
            let said = rows(&ctx, &format!("SELECT * FROM {call}")).await;
            let said = said.expect_err(&call).strip_backtrace();
            assert!(said.contains("cannot be reached"), "{said}");
        }
    }
    let spec = Spec::new("anonymize_eir")
        .with_id("pid")
        .with_qi(["age"])
        .with_sensitive(["disease"])
        .with_parameter("l", 2)
        .with_normalize(true);
    let said = anonymize(frame, spec).unwrap().collect().await;
    let said = said.unwrap_err().strip_backtrace();
    assert!(said.contains("cannot be reached"), "{said}");
}

/// Every call gives the same rows over the same values, whatever type and file they come from.
#[tokio::test(flavor = "multi_thread")]
async fn rows_do_not_depend_on_types() {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    make_wards(&ctx).await;
    let visits = "CREATE TABLE visits AS SELECT * REPLACE (arrow_cast(patient_id, 'Utf8') AS patient_id) \
                  FROM sample_patients(individuals => 300, seed => 1)";
    rows(&ctx, visits).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tables = stored(&ctx, "visits", folder.path()).await;
    let schema = ctx.table("visits").await.unwrap().schema().clone();
    let texts = schema.fields().iter().filter(|f| f.data_type().is_string());
    let texts: Vec<String> = texts.map(|f| f.name().clone()).collect();
    assert!(texts.len() > 3, "{texts:?}");
    // A record without an id is known by its values in their types, and a CSV file says nothing of the types of numbers.
    let numbers = schema
        .fields()
        .iter()
        .filter(|f| !f.data_type().is_string());
    let numbers: Vec<String> = numbers
        .map(|f| format!("arrow_cast({0}, '{1}') AS {0}", f.name(), f.data_type()))
        .collect();
    for sql in CALLS {
        let expected = sorted(&ctx, &call(sql, "visits", "980")).await.unwrap();
        for table in &tables {
            for (at, expression) in TEXTS.iter().enumerate() {
                // Each expression over one table only, but every table and every expression with each call.
                if at % tables.len() != tables.iter().position(|t| t == table).unwrap() && at > 0 {
                    continue;
                }
                let replaced = texts
                    .iter()
                    .map(|column| format!("{} AS {column}", expression.replace("COLUMN", column)));
                let replaced = replaced.chain(numbers.iter().cloned());
                let replaced = replaced.collect::<Vec<_>>().join(", ");
                let source = format!("(SELECT * REPLACE ({replaced}) FROM {table})");
                let given = sorted(&ctx, &call(sql, &source, "980")).await;
                let given = given.unwrap_or_else(|e| panic!("{sql} over {source}: {e}"));
                assert_eq!(given, expected, "{sql} over {source}");
            }
        }
    }
}

async fn sorted(ctx: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>> {
    let mut found = rows(ctx, sql).await?;
    found.sort_unstable();
    Ok(found)
}

/// Numbers whose branches have different types keep their values.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_not_cut_to_the_type_of_one_branch() {
    let ctx = people().await;
    let source = "(SELECT pid, CASE WHEN age < 0 THEN 0 ELSE age + 0.5 END AS age, pid AS disease FROM people)";
    for (function, model) in [("anonymize_eir", "l => 2"), ("anonymize_ir", "k => 2")] {
        let call = format!(
            "SELECT min(age['lo']), max(age['hi']) FROM {function}({source}, id => pid, qi => [age], sensitive => disease, {model})"
        );
        let ends = rows(&ctx, &call).await.unwrap();
        assert_eq!(ends, [["20.5", "69.5"]], "{call}");
    }
    let audit = "SELECT value FROM information_loss((SELECT pid, CASE WHEN age < 0 THEN 0 ELSE age + 0.5 END AS age FROM people), \
                 (SELECT pid, named_struct('lo', 20.5, 'hi', 69.5) AS age FROM people), id => pid, qi => [age]) \
                 WHERE measure = 'nloss' AND \"column\" = 'age'";
    assert_eq!(rows(&ctx, audit).await.unwrap(), [["1.0"]]);
}

/// What stands after a call would change its result, and must not be passed over.
#[tokio::test(flavor = "multi_thread")]
async fn clauses_after_a_call_are_refused() {
    let ctx = people().await;
    let published = "anonymize_eir(people, id => pid, qi => [age], sensitive => disease, l => 2)";
    let audited = format!(
        "audit((SELECT * FROM {published}), id => individual, qi => [age], sensitive => disease)"
    );
    for call in [published, audited.as_str()] {
        for clause in ["TABLESAMPLE (10 PERCENT)", "WITH ORDINALITY"] {
            let said = rows(&ctx, &format!("SELECT * FROM {call} {clause}")).await;
            let said = said.expect_err(clause).strip_backtrace();
            let wanted = clause.split(" (").next().unwrap();
            assert!(said.contains(&format!("{wanted} cannot follow")), "{said}");
        }
    }
}

/// Secret values of quasi-identifiers are spelled, too, and what has a category is one value.
#[tokio::test(flavor = "multi_thread")]
async fn normalize_holds_beside_the_sensitive_column() {
    let ctx = people().await;
    let towns = "CREATE TABLE towns AS SELECT pid, age, disease AS town, 'd' || (age % 7) AS disease, true AS secret FROM people";
    rows(&ctx, towns).await.unwrap();
    for output in ["rows", "detached"] {
        let call = |normalize: bool| {
            format!(
                "SELECT * FROM anonymize_lgb(towns, id => pid, qi => [age, town], sensitive => disease, \
                 semi_sensitive => {{town: secret}}, k => 2, l => 2, output => '{output}', normalize => {normalize})"
            )
        };
        rows(&ctx, &call(false)).await.unwrap();
        let said = rows(&ctx, &call(true)).await.unwrap_err().strip_backtrace();
        assert!(
            said.contains("column 'town': l = 2 is impossible"),
            "{said}"
        );
    }
    let categories = |lists: &str| {
        format!(
            "SELECT * FROM anonymize_p_sensitive(people, id => pid, qi => [age], sensitive => disease, k => 2, p => 2, \
             categories => {lists}, normalize => true)"
        )
    };
    let lists = "[['HIV', 'hiv'], ['Hiv ', 'ＨＩＶ']]";
    let said = rows(&ctx, &categories(lists))
        .await
        .unwrap_err()
        .strip_backtrace();
    assert!(
        said.contains("spellings of one value in two categories"),
        "{said}"
    );
    let said = rows(
        &ctx,
        &categories("[['HIV', 'hiv', 'Hiv ', 'ＨＩＶ'], ['Flu']]"),
    )
    .await;
    assert!(
        said.unwrap_err()
            .strip_backtrace()
            .contains("cannot be reached")
    );
}

/// A letter and its capital, also where they have other numbers of characters, and whatever the form of either.
#[tokio::test(flavor = "multi_thread")]
async fn capitals_are_spellings() {
    let ctx = people().await;
    for [one, other] in [
        ["weiß", "WEISS"],
        ["weiß", "WEIẞ"],
        ["weiss", "WEIẞ"],
        ["οδος", "ΟΔΟΣ"],
        ["e\u{301}", "É"],
        ["ΐ", "Ϊ\u{301}"],
        ["ﬁx", "FIX"],
        ["a b", " A\u{3000}\tB"],
    ] {
        let call = |normalize: bool| {
            format!(
                "SELECT * FROM anonymize_eir((SELECT pid, age, CASE WHEN disease = 'HIV' THEN '{one}' ELSE '{other}' END AS disease \
                 FROM people), id => pid, qi => [age], sensitive => disease, l => 2, normalize => {normalize})"
            )
        };
        rows(&ctx, &call(false)).await.unwrap();
        let said = rows(&ctx, &call(true))
            .await
            .expect_err(one)
            .strip_backtrace();
        assert!(said.contains("cannot be reached"), "{one}: {said}");
    }
}

/// Whether bytes are spellings of a text is not known.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_not_normalized() {
    let ctx = people().await;
    for bytes in [
        "Binary",
        "LargeBinary",
        "BinaryView",
        "Dictionary(Int8, Binary)",
    ] {
        let source = format!(
            "(SELECT pid, age, arrow_cast(arrow_cast(disease, 'Binary'), '{bytes}') AS disease FROM people)"
        );
        for (function, model) in OF_ONE_DISEASE {
            let call = format!(
                "SELECT * FROM {function}({source}, id => pid, qi => [age], sensitive => disease, {model}, normalize => true)"
            );
            let said = rows(&ctx, &call).await.expect_err(&call).strip_backtrace();
            assert!(
                said.contains("normalize cannot be used for column 'disease'"),
                "{said}"
            );
        }
    }
}

/// What is published is the value as it was, also where its spellings count as one.
#[tokio::test(flavor = "multi_thread")]
async fn buckets_hold_values_as_they_were() {
    let ctx = people().await;
    let source = "(SELECT pid, age, CASE WHEN age % 5 < 3 THEN disease ELSE 'Flu' END AS disease FROM people)";
    let expected =
        format!("SELECT disease, count(*) FROM {source} GROUP BY disease ORDER BY disease");
    let expected = rows(&ctx, &expected).await.unwrap();
    for output in ["rows", "detached"] {
        let call = format!(
            "anonymize_lgb({source}, id => pid, qi => [age], sensitive => disease, k => 2, t => {{disease: 0.02}}, \
             output => '{output}', normalize => true)"
        );
        let times = if output == "rows" { "1" } else { "individuals" };
        let found = format!(
            "SELECT disease_bucketized, sum({times}) FROM {call} WHERE disease_bucketized IS NOT NULL GROUP BY 1 ORDER BY 1"
        );
        assert_eq!(rows(&ctx, &found).await.unwrap(), expected, "{output}");
        let folder = tempfile::tempdir().unwrap();
        let frame = ctx.sql(&format!("SELECT * FROM {call}")).await.unwrap();
        let to = Publish::to(folder.path().join("t").to_str().unwrap());
        to.run(frame).await.unwrap();
    }
}

/// Numbers, times and spans at their ends, as numbers and as names, typed and as text: formed, written, read again and compared.
#[tokio::test(flavor = "multi_thread")]
async fn values_at_their_ends_are_published() {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let ends = [
        (
            "real",
            "CASE value % 6 WHEN 0 THEN 'inf' WHEN 1 THEN '-inf' WHEN 2 THEN '-0' ELSE '1e308' END",
            "Float64",
        ),
        (
            "nan",
            "CASE value % 6 WHEN 0 THEN 'inf' WHEN 1 THEN '-inf' WHEN 2 THEN 'NaN' ELSE '0' END",
            "Float64",
        ),
        (
            "small",
            "CASE value % 3 WHEN 0 THEN 'inf' WHEN 1 THEN '-inf' ELSE '3e38' END",
            "Float32",
        ),
        (
            "whole",
            "CASE value % 2 WHEN 0 THEN '-9223372036854775808' ELSE '9223372036854775807' END",
            "Int64",
        ),
        (
            "unsigned",
            "CASE value % 2 WHEN 0 THEN '0' ELSE '18446744073709551615' END",
            "UInt64",
        ),
        (
            "exact",
            "CASE value % 2 WHEN 0 THEN '-99999999999999999999999999999999999.999' ELSE '0.001' END",
            "Decimal128(38, 3)",
        ),
        (
            "day",
            "CASE value % 3 WHEN 0 THEN '0001-01-01' WHEN 1 THEN '9999-12-31' ELSE '1970-01-01' END",
            "Date32",
        ),
        (
            "moment",
            "CASE value % 2 WHEN 0 THEN '1677-09-22T00:00:00' ELSE '2262-04-11T00:00:00' END",
            "Timestamp(Nanosecond, None)",
        ),
        (
            "second",
            "CASE value % 2 WHEN 0 THEN '0001-01-01T00:00:00' ELSE '9999-12-31T23:59:59' END",
            "Timestamp(Second, None)",
        ),
        (
            "span",
            "CASE value % 2 WHEN 0 THEN '0' ELSE '9000000000000000000' END",
            "Duration(Second)",
        ),
        (
            "clock",
            "CASE value % 2 WHEN 0 THEN '00:00:00' ELSE '23:59:59.999999999' END",
            "Time64(Nanosecond)",
        ),
    ];
    let mut failed = vec![];
    for (name, expression, data_type) in ends {
        let column = match data_type {
            "Duration(Second)" => {
                format!("arrow_cast(arrow_cast({expression}, 'Int64'), '{data_type}')")
            }
            _ => format!("arrow_cast({expression}, '{data_type}')"),
        };
        let table = format!(
            "CREATE TABLE {name} AS SELECT value AS id, {column} AS x, value % 5 AS y, 'd' || (value % 7) AS disease FROM range(0, 60)"
        );
        rows(&ctx, &table).await.unwrap();
        for categorical in ["", ", categorical => [x]"] {
            // Among names, NaN is one, and cannot be compared with the input yet.
            if name == "nan" && !categorical.is_empty() {
                continue;
            }
            for notation in ["typed", "text"] {
                let call = format!(
                    "anonymize_eir({name}, id => id, qi => [x, y], sensitive => disease, l => 2{categorical}, \
                     notation => '{notation}', seed => 1)"
                );
                let folder = tempfile::tempdir().unwrap();
                let frame = ctx.sql(&format!("SELECT * FROM {call}")).await;
                if name == "span" && notation == "text" {
                    let said = frame.unwrap_err().strip_backtrace();
                    assert!(
                        said.contains("cannot be 'text' for 'x', a span of time"),
                        "{said}"
                    );
                    continue;
                }
                let to = Publish::to(folder.path().join("t").to_str().unwrap());
                if let Err(error) = to.run(frame.unwrap()).await {
                    failed.push(format!("{call}: {}", error.strip_backtrace()));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

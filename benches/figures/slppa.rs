//! Figures 2–10 of Yao et al. 2021: times, sub-tables, groups and query errors of SLPPA, ASN and Slicing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{cast, concat_batches, take};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use datafusion_anonymize::internals::algorithm::Cancel;
use datafusion_anonymize::internals::slppa::{
    Associations, CodedIndividuals, DivideError, Division, DivisionStatistics, GroupBounds, Groups,
    MISSING, Method, Prior, RelativeErrors, Row, position_of_bytes, position_of_i64, publish,
};
use datafusion_anonymize::register_all;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::page::Page;
use crate::plot::Plot;

/// A data set of the paper: quasi-identifiers as in its Tables 5 and 6, those that are added in Figure 7, sizes.
struct Source {
    name: &'static str,
    file: &'static str,
    qi: &'static [&'static str],
    more: &'static [&'static str],
    /// A column that allows β = 0.05, which the paper's own does not.
    sensitive: &'static str,
    sizes: &'static [usize],
}

const SOURCES: [Source; 2] = [
    Source {
        name: "Adult",
        file: "adult.parquet",
        qi: &[
            "age",
            "workclass",
            "education",
            "marital_status",
            "occupation",
            "relationship",
            "race",
            "sex",
            "hours_per_week",
        ],
        more: &["education_num", "capital_gain", "capital_loss", "income"],
        sensitive: "fnlwgt",
        sizes: &[5_000, 10_000, 15_000, 20_000, 25_000],
    },
    Source {
        name: "Census-Income",
        file: "census_income_kdd.parquet",
        qi: &[
            "age",
            "class_of_worker",
            "detailed_industry_recode",
            "education",
            "wage_per_hour",
            "marital_stat",
            "major_industry_code",
            "race",
            "sex",
            "full_or_part_time_employment_stat",
        ],
        more: &["capital_gains", "capital_losses", "tax_filer_stat"],
        sensitive: "instance_weight",
        sizes: &[50_000, 100_000, 150_000, 190_000],
    },
];

const METHODS: [(&str, Method); 4] = [
    ("SLPPA", Method::Slppa),
    ("SLPPA, similar", Method::SlppaSimilar),
    ("ASN", Method::Asn),
    ("Slicing", Method::Slicing),
];

/// Queries per mean error.
const QUERIES: usize = 1_000;

/// The parameters of Table 7, some of them changed.
#[derive(Clone, Copy)]
struct Setting {
    alpha: &'static str,
    beta: &'static str,
    gamma: &'static str,
    delta: &'static str,
    tables: usize,
}

const TABLE_7: Setting = Setting {
    alpha: "0.5",
    beta: "0.05",
    gamma: "0.005",
    delta: "0.05",
    tables: 3,
};

impl Setting {
    fn requirements(self, method: Method) -> GroupBounds {
        let bound = |text: &str| text.parse().expect("a decimal");
        let slppa = matches!(method, Method::Slppa | Method::SlppaSimilar);
        GroupBounds {
            alpha: slppa.then(|| bound(self.alpha)),
            beta: bound(self.beta),
            gamma: (method != Method::Slicing).then(|| bound(self.gamma)),
            delta: slppa.then(|| bound(self.delta)),
        }
    }
}

/// A table, coded.
struct Table {
    individuals: CodedIndividuals,
    positions: Vec<Vec<u64>>,
}

impl Table {
    fn associations(&self) -> Associations {
        let columns: Vec<&[u64]> = self.positions.iter().map(Vec::as_slice).collect();
        let mut statistics = DivisionStatistics::new(columns.len());
        statistics.update(&columns);
        statistics.finish()
    }
}

/// What one method does to a table.
struct Done {
    division: Division,
    groups: Groups,
    table_seconds: f64,
    group_seconds: f64,
}

/// Points at which α had to be left out, and why.
type LeftOut = Vec<String>;

/// Runs a method at the point of a figure that `what` names.
fn run(
    table: &Table,
    method: Method,
    setting: Setting,
    what: &str,
    left_out: &mut LeftOut,
) -> Result<Done> {
    let begin = Instant::now();
    let associations = table.associations();
    let division = method
        .division(&associations, setting.tables)
        .map_err(internal)?;
    let table_seconds = begin.elapsed().as_secs_f64();
    let prior = Prior::of(&table.individuals).map_err(internal)?;
    let mut requirements = setting.requirements(method);
    let cancel = Cancel::default();
    let individuals = &table.individuals;
    let mut begin = Instant::now();
    let mut groups = method.groups(individuals, &division, &prior, &requirements, &cancel);
    if let Err(DivideError::Infeasible(infeasible)) = &groups {
        let name = METHODS.iter().find(|m| m.1 == method).map_or("", |m| m.0);
        left_out.push(format!("{what}, {name}: {infeasible}"));
        requirements.alpha = None;
        begin = Instant::now();
        groups = method.groups(individuals, &division, &prior, &requirements, &cancel);
    }
    Ok(Done {
        division,
        groups: groups.map_err(internal)?,
        table_seconds,
        group_seconds: begin.elapsed().as_secs_f64(),
    })
}

fn internal(e: impl std::fmt::Display) -> DataFusionError {
    DataFusionError::Internal(e.to_string())
}

/// The mean relative error (Eq. 13) of random queries over that many quasi-identifiers and the sensitive column: each
/// asks for a random half of a column's values, by rank. Queries that nobody satisfies do not count.
fn error(table: &Table, done: &Done, dimensions: (usize, usize)) -> Result<f64> {
    let gids: Vec<u64> = (0..done.groups.len() as u64).collect();
    let published =
        publish(&table.individuals, &done.division, &done.groups, &gids).map_err(internal)?;
    let columns = table.individuals.columns();
    let sensitive = table.individuals.sensitive();
    let spans: Vec<u32> = columns
        .iter()
        .map(|c| c.iter().max().map_or(1, |m| m + 1))
        .collect();
    let values = sensitive.iter().max().map_or(1, |m| m + 1);
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let mut errors = RelativeErrors::default();
    for _ in 0..QUERIES {
        let asked = random.random_range(dimensions.0..=dimensions.1.min(columns.len()));
        let mut chosen: Vec<usize> = (0..columns.len()).collect();
        chosen.shuffle(&mut random);
        chosen.truncate(asked);
        let mut half = |span: u32| {
            let width = span.div_ceil(2);
            let begin = random.random_range(0..=span - width);
            begin..begin + width
        };
        let mut ranges: Vec<Option<std::ops::Range<u32>>> = vec![None; columns.len()];
        for column in &chosen {
            ranges[*column] = Some(half(spans[*column]));
        }
        let wanted = half(values);
        let fits = |column: usize, individual: u32| {
            let range = ranges[column].as_ref();
            range.is_none_or(|range| range.contains(&columns[column][individual as usize]))
        };
        let has = |individual: u32| wanted.contains(&sensitive[individual as usize]);
        let truth = (0..sensitive.len() as u32)
            .filter(|i| has(*i) && chosen.iter().all(|c| fits(*c, *i)))
            .count();
        let matches = |sub_table: usize, row: &Row| {
            let own = &done.division.tables()[sub_table];
            own.iter().all(|column| fits(*column, row.individual))
        };
        let estimate = published.estimate(matches, |row| has(row.individual));
        errors.add(truth as u64, estimate.value());
    }
    let mean = errors
        .mean()
        .ok_or_else(|| internal("no query has an answer"))?;
    println!(
        "{dimensions:?} {} sub-tables, {} groups: RECQ {mean:.4}",
        done.division.tables().len(),
        done.groups.len()
    );
    Ok(mean)
}

async fn load(folder: &Path, source: &Source, more: bool) -> Result<Vec<ArrayRef>> {
    let ctx = SessionContext::new();
    register_all(&ctx)?;
    let mut columns = source.qi.to_vec();
    if more {
        columns.extend(source.more);
    }
    columns.push(source.sensitive);
    let file = folder.join(source.file);
    let sql = format!(
        "SELECT {} FROM anonymize_input('{}')",
        columns.join(", "),
        file.display()
    );
    let frame = ctx.sql(&sql).await?;
    let schema = std::sync::Arc::new(frame.schema().as_arrow().clone());
    let batch = concat_batches(&schema, &frame.collect().await?)?;
    Ok(batch.columns().to_vec())
}

/// A random part of the table.
fn part(columns: &[ArrayRef], individuals: usize) -> Result<Table> {
    let all = columns[0].len() as u32;
    let mut chosen: Vec<u32> = (0..all).collect();
    chosen.shuffle(&mut ChaCha8Rng::seed_from_u64(3));
    chosen.truncate(individuals);
    let chosen = datafusion::arrow::array::UInt32Array::from(chosen);
    let mut codes = vec![];
    let mut positions = vec![];
    for column in columns {
        let column = take(column, &chosen, None)?;
        let own: Vec<u64> = match column.data_type() {
            DataType::Int64 => {
                let numbers = column.as_primitive::<Int64Type>().iter();
                numbers
                    .map(|n| n.map_or(MISSING, position_of_i64))
                    .collect()
            }
            _ => {
                let texts = cast(&column, &DataType::Utf8)?;
                let texts = texts.as_string::<i32>().iter();
                texts
                    .map(|t| t.map_or(MISSING, |t| position_of_bytes(t.as_bytes())))
                    .collect()
            }
        };
        let mut ranks: BTreeMap<u64, u32> = own.iter().map(|p| (*p, 0)).collect();
        for (rank, value) in (0..).zip(ranks.values_mut()) {
            *value = rank;
        }
        codes.push(own.iter().map(|p| ranks[p]).collect::<Vec<u32>>());
        positions.push(own);
    }
    let sensitive = codes.pop().unwrap_or_default();
    positions.pop();
    Ok(Table {
        individuals: CodedIndividuals::try_new(codes, sensitive).map_err(internal)?,
        positions,
    })
}

/// One plot being measured: a series per method.
struct Curves {
    series: Vec<(String, Vec<(f64, f64)>)>,
}

impl Curves {
    fn new(names: &[&str]) -> Self {
        let series = names.iter().map(|name| ((*name).to_owned(), vec![]));
        Self {
            series: series.collect(),
        }
    }

    fn add(&mut self, curve: usize, x: f64, y: f64) {
        self.series[curve].1.push((x, y));
    }

    fn plot(self, title: String, x: &str, y: &str) -> Plot {
        Plot {
            title,
            x: x.to_owned(),
            y: y.to_owned(),
            series: self.series,
        }
    }
}

/// Measures and writes all figures.
pub fn figures(folder: &Path) -> Result<()> {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let data = match std::env::var_os("ANONYMIZE_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => data,
    };
    if !SOURCES.iter().all(|source| data.join(source.file).exists()) {
        println!(
            "no Adult and Census-Income in {}: no figures of SLPPA",
            data.display()
        );
        return Ok(());
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let mut page = Page::new(
        folder,
        "slppa",
        "Figures 2–10 of Yao et al. 2021, measured",
        "Parameters of the paper's Table 7 where nothing else is said: α = 0.5, β = 0.05, γ = 0.005, δ = 0.05, three sub-tables; \
         ASN β = 0.05 and γ = 0.005, Slicing l = 20; where sub-tables do not allow α it is left out, and the point is named. The paper's sensitive columns, Country and Gains, do not allow β = 0.05 \
         (one value has 90 % and 96 %), so those here are `fnlwgt` of Adult and `instance_weight` of Census-Income: trends can be \
         compared, not numbers. One thread, the whole table as one block. RECQ is the mean relative error (Eq. 13) of 1,000 \
         random queries by Eq. 11, each for a random half of the values of the sensitive column and of some quasi-identifiers.",
    );
    for source in &SOURCES {
        let columns = runtime.block_on(load(&data, source, false))?;
        let more = runtime.block_on(load(&data, source, true))?;
        of_source(&mut page, source, &columns, &more)?;
        page.say(&runtime.block_on(in_sql(&data, source))?);
    }
    page.write()
}

fn of_source(
    page: &mut Page,
    source: &Source,
    columns: &[ArrayRef],
    more: &[ArrayRef],
) -> Result<()> {
    let names: Vec<&str> = METHODS.iter().map(|m| m.0).collect();
    let file = |figure: &str| {
        let name = source.name.to_lowercase().replace('-', "_");
        format!("{figure}_{name}")
    };
    let of = source.name;
    let mut left_out = vec![];
    let mut ratios = Ratios::default();
    let (mut divide, mut group, mut count) = (
        Curves::new(&names),
        Curves::new(&names),
        Curves::new(&names),
    );
    for size in source.sizes {
        let table = part(columns, *size)?;
        for (curve, (name, method)) in METHODS.iter().enumerate() {
            let what = format!("Figures 2, 4 and 5, {size} individuals");
            let done = run(&table, *method, TABLE_7, &what, &mut left_out)?;
            ratios.seconds[curve].push(done.group_seconds);
            divide.add(curve, *size as f64, done.table_seconds);
            group.add(curve, *size as f64, done.group_seconds);
            count.add(curve, *size as f64, done.groups.len() as f64);
            println!("{of} {size} {name} {:.3} s", done.group_seconds);
        }
    }
    page.add(
        &file("2_size"),
        &divide.plot(
            format!("Figure 2: seconds of table division, {of}"),
            "individuals",
            "seconds",
        ),
    )?;
    let largest = part(columns, source.sizes.last().copied().unwrap_or(1))?;
    let mut by_tables = Curves::new(&names[..1]);
    by_tables.series.push(("Slicing".to_owned(), vec![]));
    let mut recq = Curves::new(&names);
    for tables in 2..=6 {
        let setting = Setting { tables, ..TABLE_7 };
        for (curve, (_, method)) in METHODS.iter().enumerate() {
            let what = format!("Figures 2 and 9, {tables} sub-tables");
            let done = run(&largest, *method, setting, &what, &mut left_out)?;
            if let Some(curve) = [Some(0), None, None, Some(1)][curve] {
                by_tables.add(curve, tables as f64, done.table_seconds);
            }
            recq.add(curve, tables as f64, error(&largest, &done, (1, 3))?);
        }
    }
    page.add(
        &file("2_tables"),
        &by_tables.plot(
            format!("Figure 2: seconds of table division by sub-tables, {of}"),
            "sub-tables",
            "seconds",
        ),
    )?;
    let mut sizes = format!(
        "## Figure 3: columns per sub-table, {of}\n\n| | SLPPA | Slicing |\n|---|---|---|\n"
    );
    let wide = part(more, source.sizes.last().copied().unwrap_or(1))?;
    for (table, what) in [(&largest, "as in the paper"), (&wide, "with more columns")] {
        for tables in [3, 4] {
            let associations = table.associations();
            let shape = |method: Method| -> Result<String> {
                let division = method.division(&associations, tables).map_err(internal)?;
                let sizes: Vec<String> = division
                    .tables()
                    .iter()
                    .map(|t| t.len().to_string())
                    .collect();
                Ok(sizes.join(", "))
            };
            sizes += &format!(
                "| {what}, {tables} sub-tables | {} | {} |\n",
                shape(Method::Slppa)?,
                shape(Method::Slicing)?
            );
        }
    }
    page.say(&sizes);
    page.add(
        &file("4"),
        &group.plot(
            format!("Figure 4: seconds of group division, {of}"),
            "individuals",
            "seconds",
        ),
    )?;
    page.add(
        &file("5"),
        &count.plot(format!("Figure 5: groups, {of}"), "individuals", "groups"),
    )?;

    for (figure, table) in [("6", &largest), ("7", &wide)] {
        let mut curves = Curves::new(&names);
        for (curve, (_, method)) in METHODS.iter().enumerate() {
            let what = format!("Figure {figure}");
            let done = run(table, *method, TABLE_7, &what, &mut left_out)?;
            for dimensions in [(1, 3), (4, 6), (7, 10)] {
                let recq = error(table, &done, dimensions)?;
                curves.add(curve, dimensions.0 as f64, recq);
                ratios.errors[curve].push(recq);
            }
        }
        let columns = if figure == "7" {
            " with more columns"
        } else {
            ""
        };
        let title = format!(
            "Figure {figure}: RECQ by quasi-identifiers of a query (1–3, 4–6, 7–10){columns}, {of}"
        );
        page.add(
            &file(figure),
            &curves.plot(title, "quasi-identifiers, from", "RECQ"),
        )?;
        println!("{of} figure {figure}");
    }
    let settings = [
        ("Table 7", TABLE_7),
        (
            "β = 0.1",
            Setting {
                beta: "0.1",
                ..TABLE_7
            },
        ),
        (
            "γ = 0.01",
            Setting {
                gamma: "0.01",
                ..TABLE_7
            },
        ),
        (
            "δ = 0.02",
            Setting {
                delta: "0.02",
                ..TABLE_7
            },
        ),
    ];
    let mut text = format!(
        "## Figure 8: RECQ of queries of 1 to 3 quasi-identifiers with other parameters, {of}\n\n| | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for (name, setting) in settings {
        let mut cells = vec![];
        for (_, method) in METHODS {
            let what = format!("Figure 8, {name}");
            let done = run(&largest, method, setting, &what, &mut left_out)?;
            cells.push(format!("{:.4}", error(&largest, &done, (1, 3))?));
        }
        text += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    page.say(&text);
    page.add(
        &file("9"),
        &recq.plot(
            format!("Figure 9: RECQ by sub-tables, {of}"),
            "sub-tables",
            "RECQ",
        ),
    )?;
    let mut curves = Curves::new(&names);
    for (size, beta) in [
        (5.0, "0.2"),
        (10.0, "0.1"),
        (20.0, "0.05"),
        (50.0, "0.02"),
        (100.0, "0.01"),
    ] {
        for (curve, (_, method)) in METHODS.iter().enumerate() {
            let setting = Setting {
                beta,
                gamma: "1",
                delta: "1",
                ..TABLE_7
            };
            let what = format!("Figure 10, 1/β = {size}");
            let done = run(&largest, *method, setting, &what, &mut left_out)?;
            curves.add(curve, size, error(&largest, &done, (1, 3))?);
        }
    }
    page.add(
        &file("10"),
        &curves.plot(
            format!("Figure 10: RECQ by the smallest size of groups, 1/β, {of}"),
            "individuals",
            "RECQ",
        ),
    )?;
    page.say(&ratios.text(of));
    if left_out.is_empty() {
        page.say(&format!("α held at every point of {of}."));
    } else {
        page.say(&format!(
            "## Points without α, {of}\n\n- {}",
            left_out.join("\n- ")
        ));
    }
    Ok(())
}

/// What is compared with the paper's claims, by method.
#[derive(Default)]
struct Ratios {
    /// Seconds of group division by size.
    seconds: [Vec<f64>; METHODS.len()],
    /// RECQ of Figures 6 and 7.
    errors: [Vec<f64>; METHODS.len()],
}

impl Ratios {
    fn text(&self, of: &str) -> String {
        let range = |over: &[f64], under: &[f64]| {
            let ratios = over.iter().zip(under).map(|(over, under)| over / under);
            let (lo, hi) = ratios.fold((f64::MAX, f64::MIN), |(lo, hi), r| (lo.min(r), hi.max(r)));
            format!("{lo:.2} to {hi:.2}")
        };
        let [slppa, similar, asn, slicing] = &self.errors;
        let [fast, like, _, slow] = &self.seconds;
        format!(
            "## Ratios, {of}\n\n\
             | | here | the paper |\n|---|---|---|\n\
             | RECQ (Figures 6 and 7), SLPPA : Slicing | {} | near 1 |\n\
             | RECQ, SLPPA similar : Slicing | {} | – |\n\
             | RECQ, SLPPA : ASN | {} | below 1 |\n\
             | RECQ, SLPPA similar : ASN | {} | – |\n\
             | seconds of group division, Slicing : SLPPA | {} | above 100 |\n\
             | seconds of group division, Slicing : SLPPA similar | {} | – |",
            range(slppa, slicing),
            range(similar, slicing),
            range(slppa, asn),
            range(similar, asn),
            range(slow, fast),
            range(slow, like),
        )
    }
}

/// RECQ of whole releases by `query_error`. The sensitive column has too many values for random sets, so it is asked for by
/// range as the quasi-identifiers are.
async fn in_sql(data: &Path, source: &Source) -> Result<String> {
    let (qi, sensitive) = (source.qi.join(", "), source.sensitive);
    let input = format!("'{}'", data.join(source.file).display());
    let Setting {
        alpha,
        beta,
        gamma,
        delta,
        tables,
    } = TABLE_7;
    let all = format!("alpha => {alpha}, beta => {beta}, gamma => {gamma}, delta => {delta}");
    let calls = [
        format!("{all}, tables => {tables}"),
        format!("{all}, tables => {tables}, method => 'slppa_similar'"),
        format!("beta => {beta}, gamma => {gamma}, method => 'asn'"),
        format!("beta => {beta}, tables => {tables}, method => 'slicing'"),
    ];
    let mut text = format!(
        "## RECQ in SQL, {}: `query_error_summary`, {QUERIES} queries of 3 columns\n\n| | mean | median |\n|---|---|---|",
        source.name
    );
    for ((name, _), call) in METHODS.iter().zip(calls) {
        let ctx = SessionContext::new();
        register_all(&ctx)?;
        let release = format!(
            "CREATE TABLE published AS SELECT * FROM anatomize_slppa({input}, one_row_per_individual => true, \
             qi => [{qi}], sensitive => {sensitive}, {call}, seed => 1)"
        );
        ctx.sql(&release).await?.collect().await?;
        let sql = format!(
            "SELECT mean, median FROM query_error_summary({input}, published, qi => [{qi}, {sensitive}], \
             queries => {QUERIES}, dimensions => 3, selectivity => 0.1)"
        );
        let batches = ctx.sql(&sql).await?.collect().await?;
        let number = |at: usize| batches[0].column(at).as_primitive::<Float64Type>().value(0);
        text += &format!("\n| {name} | {:.4} | {:.4} |", number(0), number(1));
    }
    Ok(text)
}

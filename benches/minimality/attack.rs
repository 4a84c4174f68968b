//! A reader who knows all quasi-identifiers, the program, its parameters and its seed (Wong et al., VLDB 2007), played
//! through the real function.
//!
//! ```text
//!   every table of the same people ──► the function ──► tables by the release they give
//!   of one release
//!     all tables that it could be true of     what a reader believes who does not know how people were divided
//!     all tables that give it                 what one believes who does
//! ```
//!
//! Both know all quasi-identifiers and think all tables equally likely beforehand. To the first one a table counts as often as
//! there are ways to divide people among the published classes that make the release true. So this reader believes that a
//! person has a value as much as is its share in the person's class, unless the person may be in several or in none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, exec_err, not_impl_err};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{FunctionEntry, register_all};

/// Quasi-identifiers of the people, as many as take part.
const AGES: [i32; 8] = [21, 24, 32, 33, 41, 47, 52, 60];
const SEXES: [&str; 8] = ["F", "F", "M", "F", "M", "M", "F", "M"];
/// Sensitive values, and the labels above two of them each.
const DISEASES: [&str; 4] = ["Cancer", "HIV", "Flu", "Gout"];
const KINDS: [&str; 2] = ["Grave", "Mild"];

/// More are refused, because a release is compared with all of them.
const MOST_TABLES: usize = 100_000;

/// The tables that are tried, and how they are published.
#[derive(Debug, Clone)]
pub struct Setting {
    pub people: usize,
    /// Quasi-identifiers: age, then sex.
    pub columns: usize,
    /// Sensitive values.
    pub values: usize,
    /// Most sensitive values of one person.
    pub most: usize,
    pub l: usize,
    /// Whether quasi-identifiers are generalized to labels that are decided beforehand.
    pub hierarchy: bool,
    pub seed: u64,
    /// From the first seed on; the reader does not know which of them was drawn.
    pub seeds: u64,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            people: 6,
            columns: 2,
            values: 2,
            most: 1,
            l: 2,
            hierarchy: false,
            seed: 1,
            seeds: 1,
        }
    }
}

/// What the reader attains. Runs are pairs of a table and a seed.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Runs with a release; in the others the function refuses the table.
    pub runs: usize,
    pub refused: usize,
    /// Different releases.
    pub releases: usize,
    /// Runs in which some value of some person is more likely to the reader than to one who does not know the program.
    pub above: usize,
    /// Runs in which the reader is certain of one, and the other is not.
    pub certain: usize,
    /// Person and value of these. The reader is right: every table that gives the release has them.
    pub disclosed: usize,
    /// How likely these were to the other reader: the smallest and the largest share.
    pub shares: Option<(f64, f64)>,
    /// How many times as likely a value became, at most.
    pub lift: f64,
}

/// The sensitive values of each person, a bit per value.
type Table = Vec<u32>;

/// A class, bucket or group as it is published, in an order that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    /// The quasi-identifiers of each member.
    shown: Vec<Vec<String>>,
    /// The sensitive values of each member, in an order of their own.
    fingerprints: Vec<BTreeSet<String>>,
}

type Release = Vec<Group>;

/// What a group may be true of.
struct Fitting {
    /// The sets of people who may be its members, a bit per person.
    memberships: Vec<u32>,
    /// For each published set of values which values each of its labels may be.
    fingerprints: Vec<Vec<u32>>,
}

impl Setting {
    /// Lets one algorithm, or the only one of the function, publish every table, and attacks every release.
    pub async fn attack(
        &self,
        function: &FunctionEntry,
        algorithm: Option<&str>,
    ) -> Result<Measured> {
        let config = SessionConfig::new().with_target_partitions(1);
        let ctx = SessionContext::new_with_config(config);
        register_all(&ctx)?;
        let labels = (0..self.values).map(|v| format!("('{}', '{}', '*')", DISEASES[v], kind(v)));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let labels = format!("CREATE TABLE labels AS VALUES {labels}");
        ctx.sql(&labels).await?.collect().await?;
        let tables = self.tables()?;
        let mut measured = Measured::default();
        let mut releases: BTreeMap<Release, Vec<&Table>> = BTreeMap::new();
        for table in &tables {
            ctx.deregister_table("people")?;
            ctx.register_batch("people", self.records(table)?)?;
            for seed in self.seed..self.seed + self.seeds {
                let sql = self.call(function.name, algorithm, seed)?;
                match ctx.sql(&sql).await?.collect().await {
                    Ok(rows) => {
                        let release = self.release(function.system_name(), &rows)?;
                        releases.entry(release).or_default().push(table);
                    }
                    Err(error) if matches!(error.find_root(), DataFusionError::Execution(_)) => {
                        measured.refused += 1;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        measured.releases = releases.len();
        for (release, given) in &releases {
            let fitting = release.iter().map(|group| self.fitting(group));
            let fitting: Vec<Fitting> = fitting.collect::<Result<_>>()?;
            let everybody = (1 << self.people) - 1;
            let possible = tables.iter().map(|t| (t, ways(&fitting, everybody, t)));
            let possible: Vec<(&Table, usize)> = possible.filter(|(_, ways)| *ways > 0).collect();
            let is_possible = |table: &&Table| possible.iter().any(|(t, _)| t == table);
            if !given.iter().all(is_possible) {
                return exec_err!(
                    "{}: a release is not true of the table it was made of: {release:?}",
                    function.name
                );
            }
            let given: Vec<(&Table, usize)> = given.iter().map(|table| (*table, 1)).collect();
            self.compare(&possible, &given, &mut measured);
        }
        Ok(measured)
    }

    /// Compares what tables tell that a release could be true of with what those tell that give it, each with its weight.
    fn compare(
        &self,
        possible: &[(&Table, usize)],
        given: &[(&Table, usize)],
        measured: &mut Measured,
    ) {
        let (mut above, mut certain) = (false, 0);
        for person in 0..self.people {
            for value in 0..self.values {
                let share = |tables: &[(&Table, usize)]| {
                    let having = tables.iter().filter(|(t, _)| t[person] >> value & 1 == 1);
                    (
                        having.map(|(_, n)| n).sum::<usize>(),
                        tables.iter().map(|(_, n)| n).sum::<usize>(),
                    )
                };
                let ((before, of), (after, runs)) = (share(possible), share(given));
                if after * of <= before * runs {
                    continue;
                }
                above = true;
                let share = before as f64 / of as f64;
                measured.lift = measured.lift.max(after as f64 / runs as f64 / share);
                if after == runs {
                    certain += 1;
                    let (least, most) = measured.shares.unwrap_or((share, share));
                    measured.shares = Some((least.min(share), most.max(share)));
                }
            }
        }
        measured.runs += given.len();
        measured.above += usize::from(above) * given.len();
        measured.certain += usize::from(certain > 0) * given.len();
        measured.disclosed += certain * given.len();
    }

    /// All tables.
    fn tables(&self) -> Result<Vec<Table>> {
        let sets = (1u32..1 << self.values).filter(|set| set.count_ones() as usize <= self.most);
        let sets: Vec<u32> = sets.collect();
        if sets.len().pow(self.people as u32) > MOST_TABLES {
            return exec_err!("these are more than {MOST_TABLES} tables");
        }
        let tables = (0..self.people).fold(vec![vec![]], |tables, _| {
            let longer = |table: &Table| -> Vec<Table> {
                sets.iter()
                    .map(|set| [table.as_slice(), &[*set]].concat())
                    .collect()
            };
            tables.iter().flat_map(longer).collect()
        });
        Ok(tables)
    }

    /// The records of a table.
    fn records(&self, table: &Table) -> Result<RecordBatch> {
        let has = |(person, value): &(usize, usize)| table[*person] >> value & 1 == 1;
        let all = (0..self.people).flat_map(|person| (0..self.values).map(move |v| (person, v)));
        let records: Vec<(usize, usize)> = all.filter(has).collect();
        let numbers = |of: &dyn Fn(usize) -> i32| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(
                records.iter().map(|(p, _)| of(*p)),
            ))
        };
        let texts = |of: &dyn Fn(usize, usize) -> &'static str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                records.iter().map(|(p, v)| of(*p, *v)),
            ))
        };
        Ok(RecordBatch::try_from_iter([
            ("id", numbers(&|person| person as i32)),
            ("age", numbers(&|person| AGES[person])),
            ("sex", texts(&|person, _| SEXES[person])),
            ("disease", texts(&|_, value| DISEASES[value])),
        ])?)
    }

    fn columns(&self) -> &'static [&'static str] {
        &["age", "sex"][..self.columns]
    }

    /// The call that publishes the table.
    fn call(&self, function: &str, algorithm: Option<&str>, seed: u64) -> Result<String> {
        let l = self.l;
        let parameters = match function {
            "anonymize_eir" => format!("l => {l}"),
            "anonymize_ir" => format!("k => {l}, l => {l}"),
            "anonymize_p_sensitive" => format!("k => {l}, p => {l}"),
            "anonymize_kl" => format!("k => 2, l => {l}"),
            "anonymize_kkm" => format!("k => {l}, m => 1, delta => 0.5"),
            "anonymize_lgb" => format!("k => {l}, l => {l}"),
            // One sub-table, so that all that a reader may know of a person stands in one row.
            "anatomize_slppa" => format!(
                "alpha => 1, beta => 0.{:04}, gamma => 1, delta => 1, tables => 1",
                10_000usize.div_ceil(l)
            ),
            _ => return not_impl_err!("{function} publishes no table, or has no parameters here"),
        };
        let mut sql = format!(
            "SELECT * FROM {function}(people, id => id, qi => [{}], sensitive => disease, {parameters}, seed => {seed}",
            self.columns().join(", ")
        );
        if function != "anatomize_slppa" {
            sql.push_str(", notation => 'text'");
        }
        let mut levels: Vec<&str> = vec![];
        if self.hierarchy {
            levels.extend(
                ["age: 'bins(10, 20)'", "sex: 'mask(1)'"]
                    .iter()
                    .take(self.columns),
            );
        }
        if ["anonymize_kl", "anonymize_kkm"].contains(&function) {
            levels.push("disease: labels");
        }
        if !levels.is_empty() {
            let _ = write!(sql, ", hierarchy => {{{}}}", levels.join(", "));
        }
        if let Some(algorithm) = algorithm {
            let _ = write!(sql, ", algorithm => '{algorithm}'");
        }
        Ok(sql + ")")
    }

    /// What a reader sees, without pseudonyms, numbers of groups and the order of rows.
    fn release(&self, system: &str, rows: &[RecordBatch]) -> Result<Release> {
        let Some(first) = rows.first() else {
            return Ok(vec![]);
        };
        let rows = concat_batches(&first.schema(), rows)?;
        let texts = |name: &str| -> Result<Vec<String>> {
            let Some(column) = rows.column_by_name(name) else {
                return exec_err!("no column {name}");
            };
            let texts = cast(column, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>().iter();
            Ok(texts
                .map(|text| text.unwrap_or_default().to_owned())
                .collect())
        };
        let cells: Vec<Vec<String>> = self
            .columns()
            .iter()
            .map(|c| texts(c))
            .collect::<Result<_>>()?;
        let cells = |row: usize| {
            cells
                .iter()
                .map(|column| column[row].clone())
                .collect::<Vec<_>>()
        };
        // Of each group what its members show, and their values.
        type Members = (
            BTreeMap<String, Vec<String>>,
            BTreeMap<String, BTreeSet<String>>,
        );
        let mut groups: BTreeMap<String, Members> = BTreeMap::new();
        if system == "anatomy" {
            let (tables, ids) = (texts("subtable")?, texts("gid")?);
            let (values, counts) = (texts("disease")?, texts("count")?);
            for row in 0..rows.num_rows() {
                let group = groups.entry(ids[row].clone()).or_default();
                for copy in 0..counts[row].parse().unwrap_or(0) {
                    let member = format!("{row} {copy}");
                    match tables[row].as_str() {
                        "sa" => {
                            group
                                .1
                                .insert(member, BTreeSet::from([values[row].clone()]));
                        }
                        _ => {
                            group.0.insert(member, cells(row));
                        }
                    }
                }
            }
        } else {
            let (ids, values) = match system {
                "buckets" => (texts("disease_bid")?, texts("disease_bucketized")?),
                _ => (
                    (0..rows.num_rows())
                        .map(|row| cells(row).join("; "))
                        .collect(),
                    texts("disease")?,
                ),
            };
            for (row, member) in texts("individual")?.into_iter().enumerate() {
                let group = groups.entry(ids[row].clone()).or_default();
                group.0.insert(member.clone(), cells(row));
                group
                    .1
                    .entry(member)
                    .or_default()
                    .insert(values[row].clone());
            }
        }
        let groups = groups.into_values().map(|(shown, fingerprints)| {
            let mut group = Group {
                shown: shown.into_values().collect(),
                fingerprints: fingerprints.into_values().collect(),
            };
            group.shown.sort();
            group.fingerprints.sort();
            group
        });
        let mut release: Release = groups.collect();
        release.sort();
        Ok(release)
    }

    /// What a group may be true of.
    fn fitting(&self, group: &Group) -> Result<Fitting> {
        let mut shown = vec![];
        for cells in &group.shown {
            let mut people = 0;
            for person in 0..self.people {
                if covers(&cells[0], &AGES[person].to_string())?
                    && cells
                        .get(1)
                        .map_or(Ok(true), |sex| covers(sex, SEXES[person]))?
                {
                    people |= 1 << person;
                }
            }
            shown.push(people);
        }
        let is_membership = |set: &u32| {
            let members = bits(*set);
            members.len() == shown.len()
                && matched(shown.len(), 0, &|member, row| {
                    shown[row] >> members[member] & 1 == 1
                })
        };
        let label = |label: &String| {
            let stands_for = |v: &usize| label == "*" || label == DISEASES[*v] || label == kind(*v);
            (0..self.values).filter(stands_for).map(|v| 1 << v).sum()
        };
        let fingerprints = group.fingerprints.iter();
        Ok(Fitting {
            memberships: (0..1 << self.people).filter(is_membership).collect(),
            fingerprints: fingerprints
                .map(|labels| labels.iter().map(label).collect())
                .collect(),
        })
    }
}

/// The label above a value.
fn kind(value: usize) -> &'static str {
    KINDS[value / 2]
}

/// Whether a published text covers a value: `*`, `[21, 33]`, `{F, M}` or the value itself.
fn covers(text: &str, value: &str) -> Result<bool> {
    let inner = |open, close| text.strip_prefix(open).and_then(|t| t.strip_suffix(close));
    if let Some(set) = inner('{', '}') {
        return Ok(set.split(", ").any(|one| one == value));
    }
    let Some((lo, hi)) = inner('[', ']').and_then(|ends| ends.split_once(", ")) else {
        return Ok(text == "*" || text == value);
    };
    match (lo.parse::<i32>(), hi.parse::<i32>(), value.parse::<i32>()) {
        (Ok(lo), Ok(hi), Ok(value)) => Ok((lo..=hi).contains(&value)),
        _ => exec_err!("cannot read the interval {text}"),
    }
}

/// In how many ways people can be divided among groups so that all of these are true of a table. Who remains was left out.
fn ways(groups: &[Fitting], remaining: u32, table: &Table) -> usize {
    let Some((group, others)) = groups.split_first() else {
        return 1;
    };
    let may_have = |person: usize, labels: &[u32]| {
        let all: u32 = labels.iter().fold(0, |all, label| all | label);
        table[person] & !all == 0 && labels.iter().all(|label| label & table[person] != 0)
    };
    let is_true = |set: &u32| {
        let members = bits(*set);
        let fingerprints = &group.fingerprints;
        members.len() == fingerprints.len()
            && matched(members.len(), 0, &|m, f| {
                may_have(members[m], &fingerprints[f])
            })
    };
    let within = group
        .memberships
        .iter()
        .filter(|set| **set & !remaining == 0);
    let ways = within
        .filter(|set| is_true(set))
        .map(|set| ways(others, remaining & !set, table));
    ways.sum()
}

/// Whether the `n - used` last of n members can have one of the n places each that are not in `used`.
fn matched(n: usize, used: u32, fits: &dyn Fn(usize, usize) -> bool) -> bool {
    let member = used.count_ones() as usize;
    let free = |place: &usize| used >> place & 1 == 0;
    member == n
        || (0..n)
            .filter(free)
            .any(|place| fits(member, place) && matched(n, used | 1 << place, fits))
}

/// The numbers of the bits that are set.
fn bits(set: u32) -> Vec<usize> {
    (0..32).filter(|bit| set >> bit & 1 == 1).collect()
}

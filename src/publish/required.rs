//! Levels that a release must reach: which measures each function has, and what a release attains of them.

use datafusion::common::{Result, plan_datafusion_err};

use super::manifest::{Attained, Manifest, Required, RequiredLevel, judge};
use crate::measure::{AuditCall, LossCall, Report};
use crate::spec::Spec;
use crate::system::{Compared, INDIVIDUAL, sensitive_tree};
use crate::table::coding::Levels;

/// Counts of a manifest, and whether more is better.
const COUNTS: [(&str, bool); 4] = [
    ("suppressed_share", false),
    ("individuals_suppressed", false),
    ("individuals_out", true),
    ("records_out", true),
];

/// What `information_loss` counts, and a manifest tells elsewhere or not at all.
const COUNTED: [&str; 3] = ["dm", "dropped_records", "dropped_individuals"];

/// Measures of groups and buckets.
const OF_BUCKETS: [(&str, bool); 8] = [
    ("k", true),
    ("patterns", false),
    ("pattern_min", true),
    ("l", true),
    ("outsider_share", false),
    ("insider_share", false),
    ("t", false),
    ("t_ordered", false),
];

/// Measures of sub-tables.
const OF_SUB_TABLES: [(&str, bool); 5] = [
    ("group_min", true),
    ("alpha", false),
    ("beta", false),
    ("gamma", false),
    ("delta", false),
];

/// Refuses levels of measures that a function does not have, before any work.
pub(super) fn check(spec: &Spec, population: bool, levels: &[RequiredLevel]) -> Result<()> {
    let offered = offered(spec, population)?;
    let attained = offered.iter().map(|(measure, higher)| Attained {
        measure,
        total: false,
        value: None,
        higher: *higher,
    });
    let judged = judge(levels, &attained.collect::<Vec<_>>());
    judged
        .map(|_| ())
        .map_err(|unknown| plan_datafusion_err!("publish: require: {}: {unknown}", spec.function()))
}

/// The measures of a function whose releases can be judged by them, and whether more is better.
pub(super) fn offered(spec: &Spec, population: bool) -> Result<Vec<(&'static str, bool)>> {
    let mut offered = match spec.properties().compared {
        Compared::Tables => OF_SUB_TABLES.to_vec(),
        Compared::Buckets => OF_BUCKETS.to_vec(),
        Compared::Records | Compared::Labels => Report::Audit(AuditCall {
            one_row_per_individual: spec.id().is_none(),
            labels: sensitive_tree(spec).is_some(),
            population,
            others: not_audited(spec),
            ..AuditCall::default()
        })
        .levels(),
    };
    offered.extend(losses(spec)?);
    offered.extend(COUNTS);
    let mut seen = vec![];
    offered.retain(|(measure, _)| {
        let new = !seen.contains(measure);
        seen.push(measure);
        new
    });
    Ok(offered)
}

/// Published columns that an audit of one sensitive column leaves out.
fn not_audited(spec: &Spec) -> Vec<String> {
    let pseudonym = spec.id().is_none().then(|| INDIVIDUAL.to_owned());
    let others = spec.sensitive().iter().skip(1).cloned();
    let kept = spec.keep().iter().cloned();
    kept.chain(others).chain(pseudonym).collect()
}

/// The losses that a manifest tells, see `Measuring::loss`.
fn losses(spec: &Spec) -> Result<Vec<(&'static str, bool)>> {
    let masked = |qi: &&String| matches!(spec.hierarchies().get(*qi), Some(Levels::Mask(_)));
    let columns: Vec<String> = spec.qi().iter().filter(|qi| !masked(qi)).cloned().collect();
    if !spec.properties().generalizes || columns.is_empty() {
        return Ok(vec![]);
    }
    let buckets = spec.properties().groups.is_some();
    let hierarchies = columns
        .iter()
        .map(|column| spec.hierarchies().contains_key(column));
    let report = Report::Loss(LossCall {
        hierarchies: hierarchies.collect(),
        qi: columns.len(),
        columns,
        sensitive: !buckets && spec.sensitive().len() == 1,
        sensitive_as_is: false,
        per_original_value: false,
        stated: 0,
        k: None,
        published_only: true,
        buckets,
    });
    let told = report.levels().into_iter();
    let told = told.filter(|(measure, _)| !COUNTED.contains(measure));
    // Labels of sensitive values lie in a hierarchy.
    let labels = sensitive_tree(spec).map(|_| ("distortion_ratio", false));
    let told = told.chain(labels);
    Ok([("information_loss", false)]
        .into_iter()
        .chain(told)
        .collect())
}

/// Judges a release by its manifest.
pub(super) fn judged(manifest: &Manifest, levels: &[RequiredLevel]) -> Result<Vec<Required>> {
    let mut attained: Vec<Attained> = vec![];
    for measure in &manifest.audit {
        attained.extend(measure.better.as_ref().map(|better| Attained {
            measure: &measure.measure,
            total: false,
            value: measure.value,
            higher: better == "higher",
        }));
    }
    attained.extend(manifest.information_loss.iter().map(|loss| Attained {
        measure: &loss.measure,
        total: loss.column.is_none(),
        value: loss.value,
        higher: false,
    }));
    // Judged by what everybody may know: a level that is reached must not tell a count that is hidden.
    let counts = &manifest.counts;
    let suppressed = counts.most_suppressed();
    let all = suppressed + counts.individuals_out;
    let share = (all > 0).then(|| suppressed as f64 / all as f64);
    let counts = [
        share,
        Some(suppressed as f64),
        Some(counts.individuals_out as f64),
        Some(counts.records_out as f64),
    ];
    attained.extend(
        COUNTS
            .iter()
            .zip(counts)
            .map(|((measure, higher), value)| Attained {
                measure,
                total: false,
                value,
                higher: *higher,
            }),
    );
    // A measure that the function has and this release has not, such as one of buckets that are not needed.
    let missing = levels
        .iter()
        .filter(|level| !attained.iter().any(|a| a.measure == level.measure));
    let missing: Vec<Attained> = missing
        .map(|level| Attained {
            measure: &level.measure,
            total: false,
            value: None,
            higher: OF_BUCKETS.contains(&(level.measure.as_str(), true)),
        })
        .collect();
    attained.extend(missing);
    judge(levels, &attained).map_err(|unknown| plan_datafusion_err!("publish: require: {unknown}"))
}

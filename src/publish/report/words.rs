//! What a report says in words, whatever its format.

use crate::publish::manifest::{Count, Manifest, Required};

/// Thresholds of risk that practitioners use, the most people of a class whose risk is above, and the measure. They mean
/// one in 3, 5, 11 and 20, rounded to two digits: a class of 11 is not above 0.09.
pub const THRESHOLDS: [(&str, u32, &str); 4] = [
    ("0.33 (1/3)", 2, "share_above_0.33"),
    ("0.2 (1/5)", 4, "share_above_0.2"),
    ("0.09 (1/11)", 10, "share_above_0.09"),
    ("0.05 (1/20)", 19, "share_above_0.05"),
];

/// A row of the table of risks.
pub struct Risk {
    pub attacker: &'static str,
    pub knows: &'static str,
    pub largest: Option<f64>,
    pub average: Option<f64>,
}

/// Risks as practitioners expect them.
pub fn risks(manifest: &Manifest) -> Vec<Risk> {
    let journalist = manifest.measure("journalist_max");
    vec![
        Risk {
            attacker: "Prosecutor",
            knows: "that a certain person is in the data, and all of the person's quasi-identifiers",
            largest: manifest.measure("prosecutor_max"),
            average: manifest.measure("prosecutor_average"),
        },
        Risk {
            attacker: "Journalist",
            knows: if journalist.is_some() {
                "a population from which the people in the data come"
            } else {
                "a population from which the people in the data come; none was given, so the prosecutor's risk is the bound"
            },
            largest: journalist.or(manifest.measure("prosecutor_max")),
            average: manifest
                .measure("journalist_average")
                .or(manifest.measure("prosecutor_average")),
        },
        Risk {
            attacker: "Marketer",
            knows: "the quasi-identifiers of everybody, and guesses once for each",
            largest: None,
            average: manifest.measure("marketer"),
        },
    ]
}

/// Whether the report is about something that was not published.
pub fn missed(manifest: &Manifest) -> bool {
    manifest.required.iter().any(|level| !level.passed)
}

/// What is said first of something that was not published.
pub const NOT_PUBLISHED: &str = "Not published: a required level is missed. Nothing of this is visible, and the files are gone.";

/// The required levels, a line each.
pub fn required(manifest: &Manifest) -> Vec<String> {
    let line = |level: &Required| match level.passed {
        true => format!("reached: {level}"),
        false => format!("missed: {level}"),
    };
    manifest.required.iter().map(line).collect()
}

/// The guarantee in plain words, a paragraph each.
pub fn guarantee(manifest: &Manifest) -> Vec<String> {
    let mut said = match manifest.function.as_str() {
        "anonymize_lgb" => local_guarantee(manifest),
        "anatomize_slppa" => anatomy_guarantee(manifest),
        _ => class_guarantee(manifest),
    };
    said.push(
        "This was checked after writing, from the bytes of the files, by code that shares nothing with the code that \
         formed the classes."
            .to_owned(),
    );
    if manifest.truth.checked == "exact" && manifest.function == "anonymize_lgb" {
        said.push(
            "The release is true: what every person shows covers the person's own values, and the values of every bucket are \
             those of its members."
                .to_owned(),
        );
    } else if manifest.truth.checked == "exact" {
        said.push(
            "The release is true: every person's published values cover the person's own, and no record was invented. Each \
             person was compared with itself."
                .to_owned(),
        );
    }
    said
}

/// What holds of classes.
fn class_guarantee(manifest: &Manifest) -> Vec<String> {
    let parameter = |name: &str| manifest.parameters.get(name).cloned();
    let columns = manifest.roles.qi.join(", ");
    let protected = manifest.roles.sensitive.join(", ");
    let k = manifest.measure("k").map_or(0, |k| k as u64);
    let mut said = vec![format!(
        "Somebody who knows all of these about a person, {columns}, and looks for that person in the release, finds a class of \
         at least {k} people who look the same. Nothing published says which of them it is."
    )];
    let function = manifest.function.as_str();
    match (function, parameter("l"), parameter("alpha"), parameter("beta")) {
        ("anonymize_eir", Some(l), ..) => said.push(format!(
            "Take one record of each person in a class, in whatever way: among these there are always at least {l} different \
             values of {protected}. So nobody can narrow what a person has down to fewer than {l} values, although people \
             have many records."
        )),
        ("anonymize_eir", _, Some(alpha), Some(beta)) => said.push(format!(
            "No person has more than {alpha} of the records of a class, and of the people of a class at most a share of {beta} \
             have any one value of {protected} in common."
        )),
        ("anonymize_ir", _, Some(alpha), Some(beta)) => said.push(format!(
            "No person has more than {alpha} of the records of a class, and no value of {protected} more than {beta} of them."
        )),
        ("anonymize_ir", Some(l), ..) => said.push(format!(
            "Every class shows at least {l} different values of {protected}."
        )),
        ("anonymize_kl", Some(l), ..) => {
            let k = parameter("k").unwrap_or_default();
            said.push(format!(
                "Somebody who knows what a person has in {protected}, all of it or some, finds labels that at least {k} people \
                 publish in the same combination."
            ));
            said.push(format!(
                "Of the people of a class at most one in {l} may have the same set of values of {protected}, and no published \
                 label but the most general one stands for something that all of them have."
            ));
        }
        ("anonymize_kkm", ..) => said.push(format!(
            "Somebody who also knows up to {} of that person's values of {protected} finds at least {} people of the class who \
             publish the same labels.",
            parameter("m").unwrap_or_default(),
            parameter("k").unwrap_or_default(),
        )),
        _ => said.push(format!("Every class satisfies {}.", manifest.model)),
    }
    said
}

/// What holds of local groups and buckets.
fn local_guarantee(manifest: &Manifest) -> Vec<String> {
    let k = manifest.measure("k").map_or(0, |k| k as u64);
    let mut said = vec![format!(
        "Somebody who knows everything about a person that the person does not keep secret, of {}, and looks for that person \
         in the release, finds at least {k} people who show the same and keep the same columns secret. Nothing published \
         says which of them it is.",
        manifest.roles.qi.join(", ")
    )];
    for (name, value) in &manifest.parameters {
        if let Some(column) = name.strip_prefix("l of ") {
            said.push(format!(
                "A secret value of {column} is in a bucket of at least {value} people with different values. Nothing \
                 published says which of the values is whose."
            ));
        } else if let Some(column) = name.strip_prefix("t of ") {
            said.push(format!(
                "A secret value of {column} is in a bucket whose shares of values are at most {value} away from those of all \
                 secret values of the column. Nothing published says which of the values is whose."
            ));
        }
    }
    said
}

/// What holds of groups in anatomized tables.
fn anatomy_guarantee(manifest: &Manifest) -> Vec<String> {
    let protected = manifest.roles.sensitive.join(", ");
    let mut said = vec![
        "Values are published as they are, and the links between them are cut. People are divided into groups; a reader learns \
         which values occur in each table of a group, and how often, and not which of different tables belong to one person."
            .to_owned(),
    ];
    let bounds = [
        (
            "alpha",
            "of the people of a group at most this share show the same in any one table".to_owned(),
        ),
        (
            "beta",
            format!(
                "of the people of a group at most this share have the same value of {protected}"
            ),
        ),
        (
            "gamma",
            "the product of these shares over all tables of a group is at most this".to_owned(),
        ),
        (
            "delta",
            format!(
                "a value's share of {protected} in a group is at most this far from its share of the whole table"
            ),
        ),
    ];
    let given = bounds.iter().filter_map(|(name, meaning)| {
        let bound = manifest.parameters.get(*name)?;
        Some(format!("{bound}: {meaning} ({name})."))
    });
    said.extend(given);
    said
}

/// How a quasi-identifier is published.
pub fn quasi_identifier(manifest: &Manifest, column: &str) -> &'static str {
    let secret = ["l", "t"].map(|rule| format!("{rule} of {column}"));
    match manifest.function.as_str() {
        "anatomize_slppa" => "as it is, in one of the tables that only random group ids link",
        "anonymize_lgb" if secret.iter().any(|s| manifest.parameters.contains_key(s)) => {
            "generalized, so that a whole group shows the same, or in a bucket where its owner keeps it secret"
        }
        _ => "generalized, so that a whole class shows the same",
    }
}

/// How a sensitive column is published.
pub fn sensitive(manifest: &Manifest) -> &'static str {
    match manifest.function.as_str() {
        "anonymize_kl" | "anonymize_kkm" => {
            "as labels that stand for several values: this is what others must not learn about a person"
        }
        "anonymize_lgb" => {
            "in buckets, apart from whose it is: this is what others must not learn about a person"
        }
        "anatomize_slppa" => {
            "as it is, in a table of its own: this is what others must not learn about a person"
        }
        _ => "as it is: this is what others must not learn about a person",
    }
}

/// What is not protected.
pub fn unprotected(manifest: &Manifest) -> Vec<String> {
    let mut said: Vec<String> = manifest
        .audit
        .iter()
        .filter(|m| m.section == "not protected")
        .map(|m| format!("{}: {}", m.measure.replace('_', " "), m.note))
        .collect();
    // Labels hide values below and above them: who has a label may have the value as well.
    if let Some(share) = manifest.measure("largest_related_share") {
        said.push(format!(
            "likely values: in some class {} of the people have a published value, or one below or above it, so belonging to \
             the class makes it likely",
            percent(share)
        ));
    } else if let Some(share) = manifest.measure("largest_value_share") {
        said.push(format!(
            "likely values: in some class {} of the people have the same sensitive value, so belonging to the class makes it \
             likely",
            percent(share)
        ));
    }
    if let Some(share) = manifest
        .measure("unique_fingerprints_in_class")
        .filter(|s| *s > 0.0)
    {
        said.push(format!(
            "known sensitive values: {} of the people are alone in their class with their set of sensitive values; somebody who \
             knows that set finds the person's pseudonym",
            percent(share)
        ));
    }
    if !manifest.roles.keep.is_empty() {
        said.push(format!(
            "kept columns: {} are published as they are and are not protected at all",
            manifest.roles.keep.join(", ")
        ));
    }
    if manifest.reproducible {
        said.push(
            "the seed: whoever knows it and the input can compute every pseudonym; a release for others should have none"
                .to_owned(),
        );
    }
    said
}

/// What the publisher should do.
pub fn governance() -> Vec<String> {
    vec![
        "Keep this report and the original table with the publisher: the charts of the original are not for the recipients."
            .to_owned(),
        "Do not publish the same people again with other parameters: two releases can be compared. A ledger can watch over \
         that."
            .to_owned(),
        "Look again at the risk when recipients, purposes or other available data change, and at least once a year.".to_owned(),
        format!(
            "Recipients can check what they got: {} names every file with its size and SHA-256.",
            crate::publish::MANIFEST
        ),
    ]
}

/// What the publisher has to write down; the program cannot know it.
pub const CONTEXT: [&str; 4] = [
    "Recipients, and what they may do with the data",
    "Who might try to find people in it, and why",
    "Contracts, access control and logging that apply",
    "What the people in the data were told",
];

/// Said in place of the usual risks where a release has no classes.
pub const NO_CLASSES: &str = "The usual figures are shares of classes of people who look the same. This release is not made of \
such classes; how sure a reader can be of a person's values is bounded as said above, and measured in the appendix.";

/// The disclaimer at the end.
pub const DISCLAIMER: &str = "The figures are those of the models named here. Whether the release is anonymous in the sense of a \
law depends on its context, which nobody can read from the data.";

pub fn count(count: Count) -> String {
    match count {
        Count::Exact(n) => grouped(n),
        Count::Hidden { hidden_below } => {
            format!("not stated (would tell a count below {hidden_below})")
        }
    }
}

/// 12345 as 12,345.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// 0.1234 as 12.3 %.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.1 => "below 0.1 %".to_owned(),
        p if p >= 99.95 => "100 %".to_owned(),
        p => format!("{p:.1} %"),
    }
}

/// A measure with at most four digits after the point.
pub fn measured(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(v) if v.fract() == 0.0 && v >= 0.0 => grouped(v as u64),
        Some(v) => format!("{v:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The risk of a class is one in its people.
    #[test]
    fn thresholds_are_sizes_of_classes() {
        for (threshold, people, _) in THRESHOLDS {
            let (rounded, exact) = threshold.split_once(" (1/").unwrap();
            let exact: u32 = exact.trim_end_matches(')').parse().unwrap();
            assert_eq!(people + 1, exact);
            let rounded: f64 = rounded.parse().unwrap();
            assert!((1.0 / f64::from(exact) - rounded).abs() < 0.005);
        }
    }
}

//! What a report says in words, whatever its format.

use crate::publish::manifest::{Count, Manifest};
use crate::system::{ReleaseFacts, ReleaseWords, system_of};

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

/// What the system of the function says of a release.
pub fn of_system(manifest: &Manifest) -> ReleaseWords {
    let release = ReleaseFacts {
        function: &manifest.function,
        model: &manifest.model,
        qi: &manifest.roles.qi,
        sensitive: &manifest.roles.sensitive,
        parameters: &manifest.parameters,
        k: manifest.measure("k"),
    };
    system_of(&manifest.function).words(&release)
}

/// The guarantee in plain words, a paragraph each.
pub fn guarantee(manifest: &Manifest) -> Vec<String> {
    let words = of_system(manifest);
    let mut said = words.guarantee;
    said.push(
        "This was checked after writing, from the bytes of the files, by code that shares nothing with the code that \
         formed the classes."
            .to_owned(),
    );
    let exact = words.exact.filter(|_| manifest.truth.checked == "exact");
    said.extend(exact.map(str::to_owned));
    said
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

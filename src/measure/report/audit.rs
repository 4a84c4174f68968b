//! The rows of `audit`.

use serde::{Deserialize, Serialize};

use super::{Figures, ReportRow};

/// What the notes of an audit need of the call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AuditCall {
    /// Whether every record is an individual.
    pub one_row_per_individual: bool,
    /// Whether the sensitive values are labels of a hierarchy.
    pub labels: bool,
    /// Number of categories, 0 without.
    pub categories: usize,
    /// The c of recursive (c, l)-diversity, as it prints.
    pub c: String,
    /// The models compared, as they print.
    pub versus: Option<(String, String)>,
    /// Whether there is a population.
    pub population: bool,
    /// Whether there is an original, and then whether it has the same ids.
    pub original: Option<bool>,
    /// Columns that were not audited.
    pub others: Vec<String>,
    /// Whether there are buckets among them.
    pub buckets: bool,
}

const HIGHER: Option<&str> = Some("higher");
const LOWER: Option<&str> = Some("lower");

/// The rows of an audit.
pub(super) fn rows(context: &AuditCall, figures: &Figures<'_>) -> Vec<ReportRow> {
    let mut all = Rows {
        figures,
        rows: vec![],
    };
    all.table(context);
    all.faults(context);
    all.models();
    all.distributions(context);
    all.fingerprints(context);
    all.risks();
    all.population(context);
    all.vulnerable(context);
    all.original(context);
    all.unprotected(context);
    all.rows
}

struct Rows<'a> {
    figures: &'a Figures<'a>,
    rows: Vec<ReportRow>,
}

impl Rows<'_> {
    fn get(&self, figure: &str) -> Option<f64> {
        self.figures.get(figure)
    }

    fn add(
        &mut self,
        section: &'static str,
        measure: &'static str,
        value: Option<f64>,
        better: Option<&'static str>,
        note: impl Into<String>,
    ) {
        let note = note.into();
        self.rows.push(ReportRow {
            section: Some(section.to_owned()),
            measure,
            value,
            better,
            note,
        });
    }

    fn share(&self, part: &str, whole: &str) -> Option<f64> {
        let (part, whole) = (self.get(part)?, self.get(whole)?);
        (whole > 0.0).then(|| part / whole)
    }

    fn table(&mut self, context: &AuditCall) {
        let nameless = self.get("records_without_id").unwrap_or(0.0);
        let records = self.get("records").unwrap_or(0.0) + nameless;
        let individuals = if context.one_row_per_individual {
            self.get("members").or(Some(0.0))
        } else {
            self.get("individuals")
        };
        let one_row = if context.one_row_per_individual {
            "one per record, as the call says"
        } else {
            "different ids"
        };
        let [least, median, most] = [
            "least_individuals",
            "median_individuals",
            "most_individuals",
        ]
        .map(|f| self.get(f));
        self.add("table", "records", Some(records), None, "rows");
        self.add("table", "individuals", individuals, None, one_row);
        let classes = self.get("classes");
        self.add(
            "table",
            "classes",
            classes,
            None,
            "different tuples of quasi-identifiers",
        );
        self.add(
            "table",
            "class_individuals_min",
            least,
            HIGHER,
            "in the smallest class",
        );
        self.add(
            "table",
            "class_individuals_median",
            median,
            None,
            "in the median class",
        );
        self.add(
            "table",
            "class_individuals_max",
            most,
            None,
            "in the largest class",
        );
    }

    fn faults(&mut self, context: &AuditCall) {
        const SECTION: &str = "faults";
        if !context.one_row_per_individual {
            let several = self.get("individuals_in_several_classes").or(Some(0.0));
            let nameless = self.get("records_without_id").or(Some(0.0));
            let note =
                "their classes can be intersected; the figures below count them once in each";
            self.add(
                SECTION,
                "individuals_in_several_classes",
                several,
                LOWER,
                note,
            );
            let note = "left out of the figures below: nobody knows whose they are";
            self.add(SECTION, "records_without_id", nameless, LOWER, note);
        }
        let without = self.get("individuals_without_value").or(Some(0.0));
        let note = "all their sensitive values are NULL; they add to k and to no l";
        self.add(SECTION, "individuals_without_value", without, LOWER, note);
        if !context.one_row_per_individual {
            let duplicates = self.get("duplicate_records").or(Some(0.0));
            let note = "records that repeat the individual and the sensitive value of another";
            self.add(SECTION, "duplicate_records", duplicates, None, note);
        }
    }

    fn models(&mut self) {
        const SECTION: &str = "models";
        let k = self.get("least_individuals");
        self.add(
            SECTION,
            "k",
            k,
            HIGHER,
            "IR k-anonymity: individuals in the smallest class",
        );
        let records = self.get("least_records");
        let note = "the same in records, as tools count that know no individuals";
        self.add(SECTION, "k_records", records, None, note);
        let values = self.get("values");
        let note = "the l of IR (k, l)-anonymity: sensitive values in a class";
        self.add(SECTION, "ir_l", values, HIGHER, note);
        let alpha = self.get("alpha");
        let note = "the α of IR (α, β)-anonymity: one individual's share of the records of a class";
        self.add(SECTION, "ir_alpha", alpha, LOWER, note);
        let beta = self.get("beta");
        let note = "the β of IR (α, β)-anonymity: one value's share of the records of a class";
        self.add(SECTION, "ir_beta", beta, LOWER, note);
        let eir = self.get("eir");
        let note = match eir {
            Some(eir) if eir % 2.0 == 1.0 => {
                "EIR l-diversity, at least: the search ended at its limit"
            }
            _ => "EIR l-diversity: values in the smallest reasoning set (minimum hitting set)",
        };
        self.add(
            SECTION,
            "eir_l",
            eir.map(|eir| (eir / 2.0).floor()),
            HIGHER,
            note,
        );
        let note = "the α of EIR (α, β)-anonymity: as ir_alpha";
        self.add(SECTION, "eir_alpha", alpha, LOWER, note);
        let share = self.get("eir_beta");
        let note =
            "the β of EIR (α, β)-anonymity: share of the individuals of a class with one value";
        self.add(SECTION, "eir_beta", share, LOWER, note);
    }

    fn distributions(&mut self, context: &AuditCall) {
        const SECTION: &str = "values";
        let values = self.get("values");
        let note = "distinct l-diversity: sensitive values in a class";
        self.add(SECTION, "distinct_l", values, HIGHER, note);
        let note = "entropy l-diversity: e to the entropy of a class's records";
        self.add(SECTION, "entropy_l", self.get("entropy_l"), HIGHER, note);
        let note = format!(
            "recursive ({}, l)-diversity of a class's records",
            context.c
        );
        self.add(
            SECTION,
            "recursive_l",
            self.get("recursive_l"),
            HIGHER,
            note,
        );
        let note = "t-closeness of records, all values equally far from each other";
        self.add(SECTION, "t_equal", self.get("t_equal"), LOWER, note);
        let ordered = self.get("t_ordered");
        let note = match ordered {
            Some(_) => "t-closeness of records, values as far from each other as in their order",
            None => "no order: the sensitive values are neither numbers nor times",
        };
        self.add(SECTION, "t_ordered", ordered, LOWER, note);
        let note = "p-sensitive k-anonymity: sensitive values in a class";
        self.add(SECTION, "p", values, HIGHER, note);
        if context.categories > 0 {
            let note = "p+-sensitive k-anonymity: categories in a class";
            self.add(SECTION, "p_plus", self.get("categories"), HIGHER, note);
            let steps = (context.categories - 1) as f64;
            let weight = self.get("weight").map(|weight| weight / steps);
            let note = "the α of (p, α)-sensitive k-anonymity: least total weight of a class";
            self.add(SECTION, "p_alpha", weight, HIGHER, note);
            let note = "share of the individuals of a class with a value of one category";
            let share = self.get("category_share");
            self.add(SECTION, "largest_category_share", share, LOWER, note);
        }
        let note = "how sure a reader can be that a member of a class has some value";
        let share = self.get("eir_beta");
        self.add(SECTION, "largest_value_share", share, LOWER, note);
    }

    fn fingerprints(&mut self, context: &AuditCall) {
        const SECTION: &str = "fingerprints";
        let sets = self.share("unique_fingerprints", "members");
        let note = "share of individuals whose set of sensitive values is unique in their class";
        self.add(SECTION, "unique_fingerprints_in_class", sets, LOWER, note);
        let sampled = self.get("sets_are_sampled") == Some(1.0);
        let note = match sampled {
            true => "the same in the whole table, estimated from a sample",
            false => "the same in the whole table",
        };
        let all = self.get("unique_sets");
        self.add(SECTION, "unique_fingerprints", all, LOWER, note);
        let counts = self.share("unique_record_counts", "members");
        let note = "share of individuals whose number of records is unique in their class";
        self.add(
            SECTION,
            "unique_record_counts_in_class",
            counts,
            LOWER,
            note,
        );
        let note = match sampled {
            true => "at most: the rarest set of sensitive values of a sample, in individuals",
            false => {
                "the k of (k, l)-diversity: individuals with the rarest set of sensitive values"
            }
        };
        let rarest = self.get("rarest_set");
        self.add(SECTION, "fingerprint_k", rarest, HIGHER, note);
        let note =
            "fewest individuals of a class with the same set: left to a reader who knows both";
        let fewest = self.get("fewest_in_common");
        self.add(SECTION, "fewest_in_common", fewest, HIGHER, note);
        if context.labels {
            let note =
                "the l of (k, l)-diversity: at most one in l of a class may have the same values";
            let l = self.get("fingerprint_l");
            self.add(SECTION, "fingerprint_l", l, HIGHER, note);
            let note = "share of the individuals of a class with one value, or something below or above it";
            let share = self.get("related_share");
            self.add(SECTION, "largest_related_share", share, LOWER, note);
        }
    }

    fn risks(&mut self) {
        const SECTION: &str = "risk";
        let most = self.get("least_individuals").map(|k| 1.0 / k);
        let average = self.share("classes", "members");
        let note = "of the individual easiest to find for somebody who knows the quasi-identifiers";
        self.add(SECTION, "prosecutor_max", most, LOWER, note);
        let note = "mean over individuals";
        self.add(SECTION, "prosecutor_average", average, LOWER, note);
        // Practitioners write the risk of a class of 3 or 11 with two digits.
        for (measure, people) in [
            ("share_above_0.33", 3),
            ("share_above_0.2", 5),
            ("share_above_0.09", 11),
            ("share_above_0.05", 20),
        ] {
            let share = self.share(&format!("above_1_in_{people}"), "members");
            let note = format!("share of individuals whose prosecutor risk is above 1/{people}");
            self.add(SECTION, measure, share, LOWER, note);
        }
        let note = "share of individuals found by somebody who guesses once per individual";
        self.add(SECTION, "marketer", average, LOWER, note);
    }

    fn population(&mut self, context: &AuditCall) {
        const SECTION: &str = "risk";
        if !context.population {
            return;
        }
        let most = self.get("journalist_max");
        let note = "of the individual easiest to find among the population";
        self.add(SECTION, "journalist_max", most, LOWER, note);
        let average = self.share("found_in_population", "members");
        let note = "mean over individuals";
        self.add(SECTION, "journalist_average", average, LOWER, note);
        let note = "share of individuals found by one guess each among the population";
        self.add(SECTION, "marketer_population", average, LOWER, note);
        if let Some(classes @ 1.0..) = self.get("classes_larger_than_population") {
            let note = "classes that fewer people of the population fit: it does not hold everybody published";
            self.add(
                SECTION,
                "classes_larger_than_population",
                Some(classes),
                LOWER,
                note,
            );
        }
    }

    fn original(&mut self, context: &AuditCall) {
        const SECTION: &str = "original";
        let Some(same_ids) = context.original else {
            return;
        };
        let original = self.get("original_individuals");
        self.add(
            SECTION,
            "original_individuals",
            original,
            None,
            "in the original table",
        );
        let published = if context.one_row_per_individual {
            self.get("members").or(Some(0.0))
        } else {
            self.get("individuals")
        };
        if let Some(nameless @ 1.0..) = self.get("original_records_without_id") {
            let note = "left out of the figures below: nobody knows whose they are";
            let measure = "original_records_without_id";
            self.add(SECTION, measure, Some(nameless), LOWER, note);
        }
        // Pseudonyms say nothing about who is missing, only how many are.
        let (dropped, added) = if same_ids {
            let figures = ["individuals_not_published", "individuals_only_published"];
            figures.map(|figure| self.get(figure)).into()
        } else {
            let difference = original.zip(published).map(|(a, b)| a - b);
            let positive = |d: f64| if d > 0.0 { d } else { 0.0 };
            (difference.map(positive), difference.map(|d| positive(-d)))
        };
        self.add(
            SECTION,
            "dropped_individuals",
            dropped,
            LOWER,
            "not in the published table",
        );
        let note = if same_ids {
            "published and not in the original table"
        } else {
            "more are published than there are: somebody is doubled or invented"
        };
        self.add(SECTION, "added_individuals", added, LOWER, note);
        let untrue = self.get("untrue_individuals").or(Some(0.0));
        let beyond = self.get("values_beyond").or(Some(0.0));
        if same_ids {
            let note = "not in the original, or with a value that the published one does not cover";
            self.add(SECTION, "untrue_individuals", untrue, LOWER, note);
            let note = "pairs of individual and sensitive value that the original does not have";
            let only = self.get("records_only_published");
            self.add(SECTION, "invented_records", only, LOWER, note);
            let note = "pairs of published individuals that are not published";
            let lost = self.get("records_not_published");
            self.add(SECTION, "lost_records", lost, LOWER, note);
        } else {
            let note = "individuals of a class with the same sensitive values, beyond those of the original that fit; \
                        a true table has 0, but 0 is no proof";
            self.add(SECTION, "untraceable_individuals", untrue, LOWER, note);
            let note = "records with a sensitive value, beyond those of the original with that value; a true table has 0";
            self.add(SECTION, "invented_values", beyond, LOWER, note);
        }
    }

    fn vulnerable(&mut self, context: &AuditCall) {
        const SECTION: &str = "vulnerable";
        let Some((plain, enhanced)) = &context.versus else {
            return;
        };
        let note = format!("classes that satisfy {plain}");
        self.add(SECTION, "classes_plain", self.get("plain"), None, note);
        let note = format!("classes that satisfy {plain} and not {enhanced}");
        self.add(
            SECTION,
            "vulnerable_classes",
            self.get("vulnerable"),
            LOWER,
            note,
        );
        let share = self.share("vulnerable", "classes");
        self.add(SECTION, "vulnerable_share", share, LOWER, "of all classes");
        if let Some(undecided @ 1.0..) = self.get("undecided") {
            let note = format!("not decided within the limit of the search for {enhanced}");
            self.add(SECTION, "undecided_classes", Some(undecided), LOWER, note);
        }
    }

    fn unprotected(&mut self, context: &AuditCall) {
        const SECTION: &str = "not protected";
        let note = "whoever looks like nobody in the table is known not to be in it";
        self.add(SECTION, "membership", None, None, note);
        let note = "another table about the same people may tell their classes apart";
        self.add(SECTION, "other_releases", None, None, note);
        if !context.one_row_per_individual {
            let note = "whoever knows some sensitive values of an individual may find its id, see fingerprints";
            self.add(SECTION, "known_sensitive_values", None, None, note);
        }
        if context.buckets {
            let note = "the table has buckets: how sure an outsider and an insider can be of a value in one, \
                        1 / (l - 1), is printed by audit_buckets(published)";
            self.add(SECTION, "insiders", None, None, note);
        }
        if !context.others.is_empty() {
            let note = format!(
                "not audited, as telling as quasi-identifiers: {}",
                context.others.join(", ")
            );
            let others = context.others.len() as f64;
            self.add(SECTION, "other_columns", Some(others), LOWER, note);
        }
    }
}

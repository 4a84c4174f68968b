//! What the anatomizing functions are asked for.

use datafusion::common::{DataFusionError, Result};

use super::schema::{GID, SUBTABLE, TIMES};
use crate::error;
use crate::model::Ratio;
use crate::spec::{BlockSize, CATEGORIES, Contradictory, Notation, NullSensitive, Spec};
use crate::system::anatomy::slppa::{
    AnatomyRequest, Division, DivisionError, GroupBounds, Method, SubTables,
};

/// Arguments of the anatomizing functions beside those that all anonymizing functions take, with a line of help.
pub static ANATOMY_ARGUMENTS: &[(&str, &str)] = &[
    (
        "alpha",
        "the largest share of a tuple in each sub-table of each group, above 0 and at most 1",
    ),
    (
        "beta",
        "the largest share of a sensitive value in each group, above 0 and at most 1",
    ),
    (
        "gamma",
        "the largest product of these shares, above 0 and at most 1",
    ),
    (
        "delta",
        "the largest distance of a sensitive value's share of a group from its share of the whole table, above 0 and at most 1",
    ),
    (
        "tables",
        "the number of sub-tables of quasi-identifiers (default: 3, or as many as there are quasi-identifiers)",
    ),
    (
        "division",
        "the quasi-identifiers of each sub-table, instead of a number: [[age, zip], [gender, job]]",
    ),
    (
        "method",
        "'slppa', 'slppa_similar', 'asn' or 'slicing' (default: 'slppa')",
    ),
];

/// Arguments of other anonymizing functions that anatomization has no use for, with the reason.
pub(super) const NOT_FOR_ANATOMY: &[(&str, &str)] = &[
    (
        "keep",
        "cannot be given: a column beside a sub-table would link what anatomization cuts; name it in qi",
    ),
    (
        "domain",
        "cannot be given: values are published as they are, so nothing is measured against a domain",
    ),
    (
        "hierarchy",
        "cannot be given: values are published as they are",
    ),
    (
        "categories",
        "cannot be given: sensitive values are counted as they are",
    ),
    (
        "algorithm",
        "cannot be given: choose the method, 'slppa', 'slppa_similar', 'asn' or 'slicing'",
    ),
    (
        "notation",
        "cannot be given: values are published as they are",
    ),
    (
        "contradictory",
        "cannot be given: each individual has one record",
    ),
    (
        "normalize",
        "cannot be given: values are published as they are; normalize them in a subquery",
    ),
];

/// Sub-tables unless a call says otherwise.
const TABLES: usize = 3;

/// Individuals per block where groups are of similar ones.
pub(super) const SIMILAR_BLOCK: u64 = 250_000;

impl Spec {
    /// Whether groups are of similar individuals, who are the more similar the more there are to choose from.
    pub(super) fn divides_similar(&self) -> bool {
        let method = self.parameter("method").and_then(Method::find);
        matches!(method, Some(Method::SlppaSimilar | Method::Slicing))
    }

    /// What an anatomizing function is asked for.
    pub(crate) fn anatomy(&self) -> Result<AnatomyRequest> {
        let method = match self.parameter("method") {
            None => Method::Slppa,
            Some(name) => Method::find(name).ok_or_else(|| self.no_such_method(name))?,
        };
        let ask = AnatomyRequest {
            requirements: self.bounds(method)?,
            method,
            sub_tables: self.sub_tables(method)?,
        };
        ask.requirements
            .check()
            .map_err(|e| error::call(self.function(), e.to_string()))?;
        Ok(ask)
    }

    fn no_such_method(&self, name: &str) -> DataFusionError {
        let names = Method::ALL.map(Method::name);
        error::argument(
            self.function(),
            "method",
            format!(
                "must be one of '{}', not '{name}'{}",
                names.join("', '"),
                error::did_you_mean(name, names)
            ),
        )
    }

    /// The bounds; each method has its own, and none of them is left out by accident.
    fn bounds(&self, method: Method) -> Result<GroupBounds> {
        let required: &[&str] = match (method, self.entry()?.shows_division_only()) {
            (_, true) => &[],
            (Method::Slppa | Method::SlppaSimilar, _) => &["alpha", "beta", "gamma", "delta"],
            (Method::Asn, _) => &["beta", "gamma"],
            (Method::Slicing, _) => &["beta"],
        };
        let bound = |name: &'static str| -> Result<Option<Ratio>> {
            let Some(text) = self.parameter(name) else {
                let (_, help) = ANATOMY_ARGUMENTS
                    .iter()
                    .find(|a| a.0 == name)
                    .unwrap_or(&("", ""));
                return match required.contains(&name) {
                    true => Err(error::argument(
                        self.function(),
                        name,
                        format!("is missing: {help}"),
                    )),
                    false => Ok(None),
                };
            };
            if method == Method::Slicing && name != "beta" {
                let message = "cannot be given with method 'slicing', which bounds beta only";
                return Err(error::argument(self.function(), name, message));
            }
            let ratio = text.parse::<Ratio>().ok();
            let ratio = ratio.filter(|r| r.numerator() > 0 && r.numerator() <= r.denominator());
            match ratio {
                Some(ratio) => Ok(Some(ratio)),
                None => Err(error::argument(
                    self.function(),
                    name,
                    format!("must be a decimal above 0 and at most 1, not '{text}'"),
                )),
            }
        };
        Ok(GroupBounds {
            alpha: bound("alpha")?,
            beta: match bound("beta")? {
                Some(beta) => beta,
                None => Ratio::new(1, 1).ok_or_else(|| error::call(self.function(), "no beta"))?,
            },
            gamma: bound("gamma")?,
            delta: bound("delta")?,
        })
    }

    fn sub_tables(&self, method: Method) -> Result<SubTables> {
        let columns = self.qi().len();
        let given = self.parameter("tables");
        if method == Method::Asn {
            let argument = match (given, self.division().is_empty()) {
                (Some(_), _) => "tables",
                (None, false) => "division",
                (None, true) => return Ok(SubTables::Number(columns)),
            };
            let message = "cannot be given with method 'asn', which puts each column into a sub-table of its own";
            return Err(error::argument(self.function(), argument, message));
        }
        if !self.division().is_empty() {
            if given.is_some() {
                let message = "is given with a division, which says how many sub-tables there are";
                return Err(error::argument(self.function(), "tables", message));
            }
            return Ok(SubTables::Given(self.given_division()?));
        }
        let Some(text) = given else {
            return Ok(SubTables::Number(TABLES.min(columns)));
        };
        let tables = text.parse().ok().filter(|n| (1..=columns).contains(n));
        tables.map(SubTables::Number).ok_or_else(|| {
            let allowed = format!(
                "must be a whole number from 1 to {columns}, the number of quasi-identifiers, not '{text}'"
            );
            error::argument(self.function(), "tables", allowed)
        })
    }

    fn given_division(&self) -> Result<Division> {
        let number = |name: &String| {
            let number = self.qi().iter().position(|column| column == name);
            number.ok_or_else(|| {
                let nearest = error::did_you_mean(name, self.qi().iter().map(String::as_str));
                error::argument(
                    self.function(),
                    "division",
                    format!("names column '{name}', which is not a quasi-identifier{nearest}"),
                )
            })
        };
        let tables = self
            .division()
            .iter()
            .map(|table| table.iter().map(number).collect::<Result<Vec<_>>>())
            .collect::<Result<Vec<_>>>()?;
        Division::try_new(tables, self.qi().len()).map_err(|fault| {
            let message = match fault {
                DivisionError::Repeated { column } => {
                    format!("names column '{}' more than once", self.qi()[column])
                }
                DivisionError::Missing { column } => {
                    format!("leaves out the quasi-identifier '{}'", self.qi()[column])
                }
                other => format!("cannot be used: {other}"),
            };
            error::argument(self.function(), "division", message)
        })
    }

    /// The bounds in words.
    pub(super) fn describe_anatomy(&self) -> Result<String> {
        let bounds = ["alpha", "beta", "gamma", "delta"];
        let given = bounds.iter().filter_map(|name| {
            let bound = self.parameter(name)?;
            Some(format!("{name} {bound}"))
        });
        Ok(given.collect::<Vec<_>>().join(", "))
    }

    /// What EXPLAIN may show beside roles.
    pub(super) fn anatomy_facts(&self) -> Vec<(&'static str, String)> {
        let method = self.parameter("method").unwrap_or(Method::Slppa.name());
        let mut facts = vec![("method", method.to_owned())];
        if !self.division().is_empty() {
            let tables = self
                .division()
                .iter()
                .map(|t| format!("[{}]", t.join(", ")));
            let tables: Vec<String> = tables.collect();
            facts.push(("division", format!("[{}]", tables.join(", "))));
        } else if let Ok(AnatomyRequest {
            sub_tables: SubTables::Number(tables),
            ..
        }) = self.anatomy()
        {
            facts.push(("tables", tables.to_string()));
        }
        facts
    }

    /// Checks what can be checked without the input.
    pub(super) fn validate_anatomy(&self) -> Result<()> {
        for name in self.parameters().map(|(name, _)| name) {
            if ANATOMY_ARGUMENTS.iter().all(|(known, _)| *known != name) {
                let names = ANATOMY_ARGUMENTS.iter().map(|(known, _)| *known);
                let nearest = error::did_you_mean(name, names);
                let message = format!("there is no argument '{name}'{nearest}");
                return Err(error::call(self.function(), message));
            }
        }
        let given = |argument: &str| match argument {
            "keep" | CATEGORIES => self.is_refused(argument),
            "domain" => !self.domains().is_empty(),
            "hierarchy" => !self.hierarchies().is_empty(),
            "algorithm" => self.given_algorithm().is_some(),
            "notation" => self.notation != Notation::default(),
            "contradictory" => self.contradictory != Contradictory::default(),
            _ => self.normalize,
        };
        if let Some((argument, reason)) = NOT_FOR_ANATOMY.iter().find(|(a, _)| given(a)) {
            return Err(error::argument(self.function(), argument, reason));
        }
        if self.null_sensitive == NullSensitive::Conservative {
            let message = "must be 'error' or 'drop_rows', not 'conservative': each individual has one sensitive value";
            return Err(error::argument(self.function(), "null_sensitive", message));
        }
        let reserved = [SUBTABLE, GID, TIMES];
        for (role, names) in [("qi", self.qi()), ("sensitive", self.sensitive())] {
            if let Some(name) = names.iter().find(|n| reserved.contains(&n.as_str())) {
                let message = format!(
                    "names column '{name}', the name of a published column; rename it in a subquery"
                );
                return Err(error::argument(self.function(), role, message));
            }
        }
        if self.given_block() == Some(BlockSize::Individuals(0)) {
            let message = "must be 'all' or a number of individuals of at least 1, not 0";
            return Err(error::argument(self.function(), "block", message));
        }
        if self.qi().is_empty() {
            // Said better where all roles are checked.
            return Ok(());
        }
        self.anatomy().map(drop)
    }
}

//! What can be said of a system without a call: data that other code reads instead of asking which system it is.

/// What sets a system apart, as data.
#[derive(Debug)]
pub(crate) struct SystemProperties {
    /// What it is called.
    pub name: &'static str,
    /// Whether an individual has one record only.
    pub one_record_each: bool,
    /// Whether quasi-identifiers are generalized, and so have a notation; else they are published as they are.
    pub generalizes: bool,
    /// Whether labels out of a hierarchy are published in the place of sensitive values.
    pub labels_sensitive_values: bool,
    /// Whether nothing is anonymized: the function shows how the columns would be divided.
    pub shows_division_only: bool,
    /// The groups that it forms; none if individuals who show the same are a class.
    pub groups: Option<Groups>,
    /// What it is told beside what all functions and its models are told, with a line of help.
    pub parameters: &'static [(&'static str, &'static str)],
    /// Arguments of other functions that it cannot use, with the reason.
    pub refused: &'static [(&'static str, &'static str)],
    /// Those of the facts of EXPLAIN that a manifest tells, too.
    pub told: &'static [&'static str],
    /// What of a release is compared with the input.
    pub compared: Compared,
}

/// Groups that are not those who show the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Groups {
    /// The column with the id of a group.
    pub id: &'static str,
    /// The rows that tell how many individuals a group has, as an SQL condition.
    pub rows: &'static str,
    /// How many these rows of a group tell, as SQL.
    pub individuals: &'static str,
}

impl Groups {
    /// SQL that gives the number of individuals of each group of a published relation.
    pub fn sizes(&self, published: &str) -> String {
        let Self {
            id,
            rows,
            individuals,
        } = self;
        format!("SELECT {individuals} AS individuals FROM {published} WHERE {rows} GROUP BY {id}")
    }
}

/// What of a release is compared with the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Whole records.
    Records,
    /// Quasi-identifiers, and labels with the values that they stand for.
    Labels,
    /// Quasi-identifiers, and values of buckets with those of their members.
    Buckets,
    /// Rows of sub-tables with the same columns of the input. Nobody can be found again in them.
    Tables,
}

//! SQL over the published files, for whatever type a quasi-identifier was published as.

use datafusion::arrow::datatypes::{DataType, Schema};

/// How a column was published.
enum Shape {
    /// A struct of `lo` and `hi`.
    Range,
    /// A list of values.
    Set,
    /// Anything else.
    Value,
}

struct Column {
    name: &'static str,
    heading: &'static str,
    shape: Shape,
}

/// The table `published`.
pub struct Published {
    qi: Vec<Column>,
}

impl Published {
    /// `qi` are pairs of column name and heading.
    pub fn new(qi: &[(&'static str, &'static str)], schema: &Schema) -> Self {
        let column = |&(name, heading): &(&'static str, &'static str)| {
            let shape = match schema.field_with_name(name).map(|field| field.data_type()) {
                Ok(DataType::Struct(_)) => Shape::Range,
                Ok(DataType::List(_) | DataType::LargeList(_) | DataType::ListView(_)) => {
                    Shape::Set
                }
                _ => Shape::Value,
            };
            Column {
                name,
                heading,
                shape,
            }
        };
        Self {
            qi: qi.iter().map(column).collect(),
        }
    }

    /// The view `readable`: quasi-identifiers as text.
    pub fn view(&self) -> String {
        let columns = self.each(", ", |column| {
            format!("{} AS {}", column.text(), column.heading)
        });
        format!("CREATE VIEW readable AS SELECT individual, {columns}, diagnosis FROM published")
    }

    /// Classes; individuals in the smallest, the median and the largest; all individuals and records.
    pub fn class_sizes(&self) -> String {
        let columns = self.each(", ", |column| column.heading.into());
        format!(
            "SELECT count(*), min(n), median(n), max(n), sum(n), sum(records) FROM (\
               SELECT count(DISTINCT individual) AS n, count(*) AS records \
               FROM readable GROUP BY {columns})"
        )
    }

    /// Some records of the class that holds a patient: that with an individual who has exactly the
    /// patient's diagnoses, and quasi-identifiers that cover the patient's. No rows if the patient was
    /// suppressed.
    pub fn class_of(&self, patient: &str) -> String {
        let columns = self.each(", ", |column| column.name.into());
        let covers = self.each(" AND ", Column::covers);
        self.class(&format!(
            "WHERE individual = (\
               SELECT r.individual FROM published r CROSS JOIN (\
                 SELECT {columns}, string_agg(diagnosis, ',' ORDER BY diagnosis) AS diagnoses \
                 FROM patients WHERE patient_id = '{patient}' GROUP BY {columns}) p \
               WHERE {covers} GROUP BY r.individual, p.diagnoses \
               HAVING string_agg(r.diagnosis, ',' ORDER BY r.diagnosis) = p.diagnoses \
               ORDER BY r.individual LIMIT 1)"
        ))
    }

    /// Some records of a class.
    pub fn any_class(&self) -> String {
        self.class("")
    }

    /// Two records of each individual in the class of the first individual that `choice` lets through.
    fn class(&self, choice: &str) -> String {
        let columns = self.each(", ", |column| column.heading.into());
        let qualified = self.each(", ", |column| format!("c.{}", column.heading));
        let shown = self.each(", ", |column| shortened(column.heading));
        format!(
            "SELECT left(CAST(individual AS VARCHAR), 8) || '…' AS individual, {shown}, diagnosis FROM (\
               SELECT r.individual, {qualified}, r.diagnosis, row_number() OVER \
                 (PARTITION BY r.individual ORDER BY r.diagnosis) AS nth \
               FROM readable r JOIN (\
                 SELECT {columns} FROM readable {choice} ORDER BY individual LIMIT 1) c \
               USING ({columns})) \
             WHERE nth <= 2 ORDER BY individual, diagnosis LIMIT {}",
            super::EXCERPT,
        )
    }

    fn each(&self, separator: &str, sql: impl Fn(&Column) -> String) -> String {
        self.qi.iter().map(sql).collect::<Vec<_>>().join(separator)
    }
}

impl Column {
    /// The published value as text, `*` if all of it was suppressed.
    fn text(&self) -> String {
        let name = self.name;
        let text = match self.shape {
            Shape::Range => format!(
                "CASE WHEN {name}['lo'] = {name}['hi'] THEN CAST({name}['lo'] AS VARCHAR) \
                 ELSE CAST({name}['lo'] AS VARCHAR) || '..' || CAST({name}['hi'] AS VARCHAR) END"
            ),
            Shape::Set => format!("array_to_string({name}, '|')"),
            Shape::Value => format!("CAST({name} AS VARCHAR)"),
        };
        format!("coalesce({text}, '*')")
    }

    /// Whether the published value of `r` covers the original one of `p`.
    fn covers(&self) -> String {
        let name = self.name;
        match self.shape {
            Shape::Range => {
                format!("(r.{name} IS NULL OR p.{name} BETWEEN r.{name}['lo'] AND r.{name}['hi'])")
            }
            Shape::Set => format!("(r.{name} IS NULL OR array_has(r.{name}, p.{name}))"),
            Shape::Value => "TRUE".into(),
        }
    }
}

/// Keeps a table of eight columns within the width of a screen.
fn shortened(heading: &str) -> String {
    format!(
        "CASE WHEN character_length({heading}) > 17 THEN left({heading}, 16) || '…' ELSE {heading} END \
         AS {heading}"
    )
}

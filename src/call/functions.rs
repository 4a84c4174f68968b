//! All table functions.

use std::sync::LazyLock;

use super::arguments::Function;
use super::{anonymize, hierarchy, publish, release, sample};
use crate::measure::sql;

/// All table functions of this crate: those that anonymize, those that measure, and their helpers.
pub static TABLE_FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let measuring = sql::functions();
    let helping = [
        hierarchy::FUNCTION,
        sample::FUNCTION,
        publish::FUNCTION,
        release::FUNCTION,
    ];
    anonymize::functions()
        .chain(measuring)
        .chain(helping)
        .collect()
});

/// The function of that name.
pub(super) fn named(name: &str) -> Option<&'static Function> {
    TABLE_FUNCTIONS
        .iter()
        .find(|function| function.name == name)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::call::arguments::{Argument, ArgumentKind, Written};
    use crate::call::source::SessionLoad;
    use crate::call::value::ArgumentValue;

    /// What a function needs: a list of its arguments, and a plan that takes them.
    static EXAMPLE: Function = Function {
        name: "example",
        help: "shows how functions are made",
        positional: 1,
        arguments: Cow::Borrowed(&[
            Argument::required("table", ArgumentKind::Relation, "any table"),
            Argument::optional("column", ArgumentKind::Column, "one of its columns"),
            Argument::optional("times", ArgumentKind::Count, "a number").or("1"),
            Argument::optional("forgotten", ArgumentKind::Flag, "nobody takes it").or("false"),
        ]),
        refused: &[("keep", "cannot be given: there is nothing to keep")],
        plan: |given| {
            given.column("column")?;
            given.count("times")?;
            given.relation("table")
        },
    };

    #[tokio::test(flavor = "multi_thread")]
    async fn faults_are_told_in_order() {
        let ctx = SessionContext::new();
        ctx.sql("CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
        let text = |text: &str| ArgumentValue::Text(text.to_owned());
        let said = |given: &[(&str, ArgumentValue)]| {
            let written = given.iter().map(|(name, value)| {
                let name = Some((*name).to_owned()).filter(|name| !name.is_empty());
                (name, Written::Value(value.clone()))
            });
            let called = EXAMPLE.call(written.collect(), &mut SessionLoad(&ctx.state()));
            called.err().map(|error| error.strip_backtrace())
        };
        let plan = "Error during planning: example: ";
        let wrong = || ("times", text("x"));
        let unknown = || ("tims", text("x"));
        let table = || ("", text("t"));
        let of = |reason: &str| Some(format!("{plan}{reason}"));
        assert_eq!(said(&[table()]), None);
        assert_eq!(said(&[("table", text("t"))]), None);
        let options = ArgumentValue::Map(vec![("column".to_owned(), text("a"))]);
        assert_eq!(said(&[table(), ("", options)]), None);
        let twice = [unknown(), wrong(), wrong()];
        assert_eq!(said(&twice), of("times is given twice"));
        let names = "(arguments: table, column, times, forgotten)";
        let unknown = said(&[wrong(), unknown()]);
        let nearest = format!("there is no argument 'tims'; did you mean 'times'? {names}");
        assert_eq!(unknown, of(&nearest));
        let refused = said(&[("keep", text("a"))]);
        assert_eq!(
            refused,
            of("keep cannot be given: there is nothing to keep")
        );
        let missing = said(&[wrong()]).unwrap();
        assert!(missing.contains("table is missing"), "{missing}");
        let wrong = said(&[table(), wrong()]);
        assert_eq!(
            wrong,
            of("times must be a whole number of at least 1, not 'x'")
        );
        let many = said(&[table(), table()]);
        assert_eq!(many, of("arguments after table have names: column => …"));
        let forgotten = said(&[table(), ("forgotten", ArgumentValue::Boolean(true))]);
        assert!(
            forgotten
                .unwrap()
                .contains("lists forgotten and does not read it")
        );
    }

    /// Else messages of the function would be withheld.
    #[test]
    fn every_function_has_a_name_that_messages_may_begin_with() {
        for function in TABLE_FUNCTIONS.iter() {
            let error = crate::error::data(function.name, "says this");
            let told = crate::error::input("another", error).strip_backtrace();
            assert!(told.ends_with(": says this"), "{told}");
        }
    }
}

//! Options of a command out of the arguments of the function that it calls.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use datafusion_anonymize::{
    Argument, ArgumentKind, ArgumentValue, DefaultValue, Function, TABLE_FUNCTIONS,
};

/// What the help of a command says of an argument, and which others it goes with.
#[derive(Debug)]
pub struct Shown {
    argument: &'static str,
    help: &'static str,
    placeholder: Option<&'static str>,
    requires: Option<&'static str>,
    conflicts: Option<&'static str>,
    unless: Option<&'static str>,
}

/// An argument with its help.
pub const fn shown(argument: &'static str, help: &'static str) -> Shown {
    Shown {
        argument,
        help,
        placeholder: None,
        requires: None,
        conflicts: None,
        unless: None,
    }
}

impl Shown {
    /// What stands for the value in the help.
    pub const fn placeholder(mut self, placeholder: &'static str) -> Self {
        self.placeholder = Some(placeholder);
        self
    }

    /// It needs another argument.
    pub const fn requires(mut self, other: &'static str) -> Self {
        self.requires = Some(other);
        self
    }

    /// It cannot stand beside another argument.
    pub const fn conflicts(mut self, other: &'static str) -> Self {
        self.conflicts = Some(other);
        self
    }

    /// It must be given unless another one is.
    pub const fn unless(mut self, other: &'static str) -> Self {
        self.unless = Some(other);
        self
    }
}

/// The function that a command calls, and how its arguments are shown.
#[derive(Debug)]
pub struct Options {
    pub function: &'static str,
    /// In the order of the help. An argument that is not here comes after these, with the help of the function.
    pub shown: &'static [Shown],
    /// Arguments that are no options.
    pub left_out: &'static [&'static str],
}

impl Options {
    fn function(&self) -> &'static Function {
        let mut all = TABLE_FUNCTIONS.iter();
        let found = all.find(|function| function.name == self.function);
        found.unwrap_or(&TABLE_FUNCTIONS[0])
    }

    /// The arguments in the order of the help.
    fn arguments(&self) -> Vec<&'static Argument> {
        let place = |argument: &&Argument| {
            let found = self.shown.iter().position(|s| s.argument == argument.name);
            found.unwrap_or(usize::MAX)
        };
        let all = self.function().arguments.iter();
        let mut all: Vec<_> = all.filter(|a| !self.left_out.contains(&a.name)).collect();
        all.sort_by_key(place);
        all
    }

    /// Adds them to a command.
    pub fn add_to(&self, command: Command) -> Command {
        command.args(self.arguments().into_iter().map(|argument| {
            let shown = self.shown.iter().find(|s| s.argument == argument.name);
            let fallback = shown_by_itself(argument);
            option(
                argument,
                self.is_positional(argument),
                shown.unwrap_or(&fallback),
            )
        }))
    }

    fn is_positional(&self, argument: &Argument) -> bool {
        let first = self.function().positional();
        first.iter().any(|a| a.name == argument.name)
    }

    /// Reads them.
    pub fn read(&self, matches: &ArgMatches) -> Vec<(&'static str, ArgumentValue)> {
        let arguments = self.arguments().into_iter();
        arguments
            .filter_map(|argument| Some((argument.name, read(argument, matches)?)))
            .collect()
    }
}

const fn shown_by_itself(argument: &'static Argument) -> Shown {
    shown(argument.name, argument.help)
}

fn option(argument: &'static Argument, positional: bool, shown: &Shown) -> Arg {
    let placeholder = shown.placeholder.unwrap_or(match argument.kind {
        ArgumentKind::Relation => "FILE",
        ArgumentKind::Column => "COLUMN",
        ArgumentKind::Columns => "COLUMNS",
        ArgumentKind::Share => "SHARE",
        ArgumentKind::Hierarchies => "COLUMN=FILE",
        ArgumentKind::Domains => "COLUMN=VALUES",
        _ => "VALUE",
    });
    let mut arg = Arg::new(argument.name)
        .help(shown.help)
        .required(argument.default == DefaultValue::Required);
    if !positional {
        // The parser keeps names for as long as the program runs, and is made once.
        arg = arg.long(&*argument.name.replace('_', "-").leak());
    }
    arg = match argument.kind {
        ArgumentKind::Flag => return relations(arg.action(ArgAction::SetTrue), shown),
        ArgumentKind::Columns => {
            let arg = arg.action(ArgAction::Append);
            arg.value_delimiter(',').num_args(1)
        }
        ArgumentKind::Hierarchies | ArgumentKind::Domains => arg.action(ArgAction::Append),
        _ => arg,
    };
    relations(arg, shown)
        .value_name(placeholder)
        .value_parser(parser(argument.kind))
}

fn relations(mut arg: Arg, shown: &Shown) -> Arg {
    if let Some(other) = shown.requires {
        arg = arg.requires(other);
    }
    if let Some(other) = shown.conflicts {
        arg = arg.conflicts_with(other);
    }
    if let Some(other) = shown.unless {
        arg = arg.required_unless_present(other);
    }
    arg
}

fn parser(kind: ArgumentKind) -> ValueParser {
    let parse: fn(&str) -> Result<ArgumentValue, String> = match kind {
        ArgumentKind::Count => |text| match text.parse::<u64>() {
            Ok(number) => Ok(ArgumentValue::Number(number.to_string())),
            Err(_) => Err("expected a whole number".to_owned()),
        },
        ArgumentKind::Decimal => |text| match text.parse::<f64>() {
            Ok(number) => Ok(ArgumentValue::Number(number.to_string())),
            Err(_) => Err("expected a decimal number".to_owned()),
        },
        ArgumentKind::Share => share,
        ArgumentKind::Hierarchies => hierarchy,
        ArgumentKind::Domains => domain,
        ArgumentKind::Categories => |text| Ok(categories(text)),
        _ => |text| Ok(ArgumentValue::Text(text.to_owned())),
    };
    ValueParser::new(parse)
}

fn read(argument: &Argument, matches: &ArgMatches) -> Option<ArgumentValue> {
    if argument.kind == ArgumentKind::Flag {
        let given = matches.get_flag(argument.name);
        return given.then_some(ArgumentValue::Boolean(true));
    }
    let values = matches.get_many::<ArgumentValue>(argument.name)?;
    let mut values: Vec<ArgumentValue> = values.cloned().collect();
    match argument.kind {
        ArgumentKind::Columns => Some(ArgumentValue::List(values)),
        ArgumentKind::Hierarchies | ArgumentKind::Domains => {
            let entries = values.into_iter().filter_map(|value| match value {
                ArgumentValue::Map(entries) => Some(entries),
                _ => None,
            });
            Some(ArgumentValue::Map(entries.flatten().collect()))
        }
        _ => values.pop(),
    }
}

fn text(text: &str) -> ArgumentValue {
    ArgumentValue::Text(text.trim().to_owned())
}

/// Reads `postcode=postcodes.csv`.
fn hierarchy(written: &str) -> Result<ArgumentValue, String> {
    let (column, file) = written
        .split_once('=')
        .ok_or("expected a column and a file, such as postcode=postcodes.csv")?;
    let file = ArgumentValue::Text(file.to_owned());
    Ok(ArgumentValue::Map(vec![(column.to_owned(), file)]))
}

/// Reads `age=0,120`.
fn domain(written: &str) -> Result<ArgumentValue, String> {
    let expected = "expected a column and its ends or values, such as age=0,120 or sex=F,M";
    let (column, values) = written.split_once('=').ok_or(expected)?;
    if column.trim().is_empty() || values.split(',').any(|value| value.trim().is_empty()) {
        return Err(expected.into());
    }
    let values = ArgumentValue::List(values.split(',').map(text).collect());
    Ok(ArgumentValue::Map(vec![(column.trim().to_owned(), values)]))
}

/// Reads a share, and leaves it as it is written: shares are compared exactly.
fn share(text: &str) -> Result<ArgumentValue, String> {
    let decimal = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    match text.parse::<f64>() {
        Ok(share) if decimal && share > 0.0 && share <= 1.0 => {
            Ok(ArgumentValue::Number(text.to_owned()))
        }
        _ => Err("expected a decimal above 0 and at most 1, such as 0.4".into()),
    }
}

/// Reads `a,b;c` as lists, and anything without a semicolon as the path of a file: one category says nothing.
fn categories(written: &str) -> ArgumentValue {
    if !written.contains(';') {
        return ArgumentValue::Text(written.to_owned());
    }
    let category = |values: &str| ArgumentValue::List(values.split(',').map(text).collect());
    ArgumentValue::List(written.split(';').map(category).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> ArgumentValue {
        ArgumentValue::List(texts.iter().map(|t| text(t)).collect())
    }

    #[test]
    fn categories_are_lists_of_values_or_a_file() {
        let lists = ArgumentValue::List(vec![list(&["HIV", "Cancer"]), list(&["Flu"])]);
        assert_eq!(categories("HIV, Cancer;Flu"), lists);
        assert_eq!(categories("categories.csv"), text("categories.csv"));
    }

    #[test]
    fn domains_and_shares_are_read() {
        let domains = vec![("sex".to_owned(), list(&["F", "M"]))];
        assert_eq!(domain("sex = F, M"), Ok(ArgumentValue::Map(domains)));
        for wrong in ["age", "=1", "age=", "age=1,,2"] {
            assert!(domain(wrong).is_err(), "{wrong}");
        }
        assert_eq!(share("0.40"), Ok(ArgumentValue::Number("0.40".to_owned())));
        for wrong in ["0", "1.1", "-0.5", "1e-1", "nan", "", "."] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn whatever_help_names_is_an_argument() {
        for options in [&crate::audit::OPTIONS, &crate::compare::OPTIONS] {
            let function = options.function();
            assert_eq!(function.name, options.function);
            let named = options.shown.iter().map(|shown| shown.argument);
            for name in named.chain(options.left_out.iter().copied()) {
                assert!(function.argument(name).is_some(), "{name}");
            }
        }
    }

    /// An argument that is added to a function becomes an option with its own line of help.
    #[test]
    fn an_argument_without_a_text_is_an_option() {
        let options = Options {
            shown: &[],
            left_out: &[],
            ..crate::compare::OPTIONS
        };
        let command = options.add_to(Command::new("compare"));
        let given = ["compare", "a", "b", "--qi", "age,sex", "--published-only"];
        let read = options.read(&command.try_get_matches_from(given).unwrap());
        let read: std::collections::BTreeMap<_, _> = read.into_iter().collect();
        assert_eq!(read["original"], text("a"));
        assert_eq!(read["qi"], list(&["age", "sex"]));
        assert_eq!(read["published_only"], ArgumentValue::Boolean(true));
    }
}

//! From roles to the input in canonical form: checks a spec against the input's schema.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, cast, lit};

use super::layout::{INDIVIDUAL, flag_name};
use crate::error;
use crate::spec::{GivenDomain, Notation, Secrecy, Spec};
use crate::table::coding::{Kind, Ladder, Levels};

/// The expressions that turn the input into canonical form, after checking every role against its schema.
pub(crate) fn canonical_projection(spec: &Spec, input: &DFSchema) -> Result<Vec<Expr>> {
    let function = spec.function();
    let missing = |role: &str, help: &str| {
        Err(error::argument(
            function,
            role,
            format!("is missing: {help}"),
        ))
    };
    if spec.id().is_none() && !spec.one_row_per_individual() {
        return missing(
            "id",
            "name the column that tells individuals apart, or write one_row_per_individual => true",
        );
    }
    if spec.sensitive().is_empty() && spec.semi_sensitive().is_empty() {
        return missing("sensitive", "name the column to protect");
    }
    if spec.qi().is_empty() {
        return missing("qi", "name the columns an attacker may know");
    }

    let mut roles: Vec<(&str, &str)> = spec.id().map(|id| ("id", id)).into_iter().collect();
    roles.extend(spec.qi().iter().map(|c| ("qi", c.as_str())));
    roles.extend(spec.sensitive().iter().map(|c| ("sensitive", c.as_str())));
    roles.extend(spec.keep().iter().map(|c| ("keep", c.as_str())));

    let mut projection = Vec::with_capacity(roles.len() + 1);
    if spec.id().is_none() {
        // The place of the id; what tells individuals apart is the content of their records.
        projection.push(lit(ScalarValue::UInt8(Some(0))).alias("__id"));
    }
    for (i, &(role, name)) in roles.iter().enumerate() {
        if let Some((other, _)) = roles[..i].iter().find(|(_, n)| *n == name) {
            return Err(error::argument(
                function,
                role,
                format!("names column '{name}', which already has the role {other}"),
            ));
        }
        if name == INDIVIDUAL && role != "id" {
            return Err(error::argument(
                function,
                role,
                format!(
                    "names column '{INDIVIDUAL}', the name under which the pseudonym is published; rename it in a subquery"
                ),
            ));
        }
        let (column, from) = find_column(function, role, name, input)?;
        let to = plain_type(from).filter(|t| role != "qi" || qi_type_allowed(t));
        let Some(to) = to else {
            return Err(error::argument(
                function,
                role,
                format!("cannot be column '{name}' of type {from}; allowed are {ALLOWED}"),
            ));
        };
        // Bytes may be texts: files that do not say so are read as binary.
        let bytes = matches!(to, DataType::Binary | DataType::FixedSizeBinary(_));
        if spec.normalize && role == "sensitive" && bytes {
            let message = format!(
                "cannot be used for column '{name}' of type {from}; cast it to text in a subquery"
            );
            return Err(error::argument(function, "normalize", message));
        }
        let to = match spec.hierarchies().get(name) {
            Some(levels) if ["qi", "sensitive"].contains(&role) => {
                if let Err(reason) = Ladder::try_new(levels, &to) {
                    let message = format!("of '{name}': {reason}");
                    return Err(error::argument(function, "hierarchy", message));
                }
                match levels {
                    // Labels are texts.
                    Levels::Tree(_) | Levels::Mask(_) => DataType::Utf8,
                    Levels::Bins(_) | Levels::Dates(_) => to,
                }
            }
            _ => to,
        };
        if role == "qi" {
            kind_of(spec, name, &to)?;
        }
        let expr = Expr::Column(column);
        let expr = if *from == to { expr } else { cast(expr, to) };
        // No output column has the name of an input column: rules of the optimizer that route expressions by name
        // find nothing below our node.
        projection.push(expr.alias(format!("__{role}_{name}")));
    }
    for (name, secrecy) in spec.semi_sensitive() {
        let flag = match secrecy {
            Secrecy::All(all) => lit(*all),
            Secrecy::Column(flag) | Secrecy::Written(flag) => {
                flags(spec, name, flag, &roles, input)?
            }
        };
        projection.push(flag.alias(flag_name(name)));
    }
    spec.entry()?.system.check_names(spec)?;
    check_side_roles(spec)?;
    Ok(projection)
}

/// The flags of a semi-sensitive column: whoever says nothing keeps the value secret.
fn flags(
    spec: &Spec,
    name: &str,
    flag: &str,
    roles: &[(&str, &str)],
    input: &DFSchema,
) -> Result<Expr> {
    let argument = "semi_sensitive";
    let (column, data_type) = find_column(spec.function(), argument, flag, input)?;
    let refuse = |message: String| Err(error::argument(spec.function(), argument, message));
    if let Some((role, _)) = roles.iter().find(|(_, n)| *n == flag) {
        return refuse(format!(
            "of '{name}' is column '{flag}', which has the role {role}; flags are not published"
        ));
    }
    let expr = Expr::Column(column);
    let expr = match data_type {
        DataType::Boolean => expr,
        DataType::Null => lit(true),
        other if plain_type(other) == Some(DataType::Boolean) => cast(expr, DataType::Boolean),
        other => {
            return refuse(format!(
                "of '{name}' is column '{flag}' of type {other}; a flag is true, false or NULL"
            ));
        }
    };
    Ok(coalesce(vec![expr, lit(true)]))
}

/// A column of the input in the type in which its hierarchy is looked up, and the levels above its values.
pub(crate) fn check_levels(
    function: &str,
    argument: &str,
    name: &str,
    input: &DFSchema,
    levels: &Levels,
) -> Result<(Expr, usize)> {
    let (column, from) = find_column(function, "column", name, input)?;
    let refuse = |reason: String| error::argument(function, argument, reason);
    let plain = plain_type(from).filter(qi_type_allowed);
    let plain =
        plain.ok_or_else(|| refuse(format!("cannot be for type {from}; allowed are {ALLOWED}")))?;
    let ladder = Ladder::try_new(levels, &plain).map_err(refuse)?;
    let expr = Expr::Column(column);
    let expr = if *from == plain {
        expr
    } else {
        cast(expr, plain)
    };
    Ok((expr, ladder.height()))
}

const ALLOWED: &str = "integers, floats, decimals, dates, times, booleans and strings";

/// A column of the input, with its type.
pub(crate) fn find_column<'a>(
    function: &str,
    role: &str,
    name: &str,
    input: &'a DFSchema,
) -> Result<(Column, &'a DataType)> {
    let mut hits = input.iter().filter(|(_, field)| field.name() == name);
    match (hits.next(), hits.next()) {
        (Some((qualifier, field)), None) => {
            Ok((Column::new(qualifier.cloned(), name), field.data_type()))
        }
        (Some(_), Some(_)) => Err(error::argument(
            function,
            role,
            format!(
                "names column '{name}', which the input has more than once; rename one in a subquery"
            ),
        )),
        (None, _) => {
            let names: Vec<_> = input.fields().iter().map(|f| f.name().as_str()).collect();
            let nearest = error::did_you_mean(name, names.iter().copied());
            Err(error::argument(
                function,
                role,
                format!(
                    "names column '{name}', which the input does not have{nearest} (columns: {})",
                    names.join(", ")
                ),
            ))
        }
    }
}

/// `categorical`, `domain` and `hierarchy` speak of quasi-identifiers only.
fn check_side_roles(spec: &Spec) -> Result<()> {
    let function = spec.function();
    let categorical = spec.categorical().iter().map(|c| ("categorical", c));
    let domain = spec.domains().keys().map(|c| ("domain", c));
    let hierarchy = spec.hierarchies().keys().map(|c| ("hierarchy", c));
    let labels = spec.properties().labels_sensitive_values;
    let labelled = |column: &String| labels && spec.sensitive().contains(column);
    for (argument, column) in categorical.chain(domain).chain(hierarchy) {
        let allowed = spec.qi().contains(column) || (argument == "hierarchy" && labelled(column));
        if !allowed {
            let nearest = error::did_you_mean(column, spec.qi().iter().map(String::as_str));
            return Err(error::argument(
                function,
                argument,
                format!("names column '{column}', which is not a quasi-identifier{nearest}"),
            ));
        }
    }
    Ok(())
}

/// How a quasi-identifier of this type is generalized.
pub(crate) fn kind_of(spec: &Spec, name: &str, data_type: &DataType) -> Result<Kind> {
    let kind = match spec.hierarchies().get(name) {
        // Leaves of a given tree are numbered.
        Some(Levels::Tree(_)) => Kind::Integer,
        Some(Levels::Mask(_)) => Kind::Masked,
        None if spec.is_categorical(name) => Kind::Categorical,
        _ => match data_type {
            DataType::Utf8 | DataType::Utf8View | DataType::Boolean => Kind::Categorical,
            t if t.is_floating() => Kind::Real,
            _ => Kind::Integer,
        },
    };
    let given = spec.hierarchies().get(name);
    if matches!(given, Some(Levels::Tree(_) | Levels::Mask(_))) && spec.domains().contains_key(name)
    {
        let message = format!("is given for '{name}', whose hierarchy tells its values already");
        return Err(error::argument(spec.function(), "domain", message));
    }
    if given.is_none()
        && spec.notation == Notation::Text
        && matches!(data_type, DataType::Duration(_))
    {
        let message = format!(
            "cannot be 'text' for '{name}', a span of time, whose text could not be read again; leave it out, or count \
             seconds in a subquery"
        );
        return Err(error::argument(spec.function(), "notation", message));
    }
    match (spec.domains().get(name), kind) {
        (Some(GivenDomain::Values(values)), Kind::Integer | Kind::Real) if values.len() != 2 => {
            Err(error::argument(
                spec.function(),
                "domain",
                format!(
                    "gives a list of values for '{name}', which is numeric; give [smallest, largest]"
                ),
            ))
        }
        _ => Ok(kind),
    }
}

/// The type under which the engine works on a column: one string type, no dictionaries, no views.
pub(super) fn plain_type(data_type: &DataType) -> Option<DataType> {
    use DataType::*;
    Some(match data_type {
        Dictionary(_, value) => plain_type(value)?,
        RunEndEncoded(_, value) => plain_type(value.data_type())?,
        Utf8 | LargeUtf8 | Utf8View => Utf8,
        Binary | LargeBinary | BinaryView => Binary,
        Float16 => Float32,
        Date64 => Timestamp(TimeUnit::Millisecond, None),
        t if t.is_primitive() && !matches!(t, Interval(_)) => t.clone(),
        t @ (Boolean | FixedSizeBinary(_)) => t.clone(),
        _ => return None,
    })
}

fn qi_type_allowed(plain: &DataType) -> bool {
    use DataType::*;
    !matches!(plain, Binary | FixedSizeBinary(_) | Decimal256(..))
}

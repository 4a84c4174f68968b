//! Domains that the publisher states.

use std::collections::HashSet;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};

use super::{Layout, given_trees};
use crate::error;
use crate::spec::{GivenDomain, Spec};
use crate::table::coding::{Domain, Key, Keys, canonical};

/// A stated domain in the column's own type.
#[derive(Debug)]
pub(crate) struct StatedDomain {
    pub domain: Domain,
    /// All values of a categorical column.
    values: HashSet<Vec<u8>>,
}

impl StatedDomain {
    /// Whether a value lies in the domain. Missing values do.
    pub fn contains(&self, keys: &Keys, at: usize) -> bool {
        match keys {
            Keys::Bytes(names) => names
                .get(at)
                .is_none_or(|row| self.values.contains(row.data())),
            _ => self.domain.contains(&keys.key(at)),
        }
    }
}

/// The stated domain of each quasi-identifier that has one.
pub(crate) fn stated_domains(spec: &Spec, layout: &Layout) -> Result<Vec<Option<StatedDomain>>> {
    let trees = given_trees(spec);
    let column = |c: usize| {
        let name = layout.qi_name(c);
        if let Some(taxonomy) = trees[c] {
            return Ok(Some(StatedDomain {
                domain: Domain::Integer(0, i128::from(taxonomy.tree().leaves()) - 1),
                values: HashSet::new(),
            }));
        }
        let given = spec.domains().get(name);
        given
            .map(|given| stated(spec, layout, c, given))
            .transpose()
    };
    (0..layout.qi_count()).map(column).collect()
}

fn stated(
    spec: &Spec,
    layout: &Layout,
    column: usize,
    given: &GivenDomain,
) -> Result<StatedDomain> {
    let name = layout.qi_name(column);
    let refuse = |message: String| error::argument(spec.function(), "domain", message);
    let texts: Vec<&String> = match given {
        GivenDomain::Range(lo, hi) => vec![lo, hi],
        GivenDomain::Values(values) => values.iter().collect(),
    };
    let array = parse(&texts, layout.qi_type(column)).ok_or_else(|| {
        let wanted = layout.qi_type(column);
        refuse(format!(
            "of '{name}' has an entry that is not of the column's type {wanted}"
        ))
    })?;
    let keys = Keys::try_new(&canonical(&array), layout.kinds[column])?;
    let range = || refuse(format!("of '{name}' must be [smallest, largest]"));
    let mut values = HashSet::new();
    let domain = match &keys {
        // Of a categorical column, [a, b] are two values; of a numeric one, smallest and largest.
        Keys::Bytes(names) => {
            values.extend(names.rows.iter().map(|row| row.data().to_vec()));
            Domain::Categories(values.len() as u64)
        }
        _ => match (keys.key(0), keys.key(1)) {
            (Key::Integer(lo), Key::Integer(hi)) if lo <= hi => Domain::Integer(lo, hi),
            (Key::Real(lo), Key::Real(hi)) if lo <= hi && (hi - lo).is_finite() => {
                Domain::Real(lo, hi)
            }
            _ => return Err(range()),
        },
    };
    Ok(StatedDomain { domain, values })
}

/// The texts as values of a type; `None` if one is not.
fn parse(texts: &[&String], data_type: &DataType) -> Option<ArrayRef> {
    let scalar = |text: &&String| ScalarValue::try_from_string((*text).clone(), data_type).ok();
    let scalars: Option<Vec<_>> = texts.iter().map(scalar).collect();
    ScalarValue::iter_to_array(scalars?)
        .ok()
        .filter(|array| array.null_count() == 0)
}

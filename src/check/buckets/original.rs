//! Columns that may not be published.

use super::LocalViolation;

/// Checks that every published column has a role and none is a flag: `published` are the names of the release, `roles`
/// those that may be in it, `flags` those that must not.
///
/// # Errors
///
/// [`LocalViolation::Columns`] with their number.
pub fn flags_absent(
    published: &[&str],
    roles: &[&str],
    flags: &[&str],
) -> Result<(), LocalViolation> {
    let stray = |name: &&&str| flags.contains(*name) || !roles.contains(*name);
    match published.iter().filter(stray).count() {
        0 => Ok(()),
        columns => Err(LocalViolation::Columns { columns }),
    }
}

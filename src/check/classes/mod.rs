//! Classes and their models, decided from what was published.

mod published;
mod reasoning;
mod requirement;
mod sensitivity;
mod verdict;

pub use published::{Class, Published};
pub(crate) use published::{NULL, Tally};
pub use reasoning::{Answer, Minimum, eir_diverse, min_hitting_set};
pub use requirement::{Requirement, Shortfall};
#[cfg(test)]
pub(crate) use sensitivity::{Attribute, Records, by_class, individuals, shown};
pub use sensitivity::{Listed, SensitiveColumn, SensitiveTable, Sensitivity, check_sensitivity};
pub use verdict::{diversity, verify};

//! Classes and their models, decided from what was published.

mod published;
mod reasoning;
mod requirement;
mod sensitivity;
mod verdict;

pub use published::{Class, ShownClasses};
pub(crate) use published::{NULL, Tally};
pub use reasoning::{Answer, Minimum, eir_diverse, min_hitting_set};
pub use requirement::{ClassRequirement, Shortfall};
pub use sensitivity::{
    Listed, SensitiveColumn, SensitiveTable, Sensitivity, SensitivityAttained, check_sensitivity,
};
#[cfg(test)]
pub(crate) use sensitivity::{Records, ShownAttribute, by_class, individuals, shown};
pub use verdict::{diversity, verify};

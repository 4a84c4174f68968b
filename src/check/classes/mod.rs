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
pub use sensitivity::{
    Attribute, Listed, Records, SensitiveColumn, SensitiveTable, Sensitivity, SensitivityAttained,
    SensitivityShortfall, SensitivityViolation, check_sensitivity,
};
pub(crate) use sensitivity::{by_class, individuals, shown};
pub use verdict::{Attained, Violation, diversity, verify};

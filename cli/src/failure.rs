//! The gate that all messages pass before somebody can read them: none shows a value of the data, or one that came from the
//! environment by `${NAME}`.

use std::fmt;
use std::io::{Write, stderr};
use std::panic;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion_anonymize::without_values;

use crate::secrets::hide;

/// Why a command ended without doing its work; told by [`told`].
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Work that was done and misses a level that was required of it. It has an exit code of its own.
#[derive(Debug)]
pub struct LevelMissed(pub String);

impl LevelMissed {
    /// The exit code.
    pub const CODE: u8 = 3;
}

impl fmt::Display for LevelMissed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LevelMissed {}

/// What is told of a failure.
pub fn told(failure: Failure) -> String {
    let failure = match failure.downcast::<DataFusionError>() {
        Ok(error) => return of_engine(*error),
        Err(other) => other,
    };
    match failure.downcast::<ArrowError>() {
        Ok(error) => of_engine(DataFusionError::from(*error)),
        Err(other) => hide(&other.to_string()),
    }
}

/// What is told of an error of the engine.
pub fn of_engine(error: DataFusionError) -> String {
    hide(&without_values(error).strip_backtrace())
}

/// From now on, a panic tells where it is, and not what it says: that may show values of the data.
pub fn mask_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(|place| format!(" at {place}"));
        let place = place.unwrap_or_default();
        // Nobody is left to tell if this fails.
        let _ = writeln!(
            stderr(),
            "error: there is a mistake in the program{place}; what it says may show values of the data and is withheld: please \
             report the place and what you did"
        );
    }));
}

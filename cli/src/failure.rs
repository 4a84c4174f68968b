//! The gate that all messages pass before somebody can read them: none shows a value of the data, or one that came from the
//! environment by `${NAME}`.

use std::io::{Write, stderr};
use std::panic::{self, AssertUnwindSafe};
use std::sync::OnceLock;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion_anonymize::without_values;
use futures::FutureExt;

use crate::secrets::hide;

/// Why a command ended without doing its work; told by [`told`].
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

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

/// Where a reader of files has panicked.
static BROKEN_READER: OnceLock<String> = OnceLock::new();

/// Crates that read files. Where one of them panics, the file is broken, and the reader should have said so.
const READERS: [&str; 5] = [
    "parquet-",
    "arrow-csv-",
    "arrow-json-",
    "arrow-ipc-",
    "arrow-avro-",
];

/// From now on, a panic tells where it is, and not what it says: that may show values of the data.
///
/// Nothing is told of a reader of files yet: its panic ends the work, and is told then.
pub fn mask_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        let place = place.as_deref().map(in_crate);
        if let Some(place) = place.filter(|p| READERS.iter().any(|crates| p.starts_with(crates))) {
            // The first is told.
            let _ = BROKEN_READER.set(place.to_owned());
            return;
        }
        let place = place.map(|place| format!(" at {place}"));
        let place = place.unwrap_or_default();
        // Nobody is left to tell if this fails.
        let _ = writeln!(
            stderr(),
            "error: there is a mistake in the program{place}; what it says may show values of the data and is withheld: please \
             report the place and what you did"
        );
    }));
}

/// Does the work. A panic of a reader of files is a failure; any other goes on.
pub async fn without_panics_of_readers(
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|panicked| {
            let Some(place) = BROKEN_READER.get() else {
                panic::resume_unwind(panicked);
            };
            Err(
                format!("the input has a file that cannot be decoded: its reader fails at {place}")
                    .into(),
            )
        })
}

/// A place in a crate, without the folder that the crate is in.
fn in_crate(place: &str) -> &str {
    match place.split_once("/registry/src/") {
        Some((_, place)) => place.split_once('/').map_or(place, |(_, place)| place),
        None => place,
    }
}

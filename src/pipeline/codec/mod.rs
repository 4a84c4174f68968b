//! Sending plans to other machines: every node as bytes and back.

mod logical;
mod physical;

pub use logical::AnonymizeLogicalCodec;
pub use physical::AnonymizePhysicalCodec;

use datafusion::common::{Result, internal_datafusion_err};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What our bytes begin with; others are left to the wrapped codec.
const MAGIC: &[u8] = b"datafusion-anonymize/1\n";

fn encode(message: &impl Serialize, buf: &mut Vec<u8>) -> Result<()> {
    buf.extend_from_slice(MAGIC);
    serde_json::to_writer(buf, message)
        .map_err(|_| internal_datafusion_err!("a node of datafusion-anonymize cannot be encoded"))
}

/// The message in these bytes, if they are ours.
fn decode<T: DeserializeOwned>(buf: &[u8]) -> Result<Option<T>> {
    let Some(message) = buf.strip_prefix(MAGIC) else {
        return Ok(None);
    };
    serde_json::from_slice(message)
        .map(Some)
        .map_err(|_| internal_datafusion_err!("a node of datafusion-anonymize cannot be decoded"))
}

//! Anonymization for users of DataFrames.

use datafusion::common::Result;
use datafusion::dataframe::DataFrame;

use super::AnonymizeNode;
use crate::spec::Spec;

/// Anonymizes a DataFrame. The context it comes from must know this extension, see
/// [`register_all`](crate::register_all).
///
/// ```
/// use datafusion::prelude::*;
/// use datafusion_anonymize::{Spec, anonymize, register_all};
///
/// # #[tokio::main(flavor = "multi_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// register_all(&ctx)?;
/// let patients = ctx
///     .sql("SELECT * FROM sample_patients(individuals => 200, seed => 1)")
///     .await?;
/// let spec = Spec::new("anonymize_eir")
///     .with_id("patient_id")
///     .with_qi(["sex", "birth_year"])
///     .with_sensitive(["diagnosis"])
///     .with_parameter("l", 3);
/// let published = anonymize(patients, spec)?;
/// assert!(published.count().await? > 0);
/// # Ok(())
/// # }
/// ```
pub fn anonymize(frame: DataFrame, spec: Spec) -> Result<DataFrame> {
    let (state, plan) = frame.into_parts();
    let plan = AnonymizeNode::plan(spec, plan)?;
    Ok(DataFrame::new(state, plan))
}

//! Operators as bytes.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::{Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{
    DefaultPhysicalExtensionCodec, PhysicalExtensionCodec, PhysicalProtoConverterExtension,
};
use serde::{Deserialize, Serialize};

use super::{decode, encode};
use crate::engine::{BlockPartitioning, OrderExec};
use crate::measure::{
    ClassesSpec, CollapseSpec, CompareSpec, CoverSpec, GatherSpec, LossSpec, Report,
};
use crate::pipeline::operator::{
    AnonymizeExec, BlockExec, ClassesExec, CollapseExec, CompareExec, CoverExec, DivisionExec,
    GatherExec, IndividualsExec, LossExec, MaskErrorsExec, ProfileExec, PseudonymizeExec,
    ReportExec,
};
use crate::spec::Spec;
use crate::system::Layout;

/// Encodes the operators of this crate and leaves everything else to another codec.
#[derive(Debug)]
pub struct AnonymizePhysicalCodec {
    inner: Arc<dyn PhysicalExtensionCodec>,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Anonymize(Box<AnonymizeMessage>),
    Classes(ClassesSpec),
    Loss(LossSpec),
    Report(Report, String),
    Cover(CoverSpec),
    Collapse(CollapseSpec),
    Compare(CompareSpec),
    Gather(GatherSpec),
    /// The function in whose name errors are told, and the files that are read.
    MaskErrors(String, Vec<String>),
    /// Positions of the columns that it sorts by.
    Order(Vec<usize>),
}

#[derive(Serialize, Deserialize)]
struct AnonymizeMessage {
    operator: Operator,
    spec: Spec,
    /// The schema from which the layout is read, as an Arrow stream without batches.
    canonical: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Operator {
    /// With the number of partitions among which blocks are dealt out.
    Anonymize(usize),
    Block,
    Division,
    /// With the number of partitions among which blocks are dealt out.
    Individuals(usize),
    Profile,
    Pseudonymize,
    PseudonymizeForProfile,
}

impl AnonymizePhysicalCodec {
    /// Wraps the codec of an engine, for example Ballista's.
    pub fn new(inner: Arc<dyn PhysicalExtensionCodec>) -> Self {
        Self { inner }
    }
}

impl Default for AnonymizePhysicalCodec {
    fn default() -> Self {
        Self::new(Arc::new(DefaultPhysicalExtensionCodec {}))
    }
}

impl PhysicalExtensionCodec for AnonymizePhysicalCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(message) = decode::<Message>(buf)? else {
            return self.inner.try_decode(buf, inputs, ctx, proto_converter);
        };
        let message = match message {
            Message::Anonymize(message) => message,
            Message::Loss(spec) => {
                return Ok(Arc::new(LossExec::try_new(
                    Arc::new(spec),
                    inputs.to_vec(),
                )?));
            }
            Message::Cover(spec) => {
                return Ok(Arc::new(CoverExec::try_new(
                    Arc::new(spec),
                    inputs.to_vec(),
                )?));
            }
            Message::Collapse(spec) => {
                let [records] = inputs else {
                    return internal_err!("Collapse has one input");
                };
                return Ok(Arc::new(CollapseExec::try_new(
                    Arc::new(spec),
                    Arc::clone(records),
                )?));
            }
            Message::Gather(spec) => {
                let [records] = inputs else {
                    return internal_err!("Gather has one input");
                };
                return Ok(Arc::new(GatherExec::try_new(
                    Arc::new(spec),
                    Arc::clone(records),
                )?));
            }
            Message::Compare(spec) => {
                return Ok(Arc::new(CompareExec::try_new(
                    Arc::new(spec),
                    inputs.to_vec(),
                )?));
            }
            Message::Report(report, function) => {
                let [figures] = inputs else {
                    return internal_err!("Report has one input");
                };
                let report = Arc::new(report);
                return Ok(Arc::new(ReportExec::new(
                    report,
                    function,
                    Arc::clone(figures),
                )));
            }
            Message::MaskErrors(function, files) => {
                let [input] = inputs else {
                    return internal_err!("MaskErrors has one input");
                };
                let input = Arc::clone(input);
                return Ok(Arc::new(MaskErrorsExec::new(function, files, input)));
            }
            Message::Order(by) => {
                let [input] = inputs else {
                    return internal_err!("Order has one input");
                };
                return Ok(Arc::new(OrderExec::try_new(Arc::clone(input), &by)?));
            }
            Message::Classes(spec) => {
                let inputs = inputs.to_vec();
                return Ok(Arc::new(ClassesExec::try_new(Arc::new(spec), inputs)?));
            }
        };
        let spec = Arc::new(message.spec);
        let layout = || -> Result<Arc<Layout>> {
            Ok(Arc::new(Layout::try_new(
                &spec,
                read_schema(&message.canonical)?,
            )?))
        };
        Ok(match (message.operator, inputs) {
            (Operator::Pseudonymize, [input]) => Arc::new(PseudonymizeExec::try_new(
                Arc::clone(&spec),
                Arc::clone(input),
            )?),
            (Operator::PseudonymizeForProfile, [input]) => Arc::new(PseudonymizeExec::for_profile(
                Arc::clone(&spec),
                Arc::clone(input),
            )?),
            (Operator::Profile, [input]) => {
                Arc::new(ProfileExec::try_new(Arc::clone(&spec), Arc::clone(input))?)
            }
            (Operator::Individuals(partitions), [input]) => Arc::new(IndividualsExec::try_new(
                Arc::clone(&spec),
                layout()?,
                Arc::clone(input),
                BlockPartitioning::new(partitions)?,
            )?),
            (Operator::Division, [profile]) => Arc::new(DivisionExec::try_new(
                Arc::clone(&spec),
                layout()?,
                Arc::clone(profile),
            )?),
            (Operator::Block, [profile, individuals]) => Arc::new(BlockExec::try_new(
                Arc::clone(&spec),
                layout()?,
                Arc::clone(profile),
                Arc::clone(individuals),
            )?),
            (Operator::Anonymize(partitions), [input]) => Arc::new(AnonymizeExec::try_new(
                Arc::clone(&spec),
                layout()?,
                Arc::clone(input),
                BlockPartitioning::new(partitions)?,
            )?),
            (operator, inputs) => {
                return internal_err!("{operator:?} cannot have {} inputs", inputs.len());
            }
        })
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let empty = Arc::new(Schema::empty());
        let plan = node.as_ref();
        if let Some(n) = plan.downcast_ref::<ClassesExec>() {
            return encode(&Message::Classes(n.spec().as_ref().clone()), buf);
        }
        if let Some(n) = plan.downcast_ref::<LossExec>() {
            return encode(&Message::Loss(n.spec().as_ref().clone()), buf);
        }
        if let Some(n) = plan.downcast_ref::<CoverExec>() {
            return encode(&Message::Cover(n.spec().as_ref().clone()), buf);
        }
        if let Some(n) = plan.downcast_ref::<CollapseExec>() {
            return encode(&Message::Collapse(n.spec().as_ref().clone()), buf);
        }
        if let Some(n) = plan.downcast_ref::<GatherExec>() {
            return encode(&Message::Gather(n.spec().as_ref().clone()), buf);
        }
        if let Some(n) = plan.downcast_ref::<CompareExec>() {
            return encode(&Message::Compare(n.spec().as_ref().clone()), buf);
        }
        if let Some(n) = plan.downcast_ref::<OrderExec>() {
            return encode(&Message::Order(n.by()), buf);
        }
        if let Some(n) = plan.downcast_ref::<MaskErrorsExec>() {
            let (function, files) = (n.function().to_owned(), n.files().to_vec());
            return encode(&Message::MaskErrors(function, files), buf);
        }
        if let Some(n) = plan.downcast_ref::<ReportExec>() {
            let report = n.report().as_ref().clone();
            return encode(&Message::Report(report, n.function().to_owned()), buf);
        }
        let (operator, spec, canonical) = if let Some(n) = plan.downcast_ref::<PseudonymizeExec>() {
            let operator = match n.tags() {
                true => Operator::Pseudonymize,
                false => Operator::PseudonymizeForProfile,
            };
            (operator, n.spec(), &empty)
        } else if let Some(n) = plan.downcast_ref::<ProfileExec>() {
            (Operator::Profile, n.spec(), &empty)
        } else if let Some(n) = plan.downcast_ref::<IndividualsExec>() {
            let operator = Operator::Individuals(n.deal().partitions());
            (operator, n.spec(), n.layout().canonical())
        } else if let Some(n) = plan.downcast_ref::<BlockExec>() {
            (Operator::Block, n.spec(), n.layout().canonical())
        } else if let Some(n) = plan.downcast_ref::<DivisionExec>() {
            (Operator::Division, n.spec(), n.layout().canonical())
        } else if let Some(n) = plan.downcast_ref::<AnonymizeExec>() {
            let operator = Operator::Anonymize(n.deal().partitions());
            (operator, n.spec(), n.layout().canonical())
        } else {
            return self
                .inner
                .try_encode(Arc::clone(&node), buf, proto_converter);
        };
        let message = AnonymizeMessage {
            operator,
            spec: spec.as_ref().clone(),
            canonical: write_schema(canonical)?,
        };
        encode(&Message::Anonymize(Box::new(message)), buf)
    }
}

fn write_schema(schema: &Schema) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(vec![], schema)?;
    writer.finish()?;
    Ok(writer.into_inner()?)
}

fn read_schema(bytes: &[u8]) -> Result<SchemaRef> {
    Ok(StreamReader::try_new(bytes, None)?.schema())
}

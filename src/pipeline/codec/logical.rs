//! Logical nodes as bytes.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference, internal_err};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNode};
use datafusion_proto::bytes::Serializeable;
use datafusion_proto::logical_plan::{DefaultLogicalExtensionCodec, LogicalExtensionCodec};
use serde::{Deserialize, Serialize};

use super::{decode, encode};
use crate::measure::{
    ClassesSpec, CollapseSpec, CompareSpec, CoverSpec, GatherSpec, LossSpec, Report,
};
use crate::pipeline::node::{
    AnonymizeNode, ClassesNode, CollapseNode, CompareNode, CoverNode, GatherNode, LossNode,
    ReportNode,
};
use crate::spec::Spec;

/// Encodes the nodes of this crate and leaves everything else to another codec.
#[derive(Debug)]
pub struct AnonymizeLogicalCodec {
    inner: Arc<dyn LogicalExtensionCodec>,
}

#[derive(Serialize, Deserialize)]
struct Message {
    node: Node,
    filters: Vec<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
enum Node {
    Anonymize(Box<Spec>),
    Classes(ClassesSpec),
    Loss(LossSpec),
    Report(Report, String),
    Cover(CoverSpec),
    Collapse(CollapseSpec),
    Compare(CompareSpec),
    Gather(GatherSpec),
}

impl AnonymizeLogicalCodec {
    /// Wraps the codec of an engine, for example Ballista's.
    pub fn new(inner: Arc<dyn LogicalExtensionCodec>) -> Self {
        Self { inner }
    }
}

impl Default for AnonymizeLogicalCodec {
    fn default() -> Self {
        Self::new(Arc::new(DefaultLogicalExtensionCodec {}))
    }
}

impl LogicalExtensionCodec for AnonymizeLogicalCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[LogicalPlan],
        ctx: &TaskContext,
    ) -> Result<Extension> {
        let Some(message) = decode::<Message>(buf)? else {
            return self.inner.try_decode(buf, inputs, ctx);
        };
        let filters = message
            .filters
            .iter()
            .map(|bytes| Expr::from_bytes_with_ctx(bytes, ctx));
        let filters = filters.collect::<Result<Vec<_>>>()?;
        let node: Arc<dyn UserDefinedLogicalNode> = match (message.node, inputs) {
            (Node::Anonymize(spec), [input]) => Arc::new(AnonymizeNode::try_new(
                Arc::from(spec),
                input.clone(),
                filters,
            )?),
            (Node::Anonymize(_), _) => return internal_err!("Anonymize has one input"),
            (Node::Loss(spec), inputs) => {
                Arc::new(LossNode::try_new(Arc::new(spec), inputs.to_vec(), filters)?)
            }
            (Node::Report(report, function), [input]) => Arc::new(ReportNode::try_new(
                Arc::new(report),
                function,
                input.clone(),
                filters,
            )?),
            (Node::Cover(spec), inputs) => Arc::new(CoverNode::try_new(
                Arc::new(spec),
                inputs.to_vec(),
                filters,
            )?),
            (Node::Collapse(spec), inputs) => Arc::new(CollapseNode::try_new(
                Arc::new(spec),
                inputs.to_vec(),
                filters,
            )?),
            (Node::Gather(spec), inputs) => Arc::new(GatherNode::try_new(
                Arc::new(spec),
                inputs.to_vec(),
                filters,
            )?),
            (Node::Compare(spec), inputs) => Arc::new(CompareNode::try_new(
                Arc::new(spec),
                inputs.to_vec(),
                filters,
            )?),
            (Node::Report(..), _) => return internal_err!("Report has one input"),
            (Node::Classes(spec), inputs) => Arc::new(ClassesNode::try_new(
                Arc::new(spec),
                inputs.to_vec(),
                filters,
            )?),
        };
        Ok(Extension { node })
    }

    fn try_encode(&self, node: &Extension, buf: &mut Vec<u8>) -> Result<()> {
        let any = node.node.as_any();
        let (node, filters) = if let Some(node) = any.downcast_ref::<AnonymizeNode>() {
            let spec = Box::new(node.spec().as_ref().clone());
            (Node::Anonymize(spec), node.filters())
        } else if let Some(node) = any.downcast_ref::<ClassesNode>() {
            (Node::Classes(node.spec().as_ref().clone()), node.filters())
        } else if let Some(node) = any.downcast_ref::<LossNode>() {
            (Node::Loss(node.spec().as_ref().clone()), node.filters())
        } else if let Some(node) = any.downcast_ref::<CoverNode>() {
            (Node::Cover(node.spec().as_ref().clone()), node.filters())
        } else if let Some(node) = any.downcast_ref::<CollapseNode>() {
            (Node::Collapse(node.spec().as_ref().clone()), node.filters())
        } else if let Some(node) = any.downcast_ref::<GatherNode>() {
            (Node::Gather(node.spec().as_ref().clone()), node.filters())
        } else if let Some(node) = any.downcast_ref::<CompareNode>() {
            (Node::Compare(node.spec().as_ref().clone()), node.filters())
        } else if let Some(node) = any.downcast_ref::<ReportNode>() {
            let report = node.report().as_ref().clone();
            let function = node.function().to_owned();
            (Node::Report(report, function), node.filters())
        } else {
            return self.inner.try_encode(node, buf);
        };
        let filters = filters.iter().map(|f| Ok(f.to_bytes()?.to_vec()));
        let message = Message {
            node,
            filters: filters.collect::<Result<_>>()?,
        };
        encode(&message, buf)
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        table_ref: &TableReference,
        schema: SchemaRef,
        ctx: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        self.inner
            .try_decode_table_provider(buf, table_ref, schema, ctx)
    }

    fn try_encode_table_provider(
        &self,
        table_ref: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        self.inner.try_encode_table_provider(table_ref, node, buf)
    }

    fn try_decode_file_format(
        &self,
        buf: &[u8],
        ctx: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.inner.try_decode_file_format(buf, ctx)
    }

    fn try_encode_file_format(
        &self,
        buf: &mut Vec<u8>,
        node: Arc<dyn FileFormatFactory>,
    ) -> Result<()> {
        self.inner.try_encode_file_format(buf, node)
    }
}

//! A workload as bytes: domains and how it is drawn, since the queries follow from them.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::{Draw, Workload, WorkloadColumn};
use crate::measure::cells::{Cell, LabelCells, Point};

impl Workload {
    /// Everything that is needed to draw it again.
    pub fn to_bytes(&self) -> Vec<u8> {
        let draw = &self.draw;
        let mut bytes = vec![];
        bytes.extend(draw.queries.to_le_bytes());
        bytes.extend(draw.dimensions.to_le_bytes());
        bytes.extend(draw.selectivity.to_le_bytes());
        bytes.extend(draw.seed.to_le_bytes());
        bytes.push(u8::from(draw.sensitive));
        for attribute in &self.attributes {
            put_text(&mut bytes, &attribute.value_type.to_string());
            put_cell(&mut bytes, &attribute.domain);
            let labels = attribute.labels.as_ref();
            let labels = labels.and_then(|labels| Some((labels.domain()?, labels.cells())));
            bytes.push(u8::from(labels.is_some()));
            if let Some((domain, labels)) = labels {
                put_cell(&mut bytes, domain);
                bytes.extend((labels.len() as u32).to_le_bytes());
                for (label, cell) in labels {
                    put_text(&mut bytes, label);
                    put_cell(&mut bytes, cell);
                }
            }
        }
        bytes
    }

    /// Draws it again.
    pub fn from_bytes(bytes: &[u8]) -> Result<Arc<Self>, String> {
        let mut bytes = Bytes(bytes);
        let draw = Draw {
            queries: u32::from_le_bytes(bytes.array()?),
            dimensions: u32::from_le_bytes(bytes.array()?),
            selectivity: f64::from_le_bytes(bytes.array()?),
            seed: u64::from_le_bytes(bytes.array()?),
            sensitive: bytes.byte()? == 1,
        };
        let mut attributes = vec![];
        while !bytes.0.is_empty() {
            let value_type = bytes.text()?;
            let value_type: DataType = value_type
                .parse()
                .map_err(|_| format!("unknown type {value_type}"))?;
            let domain = bytes.cell()?;
            let labels = match bytes.byte()? {
                0 => None,
                _ => Some(Arc::new(bytes.labels()?)),
            };
            attributes.push(WorkloadColumn {
                value_type,
                domain,
                labels,
            });
        }
        Ok(Workload::new(attributes, draw))
    }
}

fn put_cell(bytes: &mut Vec<u8>, cell: &Cell) {
    match cell {
        Cell::Interval(lo, hi) => {
            bytes.push(0);
            put_point(bytes, lo);
            put_point(bytes, hi);
        }
        Cell::Set(values) => {
            bytes.push(1);
            bytes.extend((values.len() as u32).to_le_bytes());
            values.iter().for_each(|v| put_point(bytes, v));
        }
        _ => bytes.push(2),
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn put_point(bytes: &mut Vec<u8>, point: &Point) {
    match point {
        Point::Integer(whole) => {
            bytes.push(0);
            bytes.extend(whole.to_le_bytes());
        }
        Point::Real(real) => {
            bytes.push(1);
            bytes.extend(real.to_le_bytes());
        }
        Point::Text(text) => {
            bytes.push(2);
            put_text(bytes, text);
        }
    }
}

/// Bytes that are still to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or("a workload ends early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| "a workload ends early".into())
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn text(&mut self) -> Result<String, String> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        let bytes = self.take(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| "a workload holds no text".into())
    }

    fn cell(&mut self) -> Result<Cell, String> {
        Ok(match self.byte()? {
            0 => Cell::Interval(self.point()?, self.point()?),
            1 => {
                let count = u32::from_le_bytes(self.array()?);
                let points = (0..count).map(|_| self.point());
                Cell::Set(points.collect::<Result<_, _>>()?)
            }
            _ => Cell::Suppressed,
        })
    }

    fn labels(&mut self) -> Result<LabelCells, String> {
        let domain = self.cell()?;
        let count = u32::from_le_bytes(self.array()?);
        let cells = (0..count).map(|_| Ok((self.text()?.into(), self.cell()?)));
        let cells = cells.collect::<Result<Vec<_>, String>>()?;
        Ok(LabelCells::from_cells(cells, domain))
    }

    fn point(&mut self) -> Result<Point, String> {
        match self.byte()? {
            0 => Ok(Point::Integer(i128::from_le_bytes(self.array()?))),
            1 => Ok(Point::Real(f64::from_le_bytes(self.array()?))),
            _ => Ok(Point::text(&self.text()?)),
        }
    }
}

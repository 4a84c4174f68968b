//! `__expected_members(matching, members)`: members of a group that satisfy conditions on all its sub-tables.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

/// The function, for plans: n₁ · n₂ · … · n_k / m^(k − 1) over k sub-tables (Yao 2021, Eq. 11).
pub(crate) fn expected_members() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::new_from_impl(ExpectedMembers {
            signature: Signature::exact(vec![DataType::Float64; 2], Volatility::Immutable),
        }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExpectedMembers {
    signature: Signature,
}

const STATE: [&str; 3] = ["product", "members", "tables"];

impl AggregateUDFImpl for ExpectedMembers {
    fn name(&self) -> &str {
        "__expected_members"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |part: &str| {
            let name = format!("{}[{part}]", args.name);
            Arc::new(Field::new(name, DataType::Float64, true))
        };
        Ok(STATE.map(field).to_vec())
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(GroupMembers::default()))
    }
}

/// A group so far. Whole numbers are multiplied and divided once, so that the order of sub-tables does not matter.
#[derive(Debug)]
struct GroupMembers {
    product: f64,
    members: f64,
    tables: f64,
}

impl Default for GroupMembers {
    fn default() -> Self {
        Self {
            product: 1.0,
            members: 0.0,
            tables: 0.0,
        }
    }
}

impl GroupMembers {
    fn add(&mut self, product: f64, members: f64, tables: f64) {
        self.product *= product;
        self.members = self.members.max(members);
        self.tables += tables;
    }
}

impl Accumulator for GroupMembers {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [matching, members] = [0, 1].map(|i| values[i].as_primitive::<Float64Type>());
        for (matching, members) in matching.iter().zip(members) {
            if let (Some(matching), Some(members)) = (matching, members) {
                self.add(matching, members, 1.0);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let shares = (self.tables - 1.0).max(0.0);
        let expected = if self.members > 0.0 {
            self.product / self.members.powf(shares)
        } else {
            0.0
        };
        Ok(ScalarValue::Float64(Some(expected)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = [self.product, self.members, self.tables];
        Ok(state.map(|part| ScalarValue::Float64(Some(part))).to_vec())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [product, members, tables] = [0, 1, 2].map(|i| states[i].as_primitive::<Float64Type>());
        for i in 0..product.len() {
            self.add(product.value(i), members.value(i), tables.value(i));
        }
        Ok(())
    }
}

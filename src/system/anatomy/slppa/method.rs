//! The ways to anatomize a table: SLPPA and the two it is compared with.

use super::division::{Division, DivisionError};
use super::groups::{DivideError, Groups};
use super::individuals::{CodedIndividuals, Prior};
use super::requirement::GroupBounds;
use super::statistics::Associations;
use super::{divide, slicing};
use crate::algorithm::Cancel;

/// A way to divide columns into sub-tables and individuals into groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Sub-tables by entropy and contingency, groups by all four bounds (Yao et al. 2021).
    Slppa,
    /// Sub-tables as [`Method::Slppa`], groups of similar individuals as [`Method::Slicing`], of which those that violate
    /// α, γ or δ take in others. Takes longer, and count queries come out nearer to the truth.
    SlppaSimilar,
    /// Each column its own sub-table (Rajaei et al. 2015). Its two bounds are β, and γ, which it calls α.
    Asn,
    /// Sub-tables by k-medoid clustering, groups by Mondrian with l-diversity, which is β = 1 / l (Li et al. 2012).
    Slicing,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 4] = [Self::Slppa, Self::SlppaSimilar, Self::Asn, Self::Slicing];

    /// The name users give as `method => '…'`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slppa => "slppa",
            Self::SlppaSimilar => "slppa_similar",
            Self::Asn => "asn",
            Self::Slicing => "slicing",
        }
    }

    /// The method of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Divides columns into sub-tables; ASN takes no number of them.
    pub fn division(
        self,
        associations: &Associations,
        tables: usize,
    ) -> Result<Division, DivisionError> {
        match self {
            Self::Slppa | Self::SlppaSimilar => Division::by_weight(associations, tables),
            Self::Asn => Ok(Division::each(associations.weights.len())),
            Self::Slicing => Division::by_medoids(associations, tables),
        }
    }

    /// Divides individuals into groups that satisfy the bounds.
    ///
    /// # Blocks
    /// The individuals may be a block of the table. Groups are then compared with `prior`, that of the whole table, and
    /// groups of all blocks together satisfy the bounds as each of them does: a group never crosses blocks, and α, β and δ
    /// of a group depend on nothing else. A block is refused if and only if it cannot be divided: by β, α or δ exactly if
    /// the block as one group violates it. Its individuals then belong together with those of another block, because
    /// the whole table may be divisible where a block is not; blocks that are dealt evenly by sensitive value differ least
    /// from the whole. For a block that is the whole table δ is never in the way.
    ///
    /// # Errors
    /// [`DivideError::Infeasible`] with values that work; no bound is ever relaxed. Values and shares of a refused block
    /// are those of the block.
    pub fn groups(
        self,
        individuals: &CodedIndividuals,
        division: &Division,
        prior: &Prior,
        requirements: &GroupBounds,
        cancel: &Cancel,
    ) -> Result<Groups, DivideError> {
        match self {
            Self::Slppa | Self::Asn => {
                divide::divide(individuals, division, prior, requirements, cancel)
            }
            Self::SlppaSimilar => {
                divide::divide_similar(individuals, division, prior, requirements, cancel)
            }
            Self::Slicing => slicing::divide(individuals, division, prior, requirements, cancel),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn methods_have_names_and_divide() {
        let associations = example::associations();
        for method in Method::ALL {
            assert_eq!(Method::find(method.name()), Some(method));
            let division = method.division(&associations, 2).unwrap();
            assert_eq!(division.columns(), 4);
            let tables = if method == Method::Asn { 4 } else { 2 };
            assert_eq!(division.tables().len(), tables);
        }
        assert_eq!(Method::find("anatomy"), None);
    }
}

//! What sets the functions of a system apart.

use super::classes::Classes;
use super::{FUNCTIONS, System};

/// An anonymizing function.
#[derive(Debug)]
pub struct FunctionEntry {
    /// Its SQL name.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// How it publishes.
    pub(crate) system: &'static dyn System,
    /// Who shares a block.
    pub blocks: Blocks,
    /// Individuals per block unless a call says otherwise.
    pub block: u64,
    /// Whether it protects several sensitive columns at once.
    pub several_sensitive: bool,
}

impl FunctionEntry {
    /// What its system is called. Functions of one system publish the same kind of tables.
    pub fn system_name(&self) -> &'static str {
        self.system.properties().name
    }

    /// Whether it anonymizes nothing, and shows how columns would be divided.
    pub fn shows_division_only(&self) -> bool {
        self.system.properties().shows_division_only
    }

    /// Whether quasi-identifiers are generalized; else they are published as they are.
    pub fn generalizes(&self) -> bool {
        self.system.properties().generalizes
    }

    /// Whether individuals who show the same are a class; else there are groups.
    pub fn forms_classes(&self) -> bool {
        self.system.properties().groups.is_none()
    }

    /// SQL that gives the number of individuals of each group of a published relation, if it forms groups.
    pub fn group_sizes(&self, published: &str) -> Option<String> {
        let groups = self.system.properties().groups.as_ref();
        groups.map(|groups| groups.sizes(published))
    }
}

/// Who shares a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// Individuals with similar quasi-identifiers.
    Similar,
    /// Individuals as they come in the random order: each block is a sample of the table.
    Random,
}

/// The function of this name.
pub(super) fn find(name: &str) -> Option<&'static FunctionEntry> {
    let mut functions = FUNCTIONS.iter().copied();
    functions.find(|function| function.name == name)
}

/// The system of the function of this name; that of classes if there is no such function.
pub(crate) fn system_of(name: &str) -> &'static dyn System {
    find(name).map_or(&Classes, |function| function.system)
}

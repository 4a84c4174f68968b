//! The anonymizing functions, and what sets them apart.

use super::System;
use super::anatomy::Anatomy;
use super::buckets::Buckets;
use super::classes::Classes;
use super::fingerprints::Fingerprints;

/// An anonymizing function.
#[derive(Debug)]
pub struct FunctionEntry {
    /// Its SQL name.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// What it publishes.
    pub form: Form,
    /// How it publishes.
    pub(crate) system: &'static dyn System,
    /// Who shares a block.
    pub blocks: Blocks,
    /// Individuals per block unless a call says otherwise.
    pub block: u64,
    /// Whether it protects several sensitive columns at once.
    pub several_sensitive: bool,
}

/// What is published of individuals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Their records, with the quasi-identifiers that their class shares.
    Classes,
    /// One record each, with local groups of quasi-identifiers and secret values in buckets.
    Buckets,
    /// Their exact values in sub-tables that only the id of a group links.
    Anatomy,
    /// Nothing: which quasi-identifiers would share a sub-table, and why.
    Division,
    /// Labels that stand for their sensitive values and are shared by enough individuals, with the quasi-identifiers that
    /// their class shares.
    Fingerprints,
    /// As fingerprints, of which any few labels are shared within a class.
    Combinations,
}

/// Who shares a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// Individuals with similar quasi-identifiers.
    Similar,
    /// Individuals as they come in the random order: each block is a sample of the table.
    Random,
}

/// All anonymizing functions. Which models each offers is said by [`MODELS`](crate::model::MODELS).
pub static FUNCTIONS: &[FunctionEntry] = &[
    FunctionEntry {
        name: "anonymize_ir",
        help: "identity-reserved models: individuals are counted, not records",
        form: Form::Classes,
        system: &Classes,
        blocks: Blocks::Similar,
        block: 25_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anonymize_eir",
        help: "enhanced identity-reserved models: what one record of each individual could tell, whichever it is",
        form: Form::Classes,
        system: &Classes,
        blocks: Blocks::Similar,
        block: 25_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anonymize_lgb",
        help: "local generalization and bucketization: each individual says which of its values are secret",
        form: Form::Buckets,
        system: &Buckets,
        blocks: Blocks::Random,
        block: 400_000,
        several_sensitive: true,
    },
    FunctionEntry {
        name: P_SENSITIVE,
        help: "p-sensitive models: different sensitive values, or categories of them, in every class",
        form: Form::Classes,
        system: &Classes,
        blocks: Blocks::Similar,
        block: 25_000,
        several_sensitive: true,
    },
    FunctionEntry {
        name: "anatomize_slppa",
        help: "exact values in sub-tables that only groups link: the (alpha, beta, gamma, delta) model",
        form: Form::Anatomy,
        system: &Anatomy {
            division_only: false,
        },
        blocks: Blocks::Random,
        block: 50_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anatomize_division",
        help: "which quasi-identifiers would share a sub-table of anatomize_slppa, and why",
        form: Form::Division,
        system: &Anatomy {
            division_only: true,
        },
        blocks: Blocks::Random,
        block: 250_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anonymize_kl",
        help: "(k, l)-diversity: sets of sensitive values are generalized until k individuals share them",
        form: Form::Fingerprints,
        system: &Fingerprints {
            combinations: false,
        },
        blocks: Blocks::Similar,
        block: 100_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anonymize_kkm",
        help: "(k, k^m)-anonymity by RMR, a baseline to compare with",
        form: Form::Combinations,
        system: &Fingerprints { combinations: true },
        blocks: Blocks::Similar,
        block: 25_000,
        several_sensitive: false,
    },
];

pub(super) const P_SENSITIVE: &str = "anonymize_p_sensitive";

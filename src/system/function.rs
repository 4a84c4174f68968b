//! The anonymizing functions, and what sets them apart.

use crate::algorithm::ALGORITHMS;
use crate::spec::{AnatomyOptions, BucketOptions, ClassOptions, FingerprintOptions, SystemOptions};

/// An anonymizing function.
#[derive(Debug)]
pub struct FunctionEntry {
    /// Its SQL name.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// What it publishes.
    pub form: Form,
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
        blocks: Blocks::Similar,
        block: 25_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anonymize_eir",
        help: "enhanced identity-reserved models: what one record of each individual could tell, whichever it is",
        form: Form::Classes,
        blocks: Blocks::Similar,
        block: 25_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anonymize_lgb",
        help: "local generalization and bucketization: each individual says which of its values are secret",
        form: Form::Buckets,
        blocks: Blocks::Random,
        block: 400_000,
        several_sensitive: true,
    },
    FunctionEntry {
        name: P_SENSITIVE,
        help: "p-sensitive models: different sensitive values, or categories of them, in every class",
        form: Form::Classes,
        blocks: Blocks::Similar,
        block: 25_000,
        several_sensitive: true,
    },
    FunctionEntry {
        name: "anatomize_slppa",
        help: "exact values in sub-tables that only groups link: the (alpha, beta, gamma, delta) model",
        form: Form::Anatomy,
        blocks: Blocks::Random,
        block: 50_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anatomize_division",
        help: "which quasi-identifiers would share a sub-table of anatomize_slppa, and why",
        form: Form::Division,
        blocks: Blocks::Random,
        block: 250_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anonymize_kl",
        help: "(k, l)-diversity: sets of sensitive values are generalized until k individuals share them",
        form: Form::Fingerprints,
        blocks: Blocks::Similar,
        block: 100_000,
        several_sensitive: false,
    },
    FunctionEntry {
        name: "anonymize_kkm",
        help: "(k, k^m)-anonymity by RMR, a baseline to compare with",
        form: Form::Combinations,
        blocks: Blocks::Similar,
        block: 25_000,
        several_sensitive: false,
    },
];

const P_SENSITIVE: &str = "anonymize_p_sensitive";

/// The algorithm of a function unless a call says otherwise, by whether all quasi-identifiers have a hierarchy.
pub(super) fn default_algorithm(function: &str, hierarchies: bool) -> &'static str {
    let entry = FUNCTIONS.iter().find(|f| f.name == function);
    match entry.map(|f| f.form) {
        Some(Form::Combinations) => "best_cut",
        _ if hierarchies && function == P_SENSITIVE => "localpk",
        _ => ALGORITHMS[0].name,
    }
}

/// The options of a function's system before any is given. An unknown function is told in `Spec::entry`.
pub(super) fn options(function: &str) -> SystemOptions {
    let entry = FUNCTIONS.iter().find(|f| f.name == function);
    match entry.map(|f| f.form) {
        Some(Form::Buckets) => SystemOptions::Buckets(BucketOptions::default()),
        Some(Form::Anatomy | Form::Division) => SystemOptions::Anatomy(AnatomyOptions::default()),
        Some(Form::Fingerprints | Form::Combinations) => {
            SystemOptions::Fingerprints(FingerprintOptions::default())
        }
        Some(Form::Classes) | None => SystemOptions::Classes(ClassOptions::default()),
    }
}

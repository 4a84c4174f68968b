//! The running example of Wang 2018, for tests.

use super::{Block, Categorical, Fingerprints, Numeric, QuasiIdentifier};

/// Table 2 with the paper's numbers 1–7 in the given order; ages lie in 30..=39, losses are in eighteenths.
pub(crate) fn patients(order: [usize; 7]) -> Block {
    const GENDER: [u32; 7] = [0, 1, 0, 1, 1, 1, 1];
    const AGE: [u32; 7] = [36, 37, 36, 33, 38, 34, 33];
    const POSTCODE: [u32; 7] = [0, 1, 2, 3, 4, 5, 6];
    // Hypertension, heart, cancer, diabetes, HIV, leukaemia, syphilis.
    const DISEASES: [&[u32]; 7] = [&[0, 1], &[2], &[0], &[0, 3], &[4], &[1, 5], &[6]];

    let ordered = |column: [u32; 7]| order.map(|number| column[number - 1]).to_vec();
    let categorical = |column: [u32; 7], cardinality, step| {
        QuasiIdentifier::Categorical(Categorical {
            offsets: (0..=7).collect(),
            codes: ordered(column),
            cardinality,
            step,
        })
    };
    let mut fingerprints = Fingerprints::new();
    for number in order {
        fingerprints.push(&mut DISEASES[number - 1].to_vec());
    }
    let records = order.map(|number| DISEASES[number - 1].len() as u32);
    let age = QuasiIdentifier::Numeric(Numeric {
        lo: ordered(AGE),
        hi: ordered(AGE),
        step: 2,
    });
    Block::new(
        vec![categorical(GENDER, 2, 18), age, categorical(POSTCODE, 7, 3)],
        fingerprints,
        records.to_vec(),
        18,
    )
}

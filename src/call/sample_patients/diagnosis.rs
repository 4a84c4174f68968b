//! The 619 diagnosis codes and how likely each is at an age and sex.

use super::alias::Alias;
use super::patient::{Sex, Ward};

/// Bounds (exclusive) of the age bands that the distributions know; the last band is open.
const BAND_ENDS: [u32; BANDS - 1] = [15, 30, 45, 60, 75];
/// Age bands: 0–14, 15–29, 30–44, 45–59, 60–74, 75 and over.
pub(super) const BANDS: usize = 6;

/// The age band of an age in years.
pub(super) fn band(age: u32) -> usize {
    BAND_ENDS.iter().take_while(|&&end| age >= end).count()
}

/// A chapter of the classification: neighbouring codes that share a ward and an age profile.
struct Chapter {
    prefix: &'static str,
    first: u32,
    codes: usize,
    /// The most frequent codes, most frequent first; the others follow in numerical order.
    leaders: &'static [u32],
    /// Rank r has weight 1 / (r + head): the smaller, the more the first code stands out.
    head: f64,
    ward: Ward,
    /// Relative frequency by age band.
    weight: [u32; BANDS],
}

/// Chapters as in ICD-9, without the perinatal one; 619 codes in all.
#[rustfmt::skip]
const CHAPTERS: [Chapter; 17] = [
    // infections
    chapter("", 1, 50, &[79, 110, 78, 112, 53, 34, 9], 2.0, Ward::Internal, [140, 90, 60, 50, 40, 40]),
    // neoplasms
    chapter("", 140, 50, &[173, 174, 216, 185, 153, 218], 2.0, Ward::Oncology, [8, 18, 40, 60, 80, 70]),
    // endocrine, nutritional, metabolic
    chapter("", 240, 36, &[272, 250, 278, 244, 274], 0.8, Ward::Internal, [20, 40, 80, 120, 140, 120]),
    // blood
    chapter("", 280, 10, &[285, 280], 1.0, Ward::Oncology, [10, 15, 20, 20, 20, 30]),
    // mental
    chapter("", 290, 30, &[311, 300, 296, 314, 305], 0.9, Ward::Psychiatry, [60, 110, 110, 90, 60, 60]),
    // nerves, eyes, ears
    chapter("", 320, 62, &[367, 382, 366, 346, 365, 372, 389], 2.0, Ward::Neurology, [140, 80, 80, 90, 120, 140]),
    // circulation
    chapter("", 390, 56, &[401, 414, 427, 428, 429, 410, 436, 454], 0.35, Ward::Cardiology, [8, 20, 65, 135, 200, 240]),
    // respiration
    chapter("", 460, 48, &[465, 477, 493, 460, 473, 486, 490, 496], 1.2, Ward::Pulmonology, [260, 140, 110, 100, 90, 90]),
    // digestion
    chapter("", 520, 46, &[530, 525, 564, 536, 553, 562], 1.5, Ward::Surgery, [50, 60, 70, 80, 80, 80]),
    // kidneys and genital organs
    chapter("", 580, 44, &[599, 627, 600, 626, 592, 625], 1.5, Ward::Surgery, [30, 90, 90, 70, 60, 70]),
    // pregnancy
    chapter("", 630, 30, &[650, 643, 648, 644], 1.0, Ward::Maternity, [0, 90, 60, 0, 0, 0]),
    // skin
    chapter("", 680, 28, &[692, 706, 682, 691, 702], 1.5, Ward::Internal, [90, 90, 60, 50, 50, 50]),
    // muscles and bones
    chapter("", 710, 30, &[724, 719, 715, 716, 733, 726], 1.0, Ward::Orthopedics, [40, 80, 130, 160, 140, 130]),
    // congenital
    chapter("", 740, 12, &[746, 754], 1.0, Ward::Surgery, [30, 10, 6, 5, 4, 4]),
    // symptoms
    chapter("", 780, 18, &[780, 786, 784, 789, 787], 1.5, Ward::Internal, [80, 80, 80, 80, 80, 90]),
    // injuries and poisoning
    chapter("", 800, 45, &[847, 873, 959, 845, 840, 995], 2.5, Ward::Emergency, [140, 140, 100, 80, 70, 80]),
    // contact with health services
    chapter("V", 1, 24, &[72, 70, 20, 58, 76], 1.0, Ward::Internal, [80, 90, 70, 60, 60, 60]),
];

/// Codes in all chapters together.
pub(super) const CODES: usize = 619;

const fn chapter(
    prefix: &'static str,
    first: u32,
    codes: usize,
    leaders: &'static [u32],
    head: f64,
    ward: Ward,
    weight: [u32; BANDS],
) -> Chapter {
    Chapter {
        prefix,
        first,
        codes,
        leaders,
        head,
        ward,
        weight,
    }
}

/// The codes, and a distribution over them for every age band and sex.
#[derive(Debug)]
pub(super) struct Diagnoses {
    code: Vec<String>,
    ward: Vec<Ward>,
    by_sex_and_band: [[Alias; BANDS]; 2],
}

impl Diagnoses {
    pub(super) fn new() -> Self {
        let mut code = Vec::with_capacity(CODES);
        let mut ward = Vec::with_capacity(CODES);
        for chapter in &CHAPTERS {
            for number in chapter.numbers() {
                let width = 3 - chapter.prefix.len();
                code.push(format!("{}{number:0width$}", chapter.prefix));
                ward.push(chapter.ward);
            }
        }
        let by_sex_and_band =
            [Sex::Female, Sex::Male].map(|sex| std::array::from_fn(|band| distribution(sex, band)));
        Self {
            code,
            ward,
            by_sex_and_band,
        }
    }

    /// How likely each code is for a patient of this sex and age band.
    pub(super) fn distribution(&self, sex: Sex, band: usize) -> &Alias {
        &self.by_sex_and_band[sex as usize][band]
    }

    pub(super) fn code(&self, index: usize) -> &str {
        &self.code[index]
    }

    /// The ward that treats a code.
    pub(super) fn ward(&self, index: usize) -> Ward {
        self.ward[index]
    }
}

impl Chapter {
    /// Code numbers, most frequent first.
    fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let others = (self.first..).filter(|number| !self.leaders.contains(number));
        self.leaders.iter().copied().chain(others).take(self.codes)
    }

    fn zipf(&self, rank: usize) -> f64 {
        1.0 / (rank as f64 + self.head)
    }

    /// Pregnancy and the female genital organs, or the male ones.
    fn excludes(&self, sex: Sex, number: u32) -> bool {
        self.prefix.is_empty()
            && match sex {
                Sex::Male => matches!(number, 174 | 179..=184 | 218..=221 | 610..=679),
                Sex::Female => matches!(number, 175 | 185..=187 | 600..=608),
            }
    }
}

/// Zipf within a chapter, the chapter's weight between chapters.
fn distribution(sex: Sex, band: usize) -> Alias {
    let mut weights = Vec::with_capacity(CODES);
    for chapter in &CHAPTERS {
        let ranks = 0..chapter.codes;
        let norm: f64 = ranks.clone().map(|rank| chapter.zipf(rank)).sum();
        for (rank, number) in ranks.zip(chapter.numbers()) {
            let excluded = chapter.excludes(sex, number);
            let weight = if excluded {
                0.0
            } else {
                f64::from(chapter.weight[band])
            };
            weights.push(weight * chapter.zipf(rank) / norm);
        }
    }
    Alias::new(&weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_619_different_three_character_strings() {
        let diagnoses = Diagnoses::new();
        let distinct: BTreeSet<_> = diagnoses.code.iter().collect();
        assert_eq!((diagnoses.code.len(), distinct.len()), (CODES, CODES));
        assert!(diagnoses.code.iter().all(|code| code.len() == 3));
    }

    #[test]
    fn bands_split_at_their_bounds() {
        assert_eq!(
            [0, 14, 15, 29, 30, 59, 60, 74, 75, 85].map(band),
            [0, 0, 1, 1, 2, 3, 4, 4, 5, 5]
        );
    }
}

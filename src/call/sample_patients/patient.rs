//! One patient: who they are, and what they were treated for.

use std::sync::LazyLock;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::alias::{Alias, below, pick};
use super::diagnosis::{BANDS, CODES, Diagnoses, band};

/// The year in which ages are taken.
const YEAR: i32 = 2024;
/// Youngest and oldest age: 82 years of birth, all before the first visit.
const AGES: std::ops::RangeInclusive<u32> = 4..=85;
/// 2023-01-01 as days since 1970-01-01; visits fall in the two years from then.
const FIRST_VISIT_DAY: i32 = 19_358;
const VISIT_DAYS: u32 = 731;
/// Most diagnoses, and so most rows, that a patient has.
pub(super) const MAX_DIAGNOSES: usize = 64;

pub(super) const RACES: [&str; 6] = ["white", "black", "asian", "native", "pacific", "multiple"];
pub(super) const MARITAL_STATUSES: [&str; 6] = [
    "single",
    "married",
    "partnered",
    "separated",
    "divorced",
    "widowed",
];
pub(super) const POVERTIES: [&str; 5] = ["poor", "near poor", "low", "middle", "high"];
const EDUCATION_YEARS: [i32; 9] = [0, 3, 6, 8, 10, 12, 14, 16, 18];

/// Indexes the distributions, so the order matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sex {
    Female,
    Male,
}

impl Sex {
    pub(super) fn name(self) -> &'static str {
        match self {
            Sex::Female => "F",
            Sex::Male => "M",
        }
    }
}

/// Where a visit took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ward {
    Cardiology,
    Emergency,
    Geriatrics,
    Internal,
    Maternity,
    Neurology,
    Oncology,
    Orthopedics,
    Pediatrics,
    Psychiatry,
    Pulmonology,
    Surgery,
}

impl Ward {
    pub(super) fn name(self) -> &'static str {
        match self {
            Ward::Cardiology => "cardiology",
            Ward::Emergency => "emergency",
            Ward::Geriatrics => "geriatrics",
            Ward::Internal => "internal",
            Ward::Maternity => "maternity",
            Ward::Neurology => "neurology",
            Ward::Oncology => "oncology",
            Ward::Orthopedics => "orthopedics",
            Ward::Pediatrics => "pediatrics",
            Ward::Psychiatry => "psychiatry",
            Ward::Pulmonology => "pulmonology",
            Ward::Surgery => "surgery",
        }
    }
}

/// What one row adds to the patient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Treatment {
    pub(super) ward: Ward,
    /// Days since 1970-01-01.
    pub(super) visit_date: i32,
    /// Index of the diagnosis.
    pub(super) diagnosis: usize,
}

/// What stays the same in all rows of a patient, and the rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Patient {
    pub(super) birth_month: i32,
    pub(super) birth_year: i32,
    pub(super) sex: Sex,
    pub(super) race: &'static str,
    pub(super) education_years: i32,
    pub(super) marital_status: &'static str,
    pub(super) poverty: &'static str,
    pub(super) hispanic: &'static str,
    pub(super) treatments: Vec<Treatment>,
}

/// The distributions that all patients are drawn from, the same for every seed.
#[derive(Debug)]
pub(super) struct Population {
    age: Alias,
    count: [Alias; BANDS],
    pub(super) diagnoses: Diagnoses,
}

impl Population {
    /// The one population, built at first use.
    pub(super) fn shared() -> &'static Self {
        static SHARED: LazyLock<Population> = LazyLock::new(|| Population {
            age: Alias::new(&AGES.map(age_weight).collect::<Vec<_>>()),
            count: std::array::from_fn(count_distribution),
            diagnoses: Diagnoses::new(),
        });
        &SHARED
    }

    /// Patient `number` of the sample with this key. Every patient has a stream of random numbers of
    /// its own, so that nothing depends on who was drawn before.
    pub(super) fn patient(&self, key: [u8; 32], number: u64) -> Patient {
        let rng = &mut ChaCha8Rng::from_seed(key);
        rng.set_stream(number);

        let age = AGES.start() + self.age.draw(rng) as u32;
        let sex = sex(rng, age);
        let race = race(rng, age);
        let hispanic = below(rng, 100) < hispanic_percent(race, age);
        let poverty = poverty(rng, age, race, hispanic);
        Patient {
            birth_month: 1 + pick(rng, &[80, 76, 82, 80, 84, 84, 90, 92, 90, 86, 80, 82]) as i32,
            birth_year: YEAR - age as i32,
            sex,
            race: RACES[race],
            education_years: education_years(rng, age, poverty),
            marital_status: MARITAL_STATUSES[marital_status(rng, age, sex)],
            poverty: POVERTIES[poverty],
            hispanic: if hispanic { "yes" } else { "no" },
            treatments: self.treatments(rng, age, sex),
        }
    }

    /// Different diagnoses, a few to a visit, in the order of time.
    fn treatments(&self, rng: &mut ChaCha8Rng, age: u32, sex: Sex) -> Vec<Treatment> {
        let diagnoses = 1 + self.count[band(age)].draw(rng);
        let visits = 1 + below(rng, diagnoses as u32) as usize / 2;
        let mut days: Vec<i32> = (0..visits)
            .map(|_| FIRST_VISIT_DAY + below(rng, VISIT_DAYS) as i32)
            .collect();
        days.sort_unstable();

        let distribution = self.diagnoses.distribution(sex, band(age));
        let mut drawn = [0_u64; CODES.div_ceil(64)];
        let mut treatments: Vec<Treatment> = Vec::with_capacity(diagnoses);
        let mut previous = None;
        while treatments.len() < diagnoses {
            let diagnosis = distribution.draw(rng);
            let (word, bit) = (diagnosis / 64, 1 << (diagnosis % 64));
            if drawn[word] & bit != 0 {
                continue;
            }
            drawn[word] |= bit;

            let visit = treatments.len() * visits / diagnoses;
            let ward = match previous {
                Some((same, ward)) if same == visit => ward,
                _ => ward(rng, age, self.diagnoses.ward(diagnosis)),
            };
            previous = Some((visit, ward));
            treatments.push(Treatment {
                ward,
                visit_date: days[visit],
                diagnosis,
            });
        }
        treatments
    }
}

/// People in hospital are older than people at large.
fn age_weight(age: u32) -> f64 {
    match age {
        0..15 => 0.7,
        15..45 => 1.0,
        45..65 => 1.3,
        65..75 => 1.2,
        _ => 1.1 - 0.08 * f64::from(age - 75),
    }
}

/// Number of diagnoses less one: a mixture of geometric distributions (a single complaint, a usual
/// record, a long history), the longer the older.
fn count_distribution(band: usize) -> Alias {
    const MEANS: [f64; 3] = [2.0, 9.0, 24.0];
    const SHARES: [[f64; 3]; BANDS] = [
        [0.55, 0.40, 0.05],
        [0.45, 0.45, 0.10],
        [0.35, 0.48, 0.17],
        [0.24, 0.50, 0.26],
        [0.15, 0.49, 0.36],
        [0.10, 0.47, 0.43],
    ];
    let mut weights = vec![0.0; MAX_DIAGNOSES];
    for (mean, share) in MEANS.into_iter().zip(SHARES[band]) {
        let mut probability = share / mean;
        for weight in &mut weights {
            *weight += probability;
            probability *= 1.0 - 1.0 / mean;
        }
    }
    Alias::new(&weights)
}

fn sex(rng: &mut ChaCha8Rng, age: u32) -> Sex {
    let female_percent = [49, 56, 56, 53, 53, 58][band(age)];
    if below(rng, 100) < female_percent {
        Sex::Female
    } else {
        Sex::Male
    }
}

fn race(rng: &mut ChaCha8Rng, age: u32) -> usize {
    if age < 35 {
        pick(rng, &[66, 17, 7, 3, 1, 6])
    } else {
        pick(rng, &[75, 14, 6, 2, 1, 2])
    }
}

fn hispanic_percent(race: usize, age: u32) -> u32 {
    match RACES[race] {
        "white" if age < 40 => 20,
        "white" => 11,
        "native" => 20,
        "multiple" => 18,
        "pacific" => 10,
        _ => 4,
    }
}

fn poverty(rng: &mut ChaCha8Rng, age: u32, race: usize, hispanic: bool) -> usize {
    let weights = match RACES[race] {
        _ if hispanic => [20, 7, 21, 32, 20],
        "black" | "native" | "multiple" => [22, 7, 18, 30, 23],
        _ if age < 18 => [16, 5, 15, 32, 32],
        _ if age >= 70 => [11, 8, 21, 30, 30],
        _ => [9, 4, 12, 32, 43],
    };
    pick(rng, &weights)
}

fn education_years(rng: &mut ChaCha8Rng, age: u32, poverty: usize) -> i32 {
    let level = match POVERTIES[poverty] {
        "poor" | "near poor" => pick(rng, &[3, 3, 8, 12, 18, 38, 12, 5, 1]),
        "low" => pick(rng, &[1, 2, 5, 9, 13, 42, 18, 8, 2]),
        "middle" => pick(rng, &[1, 1, 2, 4, 7, 36, 24, 19, 6]),
        _ => pick(rng, &[0, 0, 1, 2, 3, 22, 20, 32, 20]),
    };
    // Fewer years for those who were at school before the 1970s, and never more than there were.
    let level = if age >= 70 && below(rng, 3) == 0 {
        level.saturating_sub(1)
    } else {
        level
    };
    let possible = age as i32 - 6;
    let years = EDUCATION_YEARS[..=level]
        .iter()
        .rev()
        .find(|years| **years <= possible);
    years.copied().unwrap_or(EDUCATION_YEARS[0])
}

fn marital_status(rng: &mut ChaCha8Rng, age: u32, sex: Sex) -> usize {
    let weights = match (age, sex) {
        (0..16, _) => return 0,
        (16..25, _) => [85, 8, 6, 1, 0, 0],
        (25..35, _) => [42, 42, 10, 2, 4, 0],
        (35..50, _) => [20, 57, 6, 4, 12, 1],
        (50..65, _) => [12, 60, 4, 3, 17, 4],
        (65..75, _) => [6, 59, 2, 2, 16, 15],
        (_, Sex::Female) => [4, 34, 1, 1, 11, 49],
        (_, Sex::Male) => [4, 66, 2, 1, 9, 18],
    };
    pick(rng, &weights)
}

/// The ward of a visit whose first diagnosis belongs to `usual`.
fn ward(rng: &mut ChaCha8Rng, age: u32, usual: Ward) -> Ward {
    match below(rng, 100) {
        0..12 => Ward::Emergency,
        12..80 if age < 15 => Ward::Pediatrics,
        12..40 if age >= 75 => Ward::Geriatrics,
        _ => usual,
    }
}

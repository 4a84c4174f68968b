//! A call of every function that publishes a table, for what must hold of all of them. The tests of the program use it too.

use datafusion_anonymize::{FUNCTIONS, FunctionEntry};

/// A call over a table like `sample_patients`. `TABLE` stands for the table, `BLOCK` for the size of a block.
pub const CALLS: &[&str] = &[
    "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [birth_year, sex, race], sensitive => diagnosis, \
     keep => [ward], l => 3, block => BLOCK, seed => 11)",
    "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [birth_year, sex, race], sensitive => diagnosis, \
     keep => [visit_date], l => 3, algorithm => 'danonyir', contradictory => 'cover', block => BLOCK, seed => 11)",
    // Each record an individual, many of them equal, with labels.
    "SELECT * FROM anonymize_ir((SELECT sex, birth_year / 20 AS age, ward, diagnosis FROM TABLE), \
     one_row_per_individual => true, qi => [sex, age, ward], sensitive => diagnosis, k => 3, \
     hierarchy => {age: 'bins(2)', ward: 'mask(1)'}, block => BLOCK, seed => 11)",
    // Two sensitive columns.
    "SELECT * FROM anonymize_p_sensitive((SELECT patient_id, sex, birth_year, ward, birth_month % 3 AS season FROM TABLE), \
     id => patient_id, qi => [sex, birth_year], sensitive => [ward, season], k => 3, p => 2, \
     hierarchy => {sex: 'mask(1)', birth_year: 'bins(5, 20)'}, block => BLOCK, seed => 11)",
    // Every fifth year of birth is a secret.
    "SELECT * FROM anonymize_lgb((SELECT sex, birth_year, birth_year % 5 = 0 AS hidden, diagnosis FROM TABLE), \
     one_row_per_individual => true, qi => [sex, birth_year], semi_sensitive => {birth_year: hidden}, \
     sensitive => diagnosis, k => 3, l => 2, block => BLOCK, seed => 11)",
    "SELECT * FROM anatomize_slppa((SELECT sex, birth_year, race, diagnosis FROM TABLE), one_row_per_individual => true, \
     qi => [sex, birth_year, race], sensitive => diagnosis, alpha => 1, beta => 0.4, gamma => 0.4, delta => 0.5, \
     tables => 2, block => BLOCK, seed => 11)",
    "SELECT * FROM anonymize_kl(TABLE, id => patient_id, qi => [birth_year, sex], sensitive => ward, k => 2, l => 2, \
     hierarchy => {ward: wards}, block => BLOCK, seed => 11)",
    "SELECT * FROM anonymize_kkm(TABLE, id => patient_id, qi => [birth_year, sex], sensitive => ward, k => 2, m => 2, \
     delta => 0.5, hierarchy => {ward: wards}, block => BLOCK, seed => 11)",
];

/// The statement that makes the hierarchy of wards that some calls use.
pub fn wards() -> String {
    let wards = [
        ("cardiology", "medicine"),
        ("emergency", "acute"),
        ("geriatrics", "medicine"),
        ("internal", "medicine"),
        ("maternity", "family"),
        ("neurology", "medicine"),
        ("oncology", "medicine"),
        ("orthopedics", "acute"),
        ("pediatrics", "family"),
        ("psychiatry", "medicine"),
        ("pulmonology", "medicine"),
        ("surgery", "acute"),
    ];
    let rows = wards.map(|(ward, house)| format!("('{ward}', '{house}', '*')"));
    format!("CREATE VIEW wards AS VALUES {}", rows.join(", "))
}

/// The call over a table, with blocks of so many individuals.
pub fn call(call: &str, table: &str, block: &str) -> String {
    call.replace("TABLE", table).replace("BLOCK", block)
}

#[test]
fn every_function_is_called() {
    // It publishes no table.
    let publishes = |function: &&&FunctionEntry| function.name != "anatomize_division";
    for function in FUNCTIONS.iter().filter(publishes) {
        let begin = format!("SELECT * FROM {}(", function.name);
        let called = |call: &&str| call.starts_with(&begin) && call.contains("block => BLOCK");
        assert!(
            CALLS.iter().any(called),
            "{} is not in CALLS",
            function.name
        );
    }
}

//! Bad input: every message names the function and the argument, says what is allowed, and holds no cell.

use crate::engine::{rows, with_patients_in};

/// A good call, to be spoiled.
const GOOD: &str = "id => name, qi => [gender, age, postcode], sensitive => disease, l => 3";

/// Calls that must be refused: the arguments of `anonymize_eir`, or a whole statement.
const CALLS: &[&str] = &[
    // The input.
    "",
    "id => name, qi => [age], sensitive => disease, l => 3",
    "patinets, id => name, qi => [age], sensitive => disease, l => 3",
    "nowhere.patients, id => name, qi => [age], sensitive => disease, l => 3",
    "'no/such/file.parquet', id => name, qi => [age], sensitive => disease, l => 3",
    "'no/such/*.csv', id => name, qi => [age], sensitive => disease, l => 3",
    "'Cargo.toml', id => name, qi => [age], sensitive => disease, l => 3",
    "'ftp://host/file.parquet', id => name, qi => [age], sensitive => disease, l => 3",
    "42, id => name, qi => [age], sensitive => disease, l => 3",
    "(SELECT 1 AS x), id => name, qi => [age], sensitive => disease, l => 3",
    "(SELECT nosuch FROM patients), id => name, qi => [age], sensitive => disease, l => 3",
    "patients, input => patients, id => name, qi => [age], sensitive => disease, l => 3",
    "no_such_function(3), id => name, qi => [age], sensitive => disease, l => 3",
    // Shape of the call.
    "patients, 3",
    "patients, {id: 'name'}, 4",
    "patients, id => name, 3",
    "*, id => name",
    "patients, {id: 'name', qi: ['age'], sensitive: 'disease', l: 3, colour: 'red'}",
    "patients, {id: 'name', qi: ['age'], sensitive: 'disease'}",
    // Roles.
    "patients, qi => [age], sensitive => disease, l => 3",
    "patients, id => name, sensitive => disease, l => 3",
    "patients, id => name, qi => [age], l => 3",
    "patients, id => name, qi => [], sensitive => disease, l => 3",
    "patients, id => nmae, qi => [age], sensitive => disease, l => 3",
    "patients, id => name, qi => [age, pstcode], sensitive => disease, l => 3",
    "patients, id => name, qi => [age], sensitive => salary, l => 3",
    "patients, id => name, qi => [age], sensitive => disease, keep => [ward], l => 3",
    "patients, id => \"Name\", qi => [age], sensitive => disease, l => 3",
    "patients, id => name, qi => [age, age], sensitive => disease, l => 3",
    "patients, id => name, qi => [age, name], sensitive => disease, l => 3",
    "patients, id => name, qi => [age, disease], sensitive => disease, l => 3",
    "patients, id => name, qi => [age], sensitive => disease, keep => [age], l => 3",
    "patients, id => 7, qi => [age], sensitive => disease, l => 3",
    "patients, id => [name, age], qi => [age], sensitive => disease, l => 3",
    "patients, id => name, qi => 7, sensitive => disease, l => 3",
    "patients, id => name, qi => [1, 2], sensitive => disease, l => 3",
    "patients, id => name, qi => {age: 1}, sensitive => disease, l => 3",
    "patients, id => name, qi => [age], sensitive => NULL, l => 3",
    "patients, id => name, id => age, qi => [age], sensitive => disease, l => 3",
    "(SELECT name, age AS individual, disease FROM patients), id => name, qi => [individual], sensitive => disease, l => 3",
    "(SELECT *, [age] AS ages FROM patients), id => name, qi => [ages], sensitive => disease, l => 3",
    "(SELECT *, INTERVAL '1 day' AS span FROM patients), id => name, qi => [span], sensitive => disease, l => 3",
    "(SELECT *, arrow_cast(1, 'Decimal256(50, 0)') AS big FROM patients), id => name, qi => [big], sensitive => disease, l => 3",
    // Parameters.
    "patients, id => name, qi => [age], sensitive => disease",
    "patients, id => name, qi => [age], sensitive => disease, l => 1",
    "patients, id => name, qi => [age], sensitive => disease, l => 0",
    "patients, id => name, qi => [age], sensitive => disease, l => -3",
    "patients, id => name, qi => [age], sensitive => disease, l => 2.5",
    "patients, id => name, qi => [age], sensitive => disease, l => 'many'",
    "patients, id => name, qi => [age], sensitive => disease, l => [3]",
    "patients, id => name, qi => [age], sensitive => disease, l => NULL",
    "patients, id => name, qi => [age], sensitive => disease, l => 1000001",
    "patients, id => name, qi => [age], sensitive => disease, l => $1",
    "patients, id => name, qi => [age], sensitive => disease, l => random()",
    "patients, id => name, qi => [age], sensitive => disease, k => 3",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, sensitiv => disease",
    // Options.
    "patients, id => name, qi => [age], sensitive => disease, l => 3, categorical => [name]",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, algorithm => 'danonymir'",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, block => 0",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, block => 'some'",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, notation => 'prose'",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, null_id => 'ignore'",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, null_sensitive => 'drop'",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, contradictory => 'first'",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, normalize => 'yes'",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, seed => [1]",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, domain => 7",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, domain => {age: 7}",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, domain => {age: ['x', 'y']}",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, domain => {age: [90, 20]}",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, domain => {age: [1, 2, 3]}",
    "patients, id => name, qi => [age], sensitive => disease, l => 3, domain => {height: [1, 2]}",
    "patients, id => name, qi => [age, gender], sensitive => disease, l => 3, domain => {gender: [['F']]}",
    // Data.
    "patients, id => name, qi => [age], sensitive => disease, l => 3, domain => {age: [35, 120]}",
    "patients, id => name, qi => [age, gender], sensitive => disease, l => 3, domain => {gender: ['F']}",
    "patients, id => name, qi => [age], sensitive => disease, l => 8",
    "(SELECT * FROM patients WHERE disease = 'Heart'), id => name, qi => [age], sensitive => disease, l => 2",
    "(SELECT * FROM patients WHERE name = 'Mike'), id => name, qi => [age], sensitive => disease, l => 2",
    "(SELECT * FROM patients WHERE age > 99), id => name, qi => [age], sensitive => disease, l => 2",
    "(SELECT nullif(name, 'Mike') AS name, age, disease FROM patients), id => name, qi => [age], sensitive => disease, l => 2",
    "(SELECT name, age, nullif(disease, 'HIV') AS disease FROM patients), id => name, qi => [age], sensitive => disease, l => 2",
    "(SELECT name, length(disease) AS age, disease FROM patients), id => name, qi => [age], sensitive => disease, l => 2",
    "(SELECT name, 1 / (age - 33) AS age, disease FROM patients), id => name, qi => [age], sensitive => disease, l => 2",
    "(SELECT name, age, CAST(disease AS INT) AS disease FROM patients), id => name, qi => [age], sensitive => disease, l => 2",
    "(SELECT name, CAST(name AS DATE) AS age, disease FROM patients), id => name, qi => [age], sensitive => disease, l => 2",
    "(SELECT name, arrow_cast(postcode, 'Int8') AS age, disease FROM patients), id => name, qi => [age], sensitive => disease, l => 2",
    "anonymize_ir(patients, id => name, qi => [age], sensitive => disease, k => 99), id => individual, qi => [disease], sensitive => disease, l => 2",
    // Models.
    "patients, id => name, qi => [age], sensitive => disease, l => 3, alpha => 0.4, beta => 0.6",
    "patients, id => name, qi => [age], sensitive => disease, alpha => 0.4",
    "patients, id => name, qi => [age], sensitive => disease, alpha => 1.5, beta => 0.6",
    "patients, id => name, qi => [age], sensitive => disease, alpha => 0.4, beta => 0",
    "patients, id => name, qi => [age], sensitive => disease, alpha => 0.1, beta => 0.6",
    "patients, id => name, qi => [age], sensitive => disease, alpha => 0.4, beta => 0.01",
    "SELECT * FROM anonymize_ir(patients, id => name, qi => [age], sensitive => disease)",
    "SELECT * FROM anonymize_ir(patients, id => name, qi => [age], sensitive => disease, l => 3)",
    "SELECT * FROM anonymize_ir(patients, id => name, qi => [age], sensitive => disease, k => 3, beta => 0.6)",
    "SELECT * FROM anonymize_ir(patients, id => name, qi => [age], sensitive => disease, k => 8)",
    "SELECT * FROM anonymize_ir(patients, id => name, qi => [age], sensitive => disease, k => 3, l => 9)",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, p => 2)",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 1)",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 2, alpha => 1)",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 2, max_category_share => 0.5)",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 9)",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 8, p => 2)",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 2, categories => [])",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 2, categories => [['a']])",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 2, categories => [['a'], []])",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 2, categories => [['a'], ['a']])",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 3, categories => [['a'], ['b']])",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 2, categories => [['a'], ['b']])",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 2, categories => nowhere)",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => disease, k => 3, p => 2, categories => patients)",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [gender], sensitive => age, k => 3, p => 2, categories => [['x', 'y'], [1]])",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => [disease, gender], k => 3, p => 2, categories => {gender: [['F'], ['M']]})",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], sensitive => [disease, gender], k => 3, p => 2, categories => [['F'], ['M']])",
    "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [age], k => 3, p => 2, categories => [['F'], ['M']])",
    "SELECT * FROM anonymize_eir(patients, id => name, qi => [age], sensitive => [disease, gender], l => 3)",
    "SELECT * FROM anonymize_eir(patients, id => name, qi => [age], sensitive => disease, l => 3, categories => [['F'], ['M']])",
    "SELECT * FROM similarity_attack(patients, id => name, qi => [age], sensitive => disease)",
    // Other functions.
    "SELECT * FROM sample_patients(individuals => 0)",
    "SELECT * FROM sample_patients(individuals => 'x')",
    "SELECT * FROM sample_patients(people => 3)",
    "SELECT * FROM sample_patients(1, 2, 3)",
];

/// What may never appear in a message: the cells of the table.
const CELLS: &[&str] = &[
    "Mike",
    "Lily",
    "Tim",
    "Jane",
    "Tina",
    "Ella",
    "Lucy",
    "10085",
    "10076",
    "10070",
    "Hypertension",
    "Leukaemia",
    "Cancer",
    "Diabetes",
    "Syphilis",
];

#[tokio::test(flavor = "multi_thread")]
async fn messages() {
    // One partition, so that the counts in messages do not depend on the release key.
    let ctx = with_patients_in(1).await;
    rows(
        &ctx,
        &format!("SELECT * FROM anonymize_eir(patients, {GOOD})"),
    )
    .await
    .unwrap();
    assert!(CALLS.len() >= 60);

    let mut report = String::new();
    for call in CALLS {
        let sql = if call.starts_with("SELECT") {
            (*call).to_owned()
        } else {
            format!("SELECT * FROM anonymize_eir({call})")
        };
        let message = match rows(&ctx, &sql).await {
            Ok(rows) => panic!("{call} gave {} rows", rows.len()),
            Err(error) => error.strip_backtrace(),
        };
        for cell in CELLS.iter().filter(|cell| !call.contains(**cell)) {
            assert!(!message.contains(cell), "{call} shows a cell: {message}");
        }
        report.push_str(&format!("{call}\n    {message}\n"));
    }
    insta::assert_snapshot!("messages", report);
}

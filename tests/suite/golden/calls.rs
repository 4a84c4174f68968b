//! What is called: every anonymizing function by default and with each of its options.

/// A function, what all its calls have in common, and the calls: their names, and what they add.
pub struct Calls {
    pub function: &'static str,
    common: &'static str,
    calls: &'static [(&'static str, &'static str)],
}

impl Calls {
    /// Names of calls and their SQL.
    pub fn all(&self) -> impl Iterator<Item = (String, String)> {
        self.calls.iter().map(|(name, more)| {
            let arguments = match *more {
                // Has a table and roles of its own.
                alone if alone.starts_with("visits") => alone.to_owned(),
                // Records that disagree are in a table of their own.
                more if more.contains("contradictory") => {
                    format!("{}, {more}", self.common.replace("visits", "moved"))
                }
                more => format!("{}, {more}", self.common),
            };
            let name = format!("{}, {name}", self.function);
            let function = self.function;
            (
                name,
                format!("SELECT * FROM {function}({arguments}, seed => 11)"),
            )
        })
    }

    /// The SQL of the call without options.
    pub fn default(&self) -> String {
        self.all().next().unwrap().1
    }
}

pub const CALLS: &[Calls] = &[
    Calls {
        function: "anonymize_ir",
        common: "visits, id => patient_id, qi => [sex, birth_year, race], sensitive => diagnosis",
        calls: &[
            ("default", "k => 3"),
            ("text", "k => 3, notation => 'text'"),
            ("block of 50", "k => 3, block => 50"),
            (
                "hierarchy",
                "k => 3, hierarchy => {birth_year: 'bins(5, 20)', race: 'mask(1)'}",
            ),
            ("contradictory cover", "k => 3, contradictory => 'cover'"),
            ("contradictory drop", "k => 3, contradictory => 'drop'"),
            ("k and l", "k => 3, l => 4"),
            ("alpha and beta", "alpha => 0.6, beta => 0.5"),
            ("keep", "k => 3, keep => [visit_date, ward]"),
            (
                "domain",
                "k => 3, domain => {birth_year: [1900, 2030]}, categorical => [sex]",
            ),
            ("normalize", "k => 3, normalize => true"),
            ("danonyir", "k => 3, algorithm => 'danonyir'"),
            ("mondrian", "k => 3, algorithm => 'mondrian'"),
            ("geneir", "k => 3, algorithm => 'geneir'"),
            ("best_cut", "k => 3, algorithm => 'best_cut'"),
        ],
    },
    Calls {
        function: "anonymize_eir",
        common: "visits, id => patient_id, qi => [sex, birth_year, race], sensitive => diagnosis",
        calls: &[
            ("default", "l => 3"),
            ("text", "l => 3, notation => 'text'"),
            ("block of 50", "l => 3, block => 50"),
            (
                "hierarchy",
                "l => 3, hierarchy => {birth_year: 'bins(5, 20)'}",
            ),
            ("contradictory cover", "l => 3, contradictory => 'cover'"),
            ("alpha and beta", "alpha => 0.6, beta => 0.5"),
            ("danonyir", "l => 3, algorithm => 'danonyir'"),
        ],
    },
    Calls {
        function: "anonymize_p_sensitive",
        common: "visits, id => patient_id, qi => [sex, birth_year], sensitive => ward",
        calls: &[
            ("default", "k => 3, p => 2"),
            ("text", "k => 3, p => 2, notation => 'text'"),
            ("block of 50", "k => 3, p => 2, block => 50"),
            (
                "hierarchy",
                "k => 3, p => 2, hierarchy => {birth_year: 'bins(5, 20)', sex: 'mask(1)'}",
            ),
            (
                "contradictory cover",
                "k => 3, p => 2, contradictory => 'cover'",
            ),
            (
                "categories",
                "k => 3, p => 2, categories => [['psychiatry', 'oncology', 'maternity'], ['internal', 'surgery', \
                 'emergency', 'cardiology', 'neurology', 'orthopedics', 'pediatrics', 'pulmonology', 'geriatrics']], \
                 max_category_share => 0.9",
            ),
            (
                "categories and alpha",
                "k => 3, p => 2, alpha => 1, categories => [['psychiatry', 'oncology', 'maternity'], ['internal', 'surgery', \
                 'emergency', 'cardiology', 'neurology', 'orthopedics', 'pediatrics', 'pulmonology', 'geriatrics']]",
            ),
            (
                "incognito",
                "k => 3, p => 2, algorithm => 'incognito', hierarchy => {birth_year: 'bins(5, 20)', sex: 'mask(1)'}",
            ),
        ],
    },
    Calls {
        function: "anonymize_kl",
        common: "visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, k => 3, l => 2",
        calls: &[
            ("default", "hierarchy => {ward: wards}"),
            ("text", "hierarchy => {ward: wards}, notation => 'text'"),
            ("block of 50", "hierarchy => {ward: wards}, block => 50"),
            (
                "hierarchy",
                "hierarchy => {ward: wards, birth_year: 'bins(5, 20)'}",
            ),
            (
                "contradictory cover",
                "hierarchy => {ward: wards}, contradictory => 'cover'",
            ),
            (
                "labels per individual",
                "hierarchy => {ward: wards}, output => 'individuals'",
            ),
            (
                "labels per individual, text",
                "hierarchy => {ward: wards}, output => 'individuals', notation => 'text'",
            ),
        ],
    },
    Calls {
        function: "anonymize_kkm",
        common: "visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, k => 2, m => 2, delta => 0.5",
        calls: &[
            ("default", "hierarchy => {ward: wards}"),
            ("text", "hierarchy => {ward: wards}, notation => 'text'"),
            ("block of 50", "hierarchy => {ward: wards}, block => 50"),
            (
                "hierarchy",
                "hierarchy => {ward: wards, birth_year: 'bins(5, 20)'}",
            ),
            (
                "contradictory cover",
                "hierarchy => {ward: wards}, contradictory => 'cover'",
            ),
            (
                "labels per individual",
                "hierarchy => {ward: wards}, output => 'individuals'",
            ),
        ],
    },
    Calls {
        function: "anonymize_lgb",
        common: "people, id => patient_id, qi => [sex, birth_year, education_years], sensitive => [diagnosis, ward], k => 3, \
                 semi_sensitive => {birth_year: hidden, education_years: 'race = ''black'''}",
        calls: &[
            ("default", "l => 2"),
            ("text", "l => 2, notation => 'text'"),
            ("block of 50", "l => 2, block => 50"),
            (
                "hierarchy",
                "l => 2, hierarchy => {birth_year: 'bins(5, 20)'}",
            ),
            ("detached", "l => 2, output => 'detached'"),
            (
                "detached, text",
                "l => 2, output => 'detached', notation => 'text'",
            ),
            (
                "small_pattern mask",
                "l => 2, block => 50, small_pattern => 'mask'",
            ),
            ("mdp", "l => 2, strategy => 'mdp'"),
            (
                "l and t",
                "l => {birth_year: 3, diagnosis: 4, education_years: 2}, t => {ward: 0.8}",
            ),
        ],
    },
    Calls {
        function: "anatomize_slppa",
        common: "people, id => patient_id, qi => [sex, birth_year, race, education_years], sensitive => birth_month, beta => 0.4",
        calls: &[
            (
                "default",
                "alpha => 1, gamma => 0.4, delta => 0.5, tables => 2",
            ),
            (
                "blocks of records",
                "visits, one_row_per_individual => true, qi => [sex, birth_year, race], sensitive => diagnosis, beta => 0.4, \
                 alpha => 1, gamma => 0.4, delta => 0.5, tables => 2, block => 1000",
            ),
            ("asn", "gamma => 0.5, method => 'asn'"),
            ("slicing", "method => 'slicing', tables => 2"),
            (
                "slppa_similar",
                "alpha => 1, gamma => 0.4, delta => 0.5, method => 'slppa_similar'",
            ),
            (
                "given division",
                "alpha => 1, gamma => 0.4, delta => 0.5, division => [[sex, race], [birth_year, education_years]]",
            ),
        ],
    },
    Calls {
        function: "anatomize_division",
        common: "people, id => patient_id, qi => [sex, birth_year, race, education_years], sensitive => birth_month",
        calls: &[
            ("default", "tables => 2"),
            ("slicing", "method => 'slicing', tables => 2"),
            (
                "given division",
                "division => [[sex, race], [birth_year, education_years]]",
            ),
        ],
    },
];

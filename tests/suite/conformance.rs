//! What every model and every algorithm must do. New entries of the lists join by being in them.

use datafusion_anonymize::internals::algorithm::{ALGORITHMS, AlgorithmEntry, Cancel};
use datafusion_anonymize::internals::check::{
    ClassRequirement, Listed, SensitiveColumn, SensitiveTable, Sensitivity, ShownClasses,
    check_sensitivity, verify,
};
use datafusion_anonymize::internals::model::{MODELS, Member, Model, ParameterKind, Parameters};
use datafusion_anonymize::internals::table::{
    Block, Categorical, Fingerprints, Hierarchical, Hierarchy, LossTree, Numeric, QuasiIdentifier,
    Sensitive,
};
use datafusion_anonymize::{FUNCTIONS, TABLE_FUNCTIONS};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray, UInt32Array};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::documents::page;

/// A model with parameters as a user would write them.
struct Case {
    model: Box<dyn Model>,
    twin: Twin,
    /// Whether values have categories.
    categories: bool,
}

/// What the verifier makes of a model's name and parameters.
enum Twin {
    Counts(ClassRequirement),
    Sensitivity(Sensitivity),
}

/// Every model with several values of its parameters.
fn cases() -> Vec<Case> {
    let mut cases = vec![];
    let classes = |function: &str| {
        FUNCTIONS
            .iter()
            .any(|f| f.name == function && f.system_name() == "classes")
    };
    // Models of other systems are tested with what they publish.
    for entry in MODELS.iter().filter(|m| classes(m.function)) {
        for (count, share) in [(2, "0.7"), (3, "0.5"), (4, "0.34")] {
            let texts: Vec<(&str, String)> = entry
                .parameters
                .iter()
                .map(|p| match p.kind {
                    ParameterKind::Integer { .. } => (p.name, count.to_string()),
                    ParameterKind::Share | ParameterKind::Weight => (p.name, share.to_owned()),
                })
                .collect();
            let mut parameters = Parameters::default();
            for (parameter, (name, text)) in entry.parameters.iter().zip(&texts) {
                parameters.set(*name, parameter.parse(text).unwrap());
            }
            let text = |name: &str| {
                texts
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, t)| t.as_str())
            };
            let counts = ClassRequirement::named(entry.name, text).map(Twin::Counts);
            let twin =
                counts.or_else(|| Sensitivity::named(entry.name, text).map(Twin::Sensitivity));
            cases.push(Case {
                model: (entry.build)(&parameters).unwrap(),
                twin: twin.unwrap_or_else(|| panic!("check/ does not know {}", entry.name)),
                categories: entry.parameters.iter().any(|p| p.name == "categories"),
            });
        }
    }
    cases
}

/// The number of categories; values are in the category of their number modulo this.
const CATEGORIES: u32 = 4;

/// The same block without and with categories.
fn blocks(rng: &mut ChaCha8Rng) -> [Block; 2] {
    let n = rng.random_range(1..=40);
    let mut fingerprints = Fingerprints::new();
    let mut categorised = Fingerprints::with_levels(vec![CATEGORIES]);
    let mut records = vec![];
    let values = rng.random_range(2..=9);
    for _ in 0..n {
        let mut codes: Vec<u32> = (0..rng.random_range(1..=4))
            .map(|_| rng.random_range(0..values))
            .collect();
        records.push(codes.len() as u32);
        let sensitive = codes.iter().map(|code| Sensitive {
            code: *code,
            attribute: 0,
            category: code % CATEGORIES,
        });
        categorised.push_sensitive(&mut sensitive.collect());
        fingerprints.push(&mut codes);
    }
    let ages: Vec<u32> = (0..n).map(|_| rng.random_range(0..=9)).collect();
    let numeric = Numeric {
        lo: ages.clone(),
        hi: ages,
        step: 2,
    };
    let categorical = Categorical {
        offsets: (0..=n).collect(),
        codes: (0..n).map(|_| rng.random_range(0..4)).collect(),
        cardinality: 4,
        step: 6,
    };
    // Six leaves: two, two and two below the root.
    let parents: Vec<_> = (0..6).map(|leaf| Some(6 + leaf / 2)).collect();
    let parents = [parents, vec![Some(9), Some(9), Some(9), None]].concat();
    let (hierarchy, _) = Hierarchy::from_parents(&parents).unwrap();
    let losses = (0..hierarchy.len()).map(|node| match hierarchy.size(node) {
        1 => 0,
        2 => 6,
        _ => 18,
    });
    let leaves: Vec<u32> = (0..n).map(|_| rng.random_range(0..6)).collect();
    let hierarchical = Hierarchical {
        lo: leaves.clone(),
        hi: leaves,
        tree: LossTree {
            losses: Arc::new(losses.collect()),
            hierarchy: Arc::new(hierarchy),
        },
    };
    let qi = vec![
        QuasiIdentifier::Numeric(numeric),
        QuasiIdentifier::Categorical(categorical),
        QuasiIdentifier::Hierarchical(hierarchical),
    ];
    [
        Block::new(qi.clone(), fingerprints, records.clone(), 18),
        Block::new(qi, categorised, records, 18),
    ]
}

/// Whether the verifier accepts these individuals as one class.
fn accepted(block: &Block, class: &[u32], case: &Case) -> bool {
    let (mut names, mut values) = (vec![], vec![]);
    for i in class {
        let fingerprints = block.fingerprints();
        for (value, count) in fingerprints.of(*i).iter().zip(fingerprints.counts(*i)) {
            for _ in 0..*count {
                names.push(i.to_string());
                values.push(*value);
            }
        }
    }
    let names: ArrayRef = Arc::new(StringArray::from(names));
    let values: ArrayRef = Arc::new(UInt32Array::from(values));
    match &case.twin {
        Twin::Counts(requirement) => {
            let published = ShownClasses::from_columns(&[], &names, &values).unwrap();
            verify(&published, requirement).is_ok()
        }
        Twin::Sensitivity(requirement) => {
            let all: Vec<u32> = (0..9).collect();
            let category: Vec<u32> = all.iter().map(|value| value % CATEGORIES).collect();
            let all: ArrayRef = Arc::new(UInt32Array::from(all));
            let column = SensitiveColumn {
                values: &values,
                listed: case.categories.then_some(Listed {
                    values: &all,
                    category: &category,
                    categories: CATEGORIES,
                }),
            };
            let table = SensitiveTable::try_new(&[], &vec![0; values.len()], &names, &[column]);
            check_sensitivity(&table.unwrap().records(), requirement).is_ok()
        }
    }
}

fn satisfied(block: &Block, class: &[u32], model: &dyn Model) -> bool {
    let mut tally = model.tally();
    for i in class {
        tally.add(Member::of(block, *i));
    }
    tally.satisfied()
}

#[test]
fn models_agree_with_the_verifier() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let cases = cases();
    for _ in 0..1_000 {
        let blocks = blocks(&mut rng);
        for case in &cases {
            let block = &blocks[usize::from(case.categories)];
            let model = case.model.as_ref();
            let n = block.len() as u32;
            let cut = rng.random_range(0..=n);
            let (left, right): (Vec<u32>, Vec<u32>) = ((0..cut).collect(), (cut..n).collect());
            for class in [&left, &right] {
                let holds = satisfied(block, class, model);
                assert_eq!(
                    holds,
                    !class.is_empty() && accepted(block, class, case),
                    "{}",
                    model.describe()
                );
                assert!(
                    !holds || class.len() >= model.min_individuals(),
                    "{}",
                    model.describe()
                );
            }
            // The closure flags tell the truth.
            let whole: Vec<u32> = (0..n).collect();
            let (a, b) = (
                satisfied(block, &left, model),
                satisfied(block, &right, model),
            );
            if model.closure().union && a && b {
                assert!(
                    satisfied(block, &whole, model),
                    "{}: union",
                    model.describe()
                );
            }
            if model.closure().extension && a {
                assert!(
                    satisfied(block, &whole, model),
                    "{}: extension",
                    model.describe()
                );
            }
            // Where the model says that nothing can be reached, nothing is.
            let infeasible = model
                .feasible(&mut whole.iter().map(|i| Member::of(block, *i)))
                .is_err();
            assert!(!(infeasible && (a || b)), "{}: feasible", model.describe());
        }
    }
}

/// Every algorithm as it is by default, and with each of its options at both ends; with how many tables to try it on.
fn built_algorithms() -> Vec<(&'static AlgorithmEntry, Parameters, usize)> {
    let mut built = vec![];
    for entry in ALGORITHMS {
        built.push((*entry, Parameters::default(), 1_000));
        for option in entry.options {
            let texts = match option.kind {
                ParameterKind::Integer { min, max } => vec![min.to_string(), max.to_string()],
                ParameterKind::Share | ParameterKind::Weight => vec!["0.3".to_owned()],
            };
            for text in texts {
                let mut options = Parameters::default();
                options.set(option.name, option.parse(&text).unwrap());
                built.push((*entry, options, 200));
            }
        }
    }
    built
}

#[test]
fn algorithms_form_valid_classes() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let cases = cases();
    for (entry, options, tables) in built_algorithms() {
        let algorithm = (entry.build)(&options).unwrap();
        for _ in 0..tables {
            let blocks = blocks(&mut rng);
            for case in cases
                .iter()
                .filter(|c| (entry.serves)(c.model.as_ref()).is_ok())
            {
                let block = &blocks[usize::from(case.categories)];
                let run = || {
                    algorithm
                        .form_classes(block, case.model.as_ref(), &Cancel::default())
                        .unwrap()
                };
                let classes = run();
                assert_eq!(
                    classes,
                    run(),
                    "{}: the same block gives the same classes",
                    entry.name
                );
                let mut all: Vec<u32> = classes.classes.concat();
                all.extend(&classes.suppressed);
                all.sort_unstable();
                assert_eq!(
                    all,
                    (0..block.len() as u32).collect::<Vec<_>>(),
                    "{}: nobody lost",
                    entry.name
                );
                for class in &classes.classes {
                    assert!(accepted(block, class, case), "{}", entry.name);
                }
            }
        }
        let cancelled = Cancel::default();
        cancelled.cancel();
        let [block, _] = blocks(&mut rng);
        assert!(
            algorithm
                .form_classes(&block, cases[0].model.as_ref(), &cancelled)
                .is_err(),
            "{} stops when told",
            entry.name
        );
    }
}

/// The page that tells of a function.
fn page_of(function: &str) -> String {
    page(match function {
        "estimated" => "estimate",
        "query_error_summary" => "query_error",
        "publish" => "release",
        other => other,
    })
}

#[test]
fn everything_has_a_page() {
    let lists = page("functions");
    for algorithm in ALGORITHMS {
        let text = page(algorithm.name);
        assert!(text.len() > 500, "{}.md says something", algorithm.name);
        let link = format!("({}.md)", algorithm.name);
        assert!(lists.contains(&link), "functions.md lists {link}");
        for option in algorithm.options {
            let name = format!("`{}`", option.name);
            assert!(text.contains(&name), "{}.md: {name}", algorithm.name);
        }
    }
    // All models are on one page, each below its own anchor.
    let models = page("models");
    for model in MODELS {
        let anchor = format!("<a id=\"{}\"></a>", model.name);
        let (_, section) = models.split_once(&anchor).expect("an anchor per model");
        let section = section.split("<a id=").next().unwrap_or_default();
        assert!(section.len() > 500, "models.md tells of {}", model.name);
    }
    for function in TABLE_FUNCTIONS.iter() {
        let text = page_of(function.name);
        assert!(text.len() > 500, "a page tells of {}", function.name);
        let name = format!("`{}`", function.name);
        let link = format!("({}.md)", function.name);
        let listed = lists.contains(&name) || lists.contains(&link);
        assert!(listed, "functions.md lists {name}");
        // Options of algorithms are on the pages of these.
        let options = ALGORITHMS.iter().flat_map(|a| a.options);
        let options: Vec<&str> = options.map(|option| option.name).collect();
        for (at, argument) in function.arguments.iter().enumerate() {
            let name = format!("`{}`", argument.name);
            // What all anonymizing functions take is on a page of its own; what stands first may be shown without a name.
            let first = at < function.positional && text.contains(argument.name);
            let told = first || argument.name == "input" || text.contains(&name);
            let function = function.name;
            assert!(
                told || options.contains(&argument.name),
                "the page of {function} does not tell of {name}"
            );
        }
    }
    let arguments = page("arguments");
    let names = |function: &str| -> Vec<&str> {
        let function = TABLE_FUNCTIONS.iter().find(|f| f.name == function).unwrap();
        function.arguments.iter().map(|a| a.name).collect()
    };
    let parameters = MODELS.iter().flat_map(|model| model.parameters);
    let options = ALGORITHMS.iter().flat_map(|algorithm| algorithm.options);
    let own: Vec<&str> = parameters.chain(options).map(|p| p.name).collect();
    for name in names("anonymize_ir") {
        let name_in_code = format!("`{name}`");
        let told = own.contains(&name) || arguments.contains(&name_in_code);
        assert!(told, "arguments.md lists {name_in_code}");
    }
}

//! Which room may call which.

use std::fs;
use std::path::{Path, PathBuf};

use datafusion_anonymize::FUNCTIONS;

use crate::files;

/// One room in a line: a folder or file below `src`, what it knows of DataFusion (`arrow`: Arrow and nothing else, `engine`:
/// all), and the rooms that it may use besides itself, all of which stand above it. The longest prefix of a path decides to
/// which room it belongs, so a folder in a room can be a room of its own; then it has to be named wherever it is used, also
/// by the room around it.
const ROOMS: &str = "
    repeatable                arrow
    engine/threads            arrow
    table                     arrow   engine/threads
    model                     arrow   engine/threads table
    algorithm                 arrow   engine/threads table model
    check                     arrow
    measure                   arrow   check
    error                     engine
    engine                    engine
    system/anatomy/slppa      arrow   table model algorithm
    system/buckets/lgb        arrow   table model algorithm
    system/fingerprints/sets  arrow   engine/threads table model algorithm
    spec                      engine  table error
    system                    engine  engine/threads table model algorithm check error system/anatomy/slppa
                                      system/buckets/lgb system/fingerprints/sets spec
    call/value                engine
    release                   engine  error
    call/source               engine  table error system release call/value
    call/arguments            engine  table error call/value call/source
    pipeline                  engine  engine/threads table model algorithm check measure error engine
                                      system/anatomy/slppa spec system
    measure/sql               engine  table measure error system/buckets/lgb system call/value call/source
                                      call/arguments pipeline
    publish                   engine  table check measure error spec system release pipeline
    planner                   engine  error engine spec system pipeline publish
    call                      engine  model algorithm error spec system release call/value call/source call/arguments
                                      pipeline measure/sql publish
    register                  engine  system measure/sql planner call
";

/// A room: its path, whether it may know all of DataFusion, and what it may use.
struct Room {
    path: Vec<&'static str>,
    engine: bool,
    uses: Vec<&'static str>,
}

impl Room {
    fn name(&self) -> String {
        self.path.join("/")
    }
}

fn rooms(table: &'static str) -> Vec<Room> {
    let mut rooms: Vec<Room> = vec![];
    for line in table.lines() {
        let mut words = line.split_whitespace().peekable();
        // A line that begins far to the right goes on with the room before.
        if let Some(room) = rooms
            .last_mut()
            .filter(|_| line.starts_with(&" ".repeat(20)))
        {
            room.uses.extend(words);
        } else if words.peek().is_some() {
            let path = words.next().unwrap().split('/').collect();
            let engine = match words.next() {
                Some("arrow") => false,
                Some("engine") => true,
                other => panic!("{line}: {other:?} is neither arrow nor engine"),
            };
            let uses = words.collect();
            rooms.push(Room { path, engine, uses });
        }
    }
    rooms
}

/// The room that a path of the crate belongs to.
fn room_of<'a>(rooms: &'a [Room], path: &[String]) -> Option<&'a Room> {
    let own = rooms.iter().filter(|room| {
        room.path.len() <= path.len() && room.path.iter().zip(path).all(|(a, b)| a == b)
    });
    own.max_by_key(|room| room.path.len())
}

/// What in a file of the crate breaks a rule. `module` is the path of the file's module.
fn broken(rooms: &[Room], module: &[String], text: &str) -> Vec<String> {
    let Some(room) = room_of(rooms, module) else {
        return vec![format!("{} is in no room", module.join("/"))];
    };
    let code = production(text);
    let mut broken = vec![];
    for path in paths(&code, "crate").chain(paths(&code, "super")) {
        let used = absolute(module, &path.segments);
        let allowed = room_of(rooms, &used).is_some_and(|other| {
            other.path == room.path || room.uses.contains(&other.name().as_str())
        });
        if !allowed {
            let (line, path) = (path.line, path.segments.join("::"));
            let used = used.join("::");
            broken.push(format!("line {line}: {path} is crate::{used}"));
        }
    }
    for path in paths(&code, "datafusion").filter(|_| !room.engine) {
        if path.segments.get(1).is_none_or(|module| module != "arrow") {
            let (line, path) = (path.line, path.segments.join("::"));
            broken.push(format!("line {line}: {path} is more than Arrow"));
        }
    }
    broken
}

/// The code that is not only there for tests, without comments that have a line of their own.
fn production(text: &str) -> String {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let lines = code.lines().map(|line| match line.trim_start() {
        comment if comment.starts_with("//") => "",
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A path as it is written.
struct Written {
    line: usize,
    segments: Vec<String>,
}

/// All paths that begin with a word; `crate::{a, b::c}` are two.
fn paths<'a>(code: &'a str, first: &'a str) -> impl Iterator<Item = Written> + 'a {
    code.match_indices(first).flat_map(move |(at, _)| {
        let (before, rest) = (&code[..at], &code[at + first.len()..]);
        let inner = before.ends_with(|c: char| is_word(c) || c == ':');
        let mut found = vec![];
        // pub(in crate::a) shows something to others, and uses nothing.
        if !inner && rest.starts_with("::") && !before.ends_with("pub(in ") {
            branches(&code[at..], &[], &mut found);
        }
        let line = 1 + before.matches('\n').count();
        let found = found.into_iter();
        found.map(move |segments| Written { line, segments })
    })
}

/// Adds the paths of a tree such as `a::{b, c::d}`, and returns what follows it.
fn branches<'a>(code: &'a str, before: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let code = code.trim_start();
    if let Some(mut rest) = code.strip_prefix('{') {
        loop {
            rest = rest.trim_start();
            if let Some(rest) = rest.strip_prefix('}') {
                return rest;
            }
            let after = branches(rest, before, found).trim_start();
            // What is not written as `use` trees are has no more branches.
            rest = match after.strip_prefix(',') {
                Some(next) => next,
                None if after.starts_with('}') => after,
                None => return after,
            };
        }
    }
    let end = code.find(|c| !is_word(c)).unwrap_or(code.len());
    let (word, rest) = code.split_at(end);
    let path = [before, &[word.to_owned()]].concat();
    match rest.strip_prefix("::") {
        Some(next) if next.starts_with(|c| is_word(c) || c == '{') => branches(next, &path, found),
        _ => {
            found.push(path);
            // `x as y` and `*` end a branch like any other.
            rest.trim_start_matches(|c: char| !"{},;\n".contains(c))
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A path from the root of the crate.
fn absolute(module: &[String], written: &[String]) -> Vec<String> {
    if written[0] == "crate" {
        return written[1..].to_vec();
    }
    let up = written.iter().take_while(|word| *word == "super").count();
    let kept = &module[..module.len().saturating_sub(up)];
    [kept, &written[up..]].concat()
}

/// The path of the module in a file.
fn module_of(src: &Path, file: &Path) -> Vec<String> {
    let path = file.strip_prefix(src).unwrap().with_extension("");
    let mut module: Vec<String> = path
        .iter()
        .map(|word| word.to_str().unwrap().to_owned())
        .collect();
    module.pop_if(|last| last == "mod");
    module
}

#[test]
fn rooms_import_only_what_they_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rooms = rooms(ROOMS);
    for (place, room) in rooms.iter().enumerate() {
        let path = src.join(room.name());
        let exists = path.is_dir() || path.with_extension("rs").is_file();
        assert!(exists, "there is no {}", room.name());
        for other in &room.uses {
            let above = rooms[..place].iter().any(|r| r.name() == *other);
            assert!(above, "{other} does not stand above {}", room.name());
        }
    }
    let mut all = vec![];
    // Tests may use everything, and the root names everything.
    for (file, text) in production_files(&src) {
        if file == src.join("lib.rs") {
            continue;
        }
        for fault in broken(&rooms, &module_of(&src, &file), &text) {
            all.push(format!("{}: {fault}", file.display()));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// The files of a folder that are not only there for tests.
fn production_files(folder: &Path) -> impl Iterator<Item = (PathBuf, String)> + use<> {
    let files = files::below(folder, "rs").into_iter();
    let files = files.filter(|file| file.with_extension("").iter().all(|part| part != "tests"));
    files.map(|file| {
        let text = fs::read_to_string(&file).unwrap();
        (file, text)
    })
}

/// Files that name a function although they are not a part of its system, and why.
const NAME_FUNCTIONS: &[(&str, &str)] = &[
    ("src/system/", "systems know their functions"),
    ("src/model/", "a model says which function offers it"),
    ("src/check/", "the verifier reads calls on its own"),
    (
        "cli/src/init.rs",
        "a job to fill in begins with some function",
    ),
];

/// Where options of one system are read, and why.
const READ_OPTIONS: &[(&str, &str)] = &[
    ("src/system/", "systems know their options"),
    ("src/spec/options/", "here they are"),
];

/// Other code reads what a system says of itself (`SystemProperties`), and does not ask which one it is.
#[test]
fn only_systems_ask_which_system_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names: Vec<String> = FUNCTIONS
        .iter()
        .map(|f| format!("\"{}\"", f.name))
        .collect();
    let mut asked = vec![];
    for (file, text) in ["src", "cli/src"]
        .iter()
        .flat_map(|f| production_files(&root.join(f)))
    {
        let place = file.strip_prefix(root).unwrap().to_str().unwrap();
        let may =
            |exceptions: &[(&str, &str)]| exceptions.iter().any(|(e, _)| place.starts_with(e));
        for (at, line) in production(&text).lines().enumerate() {
            let function = !may(NAME_FUNCTIONS) && names.iter().any(|name| line.contains(name));
            let options = !may(READ_OPTIONS) && line.contains("SystemOptions::");
            let system = !may(READ_OPTIONS)
                && (line.contains(".system_name()") || line.contains("properties().name"));
            if function || options || system {
                asked.push(format!("{place}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert!(asked.is_empty(), "{}", asked.join("\n"));
}

/// Files that take columns by their position, and why.
const BY_POSITION: &[(&str, &str)] = &[
    (
        "src/system/layout.rs",
        "here it is known where columns stand",
    ),
    ("src/check/buckets/attribute.rs", "an interval has two ends"),
    ("src/engine/partition.rs", "a row that is made to be hashed"),
    ("src/system/anatomy/slppa/", "coded columns have numbers"),
    (
        "src/measure/",
        "columns stand as the functions that measure ask for them",
    ),
    ("src/pipeline/operator/classes", "as the node asks for them"),
    ("src/pipeline/operator/compare", "as the node asks for them"),
    (
        "src/pipeline/operator/cover.rs",
        "as the node asks for them",
    ),
    ("src/pipeline/operator/loss.rs", "as the node asks for them"),
];

/// Whether a line takes a column by its position, or computes one.
fn takes_by_position(line: &str) -> bool {
    let digit = |call: &str| {
        line.match_indices(call)
            .any(|(at, _)| line[at + call.len()..].starts_with(|c: char| c.is_ascii_digit()))
    };
    let counts = [
        "num_columns()",
        "qi().len()",
        "qi_count()",
        "sensitive().len()",
    ];
    let computed = counts.iter().any(|count| {
        line.match_indices(count).any(|(at, _)| {
            let after = line[at + count.len()..].trim_start();
            // What stands before the count is `a + spec.qi().len()`, say.
            let before = line[..at].trim_end_matches(|c: char| is_word(c) || "().".contains(c));
            let before = before.trim_end();
            let signs = ['+', '-'];
            after.starts_with(signs) || before.ends_with(signs)
        })
    });
    let sliced = ["columns()[", "fields()["]
        .iter()
        .any(|slice| line.contains(slice));
    digit(".column(") || digit(".field(") || sliced || computed
}

/// `src/system/layout.rs` alone knows where columns stand; others take them by name.
#[test]
fn columns_are_taken_by_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut taken = vec![];
    for (file, text) in ["src", "cli/src"]
        .iter()
        .flat_map(|f| production_files(&root.join(f)))
    {
        let place = file.strip_prefix(root).unwrap().to_str().unwrap();
        if BY_POSITION.iter().any(|(e, _)| place.starts_with(e)) {
            continue;
        }
        for (at, line) in production(&text).lines().enumerate() {
            if takes_by_position(line) {
                taken.push(format!("{place}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert!(taken.is_empty(), "{}", taken.join("\n"));
    for line in [
        "rows.column(3)",
        "&batch.columns()[2..]",
        "schema.fields()[1..].iter()",
        "schema.field(0).name()",
        "2 + spec.qi().len()",
        "batch.num_columns() - 1",
        "places[qi_end..qi_end + self.spec.sensitive().len()]",
    ] {
        assert!(takes_by_position(line), "{line}");
    }
    for line in ["rows.column(at)", "0..rows", "spec.qi().len() > 3"] {
        assert!(!takes_by_position(line), "{line}");
    }
}

/// The rules on made-up files of a made-up crate.
#[test]
fn rules_can_be_broken() {
    let rooms = rooms(
        "
        table        arrow
        model        arrow   table
        system/sets  arrow   table
        system       engine  model
                             system/sets
        ",
    );
    let broken = |module: &str, text: &str| {
        let module: Vec<String> = module.split('/').map(str::to_owned).collect();
        broken(&rooms, &module, text).join("\n")
    };
    // Itself, and what it may use, in all ways of writing.
    for (module, text) in [
        ("model/ir", "use super::Model;\nuse crate::table::Block;"),
        ("model", "use super::table::{Block, Cut as C, coding::*};"),
        ("system/sets/rmr", "use super::super::super::table::Block;"),
        ("system/sets/rmr", "use super::step;\nuse crate::table;"),
        (
            "system/learn",
            "use super::sets::Step;\nuse datafusion::common::Result;",
        ),
        (
            "table",
            "use datafusion::arrow::{array::ArrayRef, ipc};\npub(in crate::system) fn f() {}",
        ),
        (
            "table",
            "// use crate::model::Model;\n#[cfg(test)]\nmod tests { use crate::model::Model; }",
        ),
    ] {
        assert_eq!(broken(module, text), "", "{module}: {text}");
    }
    for (module, text, said) in [
        (
            "table/block",
            "\nuse crate::model::Model;",
            "line 2: crate::model::Model is crate::model::Model",
        ),
        (
            "table/block",
            "use super::super::model::Model;",
            "line 1: super::super::model::Model is crate::model::Model",
        ),
        (
            "table/block",
            "fn f() { super::super::model::f::<u8>() }",
            "line 1: super::super::model::f is crate::model::f",
        ),
        (
            "model/ir",
            "use crate::{\n table::{A, coding::B},\n system::sets::{\n C, D},\n};",
            "line 1: crate::system::sets::C is \
          crate::system::sets::C\nline 1: crate::system::sets::D is crate::system::sets::D",
        ),
        // A room in a room is not the room around it, whichever uses the other.
        (
            "system/sets/rmr",
            "use super::super::Spec;",
            "line 1: super::super::Spec is crate::system::Spec",
        ),
        (
            "system/sets",
            "use super::Spec;",
            "line 1: super::Spec is crate::system::Spec",
        ),
        (
            "table",
            "use crate::Spec;",
            "line 1: crate::Spec is crate::Spec",
        ),
        ("tables", "", "tables is in no room"),
        (
            "table",
            "use datafusion::{arrow::array, common::Result};",
            "line 1: datafusion::common::Result is more than Arrow",
        ),
        (
            "table",
            "fn f() -> datafusion::common::Result<()> {",
            "line 1: datafusion::common::Result is more than Arrow",
        ),
    ] {
        assert_eq!(broken(module, text), said, "{module}: {text}");
    }
}

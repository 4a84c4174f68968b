//! Tables in object stores and on web servers, as the program reads and writes them.
//!
//! The tests of S3 need a server and run where ANONYMIZE_S3_ENDPOINT names one, as in `.ci/run`:
//!
//! ```sh
//! pip install 'moto[server]' && moto_server -p 5555 &
//! ANONYMIZE_S3_ENDPOINT=http://127.0.0.1:5555 cargo test -p anonymize --test stores
//! ```

#![allow(clippy::expect_used, clippy::panic)] // a test that cannot start the program has failed

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

const SAMPLE: &str = "SELECT * FROM sample_patients(individuals => 300, seed => 1)";

/// A release of the table at a location.
fn release(table: &str) -> String {
    format!(
        "SELECT * FROM anonymize_eir({table}, id => patient_id, qi => [birth_year, sex, race], \
         sensitive => diagnosis, l => 3, block => 100, seed => 7)"
    )
}

#[test]
fn s3_is_read_and_written() {
    let Some((endpoint, bucket)) = server("rows") else {
        return;
    };
    let folder = tempfile::tempdir().expect("folder");
    let local = folder.path().join("patients.parquet");
    let local = local.to_str().expect("UTF-8");
    Program::new().sql(&format!("COPY ({SAMPLE}) TO '{local}'"));
    let expected = Program::new().rows(&release(&format!("'{local}'")));
    assert!(expected.len() > 1_000);

    // By environment variables: paths in SQL, input and output.
    let program = || Program::at(&endpoint);
    let (input, output) = (
        format!("s3://{bucket}/in/"),
        format!("s3://{bucket}/out/release/"),
    );
    program().sql(&format!(
        "COPY (SELECT * FROM '{local}') TO '{input}' STORED AS PARQUET"
    ));
    program().sql(&format!(
        "COPY ({}) TO '{output}' STORED AS PARQUET",
        release(&format!("'{input}'"))
    ));
    let published = program().rows(&format!("SELECT * FROM '{output}'"));
    assert_eq!(published, expected);

    // The measuring commands take the same paths.
    let audit = program().run(&[
        "audit",
        &output,
        "--id",
        "individual",
        "--qi",
        "birth_year,sex,race",
        "--sensitive",
        "diagnosis",
        "--require",
        "eir_l=3",
    ]);
    assert!(audit.contains("eir_l"), "{audit}");

    // By options of the table, without any environment variable; a second store of the same account.
    let table = format!(
        "CREATE EXTERNAL TABLE patients STORED AS PARQUET LOCATION '{input}' OPTIONS (\
         'aws.endpoint' '{endpoint}', 'aws.allow_http' 'true', 'aws.region' 'us-east-1', \
         'aws.access_key_id' 'key', 'aws.secret_access_key' 'secret')"
    );
    let rows = Program::new().rows(&format!("{table}; {}", release("patients")));
    assert_eq!(rows, expected);

    // What does not exist is an error that names the place and ends the program with its usual code.
    let missing = format!("SELECT * FROM 's3://{bucket}-missing/none.parquet'");
    let (code, message) = program().fails(&["sql", "-q", "-c", &missing]);
    assert_eq!(code, Some(1), "{message}");
    assert!(
        message.starts_with("error: ") && message.contains("missing"),
        "{message}"
    );
}

/// A release in S3, by a job and in SQL, also where the target is the only thing that names the bucket; once, whoever
/// comes second.
#[test]
fn releases_go_to_s3() {
    let Some((endpoint, bucket)) = server("releases") else {
        return;
    };
    let program = || Program::at(&endpoint);
    let folder = tempfile::tempdir().expect("folder");
    let job = folder.path().join("job.toml");
    let target = |name: &str| format!("s3://{bucket}/releases/{name}/");
    let text = format!(
        "target = '{}'\nreport.enabled = false\n\
         input.patients.sql = 'SELECT * FROM sample_patients(individuals => 300, seed => 1)'\n\
         [publish]\nfunction = 'anonymize_eir'\nid = 'patient_id'\nqi = ['birth_year', 'sex', 'race']\n\
         sensitive = 'diagnosis'\nl = 3\n",
        target("job")
    );
    fs::write(&job, text).expect("written");
    let run = ["run", job.to_str().expect("UTF-8")];
    let said = program().run(&run);
    assert!(said.contains("true of the input"), "{said}");
    // What a release is made of is complete, and attains what was asked for.
    let folder_of = |name: &str| {
        let prefix = format!("releases/{name}/");
        let manifest = ask(
            &endpoint,
            "GET",
            &format!("/{bucket}/{prefix}manifest.json"),
        );
        let manifest: Value = serde_json::from_str(&manifest).expect("a manifest");
        let files = manifest["files"].as_array().expect("files").iter();
        let files = files.map(|file| file["path"].as_str().expect("a path").to_owned());
        let mut names: Vec<String> = files.chain(["manifest.json".to_owned()]).collect();
        names.sort();
        let listed = ask(
            &endpoint,
            "GET",
            &format!("/{bucket}?list-type=2&prefix={prefix}"),
        );
        let listed = listed
            .split("<Key>")
            .skip(1)
            .filter_map(|key| key.split('<').next());
        let mut listed: Vec<_> = listed.filter_map(|key| key.strip_prefix(&prefix)).collect();
        listed.sort_unstable();
        assert_eq!(listed, names);
        format!(
            "{}data-{}/",
            target(name),
            manifest["release"].as_str().expect("a name")
        )
    };
    let attains = |name: &str| {
        let files = folder_of(name);
        let roles = ["--id", "individual", "--qi", "birth_year,sex,race"];
        let asked = ["--sensitive", "diagnosis", "--require", "eir_l=3"];
        // Its files, and the release through its manifest.
        for published in [files, target(name)] {
            program().run(&[&["audit", published.as_str()], &roles[..], &asked[..]].concat());
        }
        let read = format!(
            "SELECT count(*) > 0 AS n FROM release('{}', verify => true)",
            target(name)
        );
        assert_eq!(program().rows(&read), [r#"{"n":true}"#]);
    };
    attains("job");
    let (code, said) = program().fails(&run);
    assert_eq!(code, Some(1));
    assert!(said.contains("holds a release already"), "{said}");

    let publish = format!(
        "SELECT \"table\" FROM publish('{}', ({}))",
        target("sql"),
        release(&format!("({SAMPLE})"))
    );
    assert_eq!(program().rows(&publish), [r#"{"table":"published"}"#]);
    attains("sql");
    let (code, said) = program().fails(&["sql", "-q", "-c", &publish]);
    assert_eq!(code, Some(1));
    assert!(said.contains("holds a release already"), "{said}");

    // Our own output is no input; and no target lies in an input.
    let input = folder_of("job");
    for (to, why) in [
        (target("again"), "is itself a release"),
        (format!("{input}again/"), "lie in each other"),
    ] {
        let again = format!(
            "CREATE EXTERNAL TABLE r STORED AS PARQUET LOCATION '{input}'; \
             SELECT * FROM publish('{to}', (SELECT * FROM anonymize_eir( \
               (SELECT individual, diagnosis, character_length(diagnosis) AS n FROM r), \
               id => individual, qi => [n], sensitive => diagnosis, l => 2, contradictory => 'cover')))"
        );
        let (code, said) = program().fails(&["sql", "-q", "-c", &again]);
        assert_eq!(code, Some(1));
        assert!(said.contains(why), "{said}");
    }

    // Two at once: one wins, and the other leaves nothing.
    let setting = format!("target={}", target("rivals"));
    let rivals = [0, 1].map(|_| {
        let mut rival = program().0;
        rival.args(run).args(["--set", &setting]);
        rival.stdout(Stdio::null()).stderr(Stdio::piped());
        rival.spawn().expect("start")
    });
    let ended = rivals.map(|rival| rival.wait_with_output().expect("end"));
    let won = ended.iter().filter(|output| output.status.success());
    assert_eq!(won.count(), 1, "{ended:?}");
    let lost = ended.iter().find(|output| !output.status.success());
    let said = String::from_utf8_lossy(&lost.expect("one").stderr).into_owned();
    let why = [
        "got a release of another run",
        "holds a release already",
        "is gone",
        "not found",
        "No such",
        "NoSuchKey",
    ];
    assert!(why.iter().any(|why| said.contains(why)), "{said}");
    attains("rivals");
}

#[test]
fn web_servers_are_read() {
    let folder = tempfile::tempdir().expect("folder");
    let (csv, parquet) = (
        folder.path().join("patients.csv"),
        folder.path().join("patients.parquet"),
    );
    for file in [&csv, &parquet] {
        Program::new().sql(&format!("COPY ({SAMPLE}) TO '{}'", file.display()));
    }
    let files = [
        ("/patients.csv", &csv),
        ("/data/patients.parquet", &parquet),
    ];
    let files = files.map(|(path, file)| (path.to_owned(), fs::read(file).expect("written")));
    let address = serve(files.into());

    let expected = Program::new().rows(&release(&format!("'{}'", parquet.display())));
    let published = Program::new().rows(&release(&format!(
        "'http://{address}/data/patients.parquet'"
    )));
    assert_eq!(published, expected);
    let count = format!(
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'http://{address}/patients.csv'; SELECT count(*) AS n FROM t"
    );
    let records = Program::new().rows(&count);
    assert_eq!(
        records,
        Program::new().rows(&format!("SELECT count(*) AS n FROM ({SAMPLE})"))
    );
}

/// The first location in its session: nothing else has made a store for the server.
#[test]
fn hierarchies_are_read_from_web_servers() {
    let rows = "F;*\nM;*\n";
    let files = [("/trees/sex.csv".to_owned(), rows.as_bytes().to_vec())];
    let address = serve(files.into());
    let folder = tempfile::tempdir().expect("folder");
    let local = folder.path().join("sex.csv");
    fs::write(&local, rows).expect("written");
    let release = |hierarchy: &str| {
        format!(
            "SELECT * FROM anonymize_ir(({SAMPLE}), id => patient_id, qi => [birth_year, sex], sensitive => diagnosis, \
             k => 200, hierarchy => {{sex: '{hierarchy}'}}, seed => 7)"
        )
    };
    let expected = Program::new().rows(&release(&local.display().to_string()));
    assert!(expected.iter().any(|row| row.contains(r#""sex":"*""#)));
    for more in ["", "?token=secret"] {
        let url = format!("http://{address}/trees/sex.csv{more}");
        assert_eq!(Program::new().rows(&release(&url)), expected, "{more}");
    }
    let missing = release(&format!("http://{address}/trees/none.csv"));
    let (code, message) = Program::new().fails(&["sql", "-q", "-c", &missing]);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("none.csv"), "{message}");
}

#[test]
fn unknown_schemes_are_refused() {
    let (code, message) =
        Program::new().fails(&["sql", "-q", "-c", "SELECT * FROM 'ftp://host/t.parquet'"]);
    assert_eq!(code, Some(1));
    assert!(message.contains("ftp"), "{message}");
}

/// The program, without the environment's own settings of object stores.
struct Program(Command);

impl Program {
    fn new() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
        let own = env::vars().map(|(name, _)| name);
        for name in
            own.filter(|name| name.starts_with("AWS_") || name.to_lowercase().ends_with("_proxy"))
        {
            command.env_remove(name);
        }
        // The files of whoever runs the test must not be asked, nor the address of a cloud's machines.
        command
            .env("AWS_CONFIG_FILE", "/nonexistent")
            .env("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
            .env("AWS_EC2_METADATA_DISABLED", "true");
        Self(command)
    }

    /// The program with the settings of an S3 server.
    fn at(endpoint: &str) -> Self {
        Self::new()
            .with("AWS_ENDPOINT", endpoint)
            .with("AWS_ALLOW_HTTP", "true")
            .with("AWS_REGION", "us-east-1")
            .with("AWS_ACCESS_KEY_ID", "key")
            .with("AWS_SECRET_ACCESS_KEY", "secret")
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    fn run(mut self, args: &[&str]) -> String {
        let output = self.0.args(args).output().expect("the program starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}\n{errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn sql(self, sql: &str) -> String {
        self.run(&["sql", "-q", "--format", "nd-json", "-c", sql])
    }

    /// The lines of a result, sorted.
    fn rows(self, sql: &str) -> Vec<String> {
        let mut lines: Vec<_> = self.sql(sql).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    fn fails(mut self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.0.args(args).output().expect("the program starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        (output.status.code(), errors.into_owned())
    }
}

/// The S3 server, and a new bucket on it; none if there is no server.
fn server(purpose: &str) -> Option<(String, String)> {
    let endpoint = env::var("ANONYMIZE_S3_ENDPOINT").ok();
    let Some(endpoint) = endpoint.filter(|e| !e.is_empty()) else {
        eprintln!("ANONYMIZE_S3_ENDPOINT is not set: S3 is not tested");
        return None;
    };
    let bucket = format!("anonymize-{purpose}-{}", std::process::id());
    ask(&endpoint, "PUT", &format!("/{bucket}"));
    Some((endpoint, bucket))
}

/// What an S3 server answers to a request.
fn ask(endpoint: &str, method: &str, path: &str) -> String {
    let address = endpoint.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address)
        .unwrap_or_else(|error| panic!("no S3 server at {endpoint}: {error}"));
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: AWS key:secret\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    body.to_owned()
}

/// Serves files on loopback until the test ends: HEAD, GET and GET of a range.
fn serve(files: BTreeMap<String, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let files = files.clone();
            thread::spawn(move || answer(stream, &files));
        }
    });
    address
}

fn answer(mut stream: TcpStream, files: &BTreeMap<String, Vec<u8>>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let request = lines.next()?.ok()?;
    let headers: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    let mut words = request.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let Some(file) = files.get(path) else {
        let nothing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(nothing).ok();
    };
    let range = headers.iter().find_map(|header| {
        let (name, value) = header.split_once(':')?;
        let (from, to) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
        let (size, to) = (file.len(), to.parse::<usize>().ok());
        let range = match from.parse::<usize>().ok() {
            Some(from) => from..to.map_or(size, |to| size.min(to + 1)),
            None => size.saturating_sub(to?)..size,
        };
        name.eq_ignore_ascii_case("range").then_some(range)
    });
    let (status, part) = match range {
        Some(range) => {
            let place = format!("{}-{}/{}", range.start, range.end - 1, file.len());
            (
                format!("206 Partial Content\r\nContent-Range: bytes {place}"),
                &file[range],
            )
        }
        None => ("200 OK".to_owned(), &file[..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\n\
         Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nConnection: close\r\n\r\n",
        part.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    if method == "GET" {
        stream.write_all(part).ok()?;
    }
    Some(())
}

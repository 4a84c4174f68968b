//! Where and when it was measured, and what.

use std::fs;
use std::process::Command;

use crate::options::Options;

pub fn print(options: &Options) {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|l| l.strip_prefix("model name"));
    let cpu = cpu.map_or("", |l| l.trim_start_matches([' ', '\t', ':']));
    let memory = said("free", &["-m"]);
    let memory = memory.lines().nth(1);
    println!(
        "{} cores of {cpu}, {} MB, {}, commit {}, {} build, load {}, pool {}\n",
        std::thread::available_parallelism().map_or(1, usize::from),
        memory
            .and_then(|l| l.split_whitespace().nth(1))
            .unwrap_or("?"),
        said("date", &["-u", "+%Y-%m-%d"]),
        said("git", &["describe", "--always", "--dirty", "--exclude=*"]),
        if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        },
        said("cut", &["-d ", "-f1", "/proc/loadavg"]),
        options
            .pool
            .map_or("without limit".to_owned(), |mb| format!("{mb} MB")),
    );
}

fn said(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output();
    let text = done.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
    text.unwrap_or_default()
}

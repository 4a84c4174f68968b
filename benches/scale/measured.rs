//! Runs jobs and looks at them from outside.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use datafusion::common::{Result, exec_datafusion_err};

use crate::job::{Job, Said};

/// What a job says of itself, and its peak of resident memory in MB.
#[derive(Debug, Clone)]
pub struct Measured {
    pub said: Said,
    pub peak: f64,
}

/// The fastest of several runs by CPU time, with the largest peak of memory.
pub fn best(job: &Job, repeat: usize) -> Result<Measured> {
    let mut best = measure(job)?;
    for _ in 1..repeat {
        let next = measure(job)?;
        let peak = best.peak.max(next.peak);
        if next.said.cpu_seconds < best.said.cpu_seconds {
            best = next;
        }
        best.peak = peak;
    }
    Ok(best)
}

/// Runs a job in a process of its own; one thread gets one core.
pub fn measure(job: &Job) -> Result<Measured> {
    let program = std::env::current_exe()?;
    let mut command = if job.threads == 1 {
        let mut pinned = Command::new("taskset");
        pinned.args(["-c", "0"]).arg(program);
        pinned
    } else {
        Command::new(program)
    };
    // As the program does where its memory is limited, and where it is not.
    let kept = match job.pool {
        Some(_) => "dirty_decay_ms:100",
        None => "thp:always,oversize_threshold:0,dirty_decay_ms:10000",
    };
    let allocator = format!("background_thread:true,{kept}");
    command.env("_RJEM_MALLOC_CONF", allocator);
    let json = serde_json::to_string(job).map_err(|e| exec_datafusion_err!("{e}"))?;
    let mut child = command
        .args(["--job", &json])
        .stdout(Stdio::piped())
        .spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0.0f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak = peak.max(resident(&status_file));
        thread::sleep(Duration::from_millis(10));
    };
    let mut text = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut text)?;
    }
    if !status.success() {
        return Err(exec_datafusion_err!("failed: {}", job.sql));
    }
    let said =
        serde_json::from_str(text.trim()).map_err(|e| exec_datafusion_err!("{e}: {text}"))?;
    Ok(Measured { said, peak })
}

/// The kernel's own high-water mark of a process, in MB.
fn resident(status_file: &str) -> f64 {
    let status = fs::read_to_string(status_file).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() / 1024.0
}

//! Standard output and the ways in which others end the program: a closed pipe, Ctrl-C and other signals.

use std::io::{self, Write, stdout};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use datafusion_anonymize::release::remove_unfinished;

use crate::secrets::hide;
use crate::{progress, temporary};

/// Standard output. Ends the program, as the signal would in C, when the reader has gone: the default
/// of Rust's `println!` is a panic.
#[derive(Debug)]
pub struct Output;

/// A line on standard output about a job, whose values may come from the environment.
pub fn say(line: &str) -> io::Result<()> {
    writeln!(Output, "{}", hide(line))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        end_if_closed(stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        end_if_closed(stdout().flush())
    }
}

fn end_if_closed<T>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => end(128 + 13),
        result => result,
    }
}

/// Set when the program is about to end with a code of its own.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends the program at once, and leaves no temporary file and no half of a release.
fn end(code: i32) -> ! {
    ENDING.store(true, Ordering::SeqCst);
    temporary::remove();
    remove_unfinished();
    exit(code)
}

/// Does not return if the program is about to end: a statement that failed because its temporary files were taken away
/// is not what the program should end with.
pub fn wait_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// From now on, Ctrl-C and requests to terminate end the program at once.
pub fn end_at_interrupt() -> io::Result<()> {
    end_at(true)
}

/// From now on, requests to terminate end the program at once. Ctrl-C has another meaning in a shell.
pub fn end_at_termination() -> io::Result<()> {
    end_at(false)
}

/// It has a thread of its own, because the threads of the runtime may all be busy computing.
fn end_at(interrupt: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || {
            if let Ok(signal) = runtime.block_on(signal(interrupt)) {
                progress::clear_line();
                end(128 + signal);
            }
        })?;
    Ok(())
}

/// The number of the first signal that comes.
#[cfg(unix)]
async fn signal(interrupt: bool) -> io::Result<i32> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c(), if interrupt => result.map(|()| 2),
        _ = hangup.recv() => Ok(1),
        _ = terminate.recv() => Ok(15),
    }
}

#[cfg(not(unix))]
async fn signal(interrupt: bool) -> io::Result<i32> {
    if !interrupt {
        std::future::pending::<()>().await;
    }
    tokio::signal::ctrl_c().await.map(|()| 2)
}

//! Standard output and the ways in which others end the program: a closed pipe, Ctrl-C and other signals.

use std::io::{self, IsTerminal, Write, stdout};
use std::process::exit;
use std::str;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use datafusion_anonymize::publish::{remove_unfinished, visible_lines};

use crate::secrets::hide;
use crate::{progress, temporary};

/// Standard output. Ends the program, as the signal would in C, when the reader has gone: the default
/// of Rust's `println!` is a panic. What would act on a terminal is escaped on one.
#[derive(Debug)]
pub struct Output;

/// A line on standard output about a job, whose values may come from the environment.
pub fn say(line: &str) -> io::Result<()> {
    writeln!(Output, "{}", hide(line))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stdout = stdout();
        if !stdout.is_terminal() {
            return end_if_closed(stdout.write(bytes));
        }
        let (shown, taken) = for_terminal(bytes);
        end_if_closed(stdout.write_all(&shown).map(|()| taken))
    }

    fn flush(&mut self) -> io::Result<()> {
        end_if_closed(stdout().flush())
    }
}

/// What a terminal is shown of some bytes, and of how many of them: a character may be cut off at their end.
fn for_terminal(bytes: &[u8]) -> (Vec<u8>, usize) {
    let valid = match str::from_utf8(bytes) {
        Ok(text) => text.len(),
        Err(error) => error.valid_up_to(),
    };
    match str::from_utf8(&bytes[..valid]) {
        Ok(text) if valid > 0 => (visible_lines(text).into_bytes(), valid),
        _ => (bytes[..1.min(bytes.len())].to_vec(), 1.min(bytes.len())),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_acted_upon() {
        let bytes = "ä\u{1b}[2J\tb\n".as_bytes();
        let shown = "ä\\u{1b}[2J\tb\n".as_bytes().to_vec();
        assert_eq!(for_terminal(bytes), (shown, bytes.len()));
        assert_eq!(for_terminal(&bytes[1..]), (bytes[1..2].to_vec(), 1));
        assert_eq!(for_terminal(b"a\xc3"), (b"a".to_vec(), 1));
        assert_eq!(for_terminal(b""), (vec![], 0));
    }
}

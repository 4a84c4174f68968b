//! A line on standard error that says what takes so long.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Short work needs no line.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Shows what is being done and for how long, until it is dropped.
///
/// Only on a terminal, and only after a second; the line is gone before `drop` returns, so whatever is
/// printed next begins on a clean one.
#[derive(Debug)]
pub struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Starts the clock.
    pub fn start(what: &'static str) -> Self {
        if !stderr().is_terminal() {
            return Self { running: None };
        }
        let (stop, stopped) = channel();
        let clock = std::thread::Builder::new()
            .name("progress".into())
            .spawn(move || {
                let start = Instant::now();
                let mut wait = PATIENCE;
                let mut frames = FRAMES.iter().cycle();
                while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    wait = TICK;
                    let frame = frames.next().unwrap_or(&' ');
                    let line = format!("\r{frame} {what} … {} s", start.elapsed().as_secs());
                    let _ = stderr().write_all(line.as_bytes());
                }
                if wait == TICK {
                    clear_line();
                }
            });
        // A machine that has no thread to spare can do without the line.
        Self {
            running: clock.ok().map(|clock| (stop, clock)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, clock)) = self.running.take() {
            drop(stop);
            let _ = clock.join();
        }
    }
}

/// Empties the current line of standard error, if that is a terminal.
pub fn clear_line() {
    let mut stderr = stderr();
    if stderr.is_terminal() {
        let _ = stderr.write_all(b"\r\x1b[2K");
    }
}

//! What takes so long, and how far it is, on standard error.

use std::io::{IsTerminal, Write, stderr};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use datafusion_anonymize::{Phase, Step};

/// Short work needs no line.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How to tell how far work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Style {
    /// For people: a line that changes, on a terminal only, after a second
    Auto,
    /// For machines: a line of JSON per phase that ended
    Json,
}

static FORM: OnceLock<Style> = OnceLock::new();

/// From now on, this is how it is told.
pub fn tell(form: Style) {
    // It is said once.
    let _ = FORM.set(form);
}

/// Shows what is being done, how far it is and for how long, until it is dropped.
///
/// The line is gone before `drop` returns, so whatever is printed next begins on a clean one.
#[derive(Debug)]
pub struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Starts the clock.
    pub fn start(what: &'static str) -> Self {
        Self::of(what, Vec::new)
    }

    /// The same, with the phases up to the one that work is in.
    pub fn of(what: &'static str, steps: impl Fn() -> Vec<Step> + Send + 'static) -> Self {
        let json = FORM.get() == Some(&Style::Json);
        if !json && !stderr().is_terminal() {
            return Self { running: None };
        }
        let (stop, stopped) = channel();
        let clock = std::thread::Builder::new()
            .name("progress".into())
            .spawn(move || {
                let mut phases = Phases::new();
                let mut wait = if json { TICK } else { PATIENCE };
                let mut shown = false;
                let mut frames = FRAMES.iter().cycle();
                while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    wait = TICK;
                    let steps = steps();
                    phases.see(&steps);
                    if json {
                        phases.tell_ended(&steps, false);
                    } else {
                        shown = true;
                        let frame = frames.next().unwrap_or(&' ');
                        let line = format!("\r\x1b[2K{frame} {}", phases.line(what, steps.last()));
                        let _ = stderr().write_all(line.as_bytes());
                    }
                }
                if json {
                    let steps = steps();
                    phases.see(&steps);
                    phases.tell_ended(&steps, true);
                }
                if shown {
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

/// Phases as they were seen.
struct Phases {
    start: Instant,
    began: Vec<(Phase, Instant)>,
    told: usize,
}

impl Phases {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            began: vec![],
            told: 0,
        }
    }

    fn see(&mut self, steps: &[Step]) {
        for step in steps {
            if !self.began.iter().any(|(phase, _)| *phase == step.phase) {
                self.began.push((step.phase, Instant::now()));
            }
        }
    }

    fn line(&self, what: &str, step: Option<&Step>) -> String {
        let seconds = self.start.elapsed().as_secs();
        let began = step.and_then(|step| {
            let began = self.began.iter().find(|(phase, _)| *phase == step.phase);
            began.map(|(_, began)| (step, began.elapsed()))
        });
        match began {
            Some((step, elapsed)) => format!("{} … {seconds} s", line(step, elapsed)),
            None => format!("{what} … {seconds} s"),
        }
    }

    /// Tells of phases that ended: all but the last, and that if nothing comes after it.
    fn tell_ended(&mut self, steps: &[Step], all: bool) {
        let ended = if all {
            steps.len()
        } else {
            steps.len().saturating_sub(1)
        };
        let now = Instant::now();
        while self.told < ended {
            let (step, next) = (steps[self.told], self.began.get(self.told + 1));
            let began = self.began.get(self.told).map_or(now, |(_, began)| *began);
            let seconds = (next.map_or(now, |(_, next)| *next) - began).as_secs_f64();
            let mut told = serde_json::json!({
                "phase": step.phase.name(),
                "seconds": (seconds * 1000.0).round() / 1000.0,
            });
            if step.done > 0 {
                told["records"] = step.done.into();
            }
            let _ = writeln!(stderr(), "{told}");
            self.told += 1;
        }
    }
}

/// `gathering 1,200,000 of 46,000,000 records, 400,000/s, 2 min left`.
fn line(step: &Step, elapsed: Duration) -> String {
    let Step { phase, done, of } = *step;
    let mut line = phase.name().to_owned();
    if done == 0 {
        return line;
    }
    line += &format!(" {}", grouped(done));
    if let Some(of) = of {
        line += &format!(" of {}", grouped(of));
    }
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    line += &format!(" records, {}/s", grouped(rate as u64));
    if let Some(left) = of
        .map(|of| of.saturating_sub(done))
        .filter(|left| *left > 0)
    {
        line += &format!(", {} left", duration(left as f64 / rate));
    }
    line
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn duration(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// Empties the current line of standard error, if that is a terminal.
pub fn clear_line() {
    let mut stderr = stderr();
    if stderr.is_terminal() {
        let _ = stderr.write_all(b"\r\x1b[2K");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_rate_and_time_left() {
        let line = |done, of, seconds| {
            let phase = Phase::Gathering;
            line(&Step { phase, done, of }, Duration::from_secs(seconds))
        };
        assert_eq!(
            line(1_200_000, Some(46_000_000), 3),
            "gathering 1,200,000 of 46,000,000 records, 400,000/s, 112 s left"
        );
        assert_eq!(line(500, None, 5), "gathering 500 records, 100/s");
        assert_eq!(
            line(500, Some(500), 5),
            "gathering 500 of 500 records, 100/s"
        );
        assert_eq!(
            line(100, Some(100_000), 1),
            "gathering 100 of 100,000 records, 100/s, 16 min left"
        );
        assert_eq!(line(0, Some(9), 5), "gathering");
        assert_eq!(duration(86_400.0), "24 h");
    }
}

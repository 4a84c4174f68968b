//! Standard output and the two ways in which others end the program: a closed pipe and Ctrl-C.

use std::io::{self, Write, stdout};
use std::process::exit;

use crate::progress;

/// Standard output. Ends the program, as the signal would in C, when the reader has gone: the default
/// of Rust's `println!` is a panic.
#[derive(Debug)]
pub struct Output;

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
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit(128 + 13),
        result => result,
    }
}

/// From now on, Ctrl-C ends the program at once.
///
/// It has a thread of its own, because the threads of the runtime may all be busy computing.
pub fn end_at_interrupt() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    std::thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || {
            if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                progress::clear_line();
                exit(128 + 2);
            }
        })?;
    Ok(())
}

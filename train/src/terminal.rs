//! What is said on standard output.

pub(crate) use engine::progress::grouped;
use std::io::{ErrorKind, Write};

/// Prints a line to standard output. A reader that went away has seen enough: that is no error.
pub(crate) fn print(line: &str) -> std::io::Result<()> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

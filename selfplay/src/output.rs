//! Output to the terminal. A closed pipe, as in `selfplay … | head`, is no error.

use anyhow::Context;
use std::io::{ErrorKind, Write, stdout};

/// Prints text as it is. A closed pipe is no error; a full disk is.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("can't write to standard output"),
    }
}

//! Output to the terminal. A closed pipe, as in `selfplay … | head`, is no error.

use anyhow::Context;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use std::io::{ErrorKind, Write, stdout};

/// Prints text as it is. A closed pipe is no error; a full disk is.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("can't write to standard output"),
    }
}

/// A text table without borders. The columns of numbers, by their place, are aligned to the right.
pub(crate) fn table<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    has_numbers: impl Fn(usize) -> bool,
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header).add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if has_numbers(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

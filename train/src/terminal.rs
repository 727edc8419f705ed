//! Text on standard output.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, Table, Width};
pub(crate) use engine::progress::grouped;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// The width of the names in [`Facts`], without those that are longer.
const NAMES: u16 = 14;

/// Prints a line to standard output. A reader that has closed its end is no error.
pub(crate) fn print(line: &str) -> std::io::Result<()> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Lines of a name and its value.
#[derive(Debug, Default)]
pub(crate) struct Facts(Table);

impl Facts {
    pub(crate) fn add(&mut self, name: &str, fact: impl Display) {
        self.0.add_row([name.to_owned(), fact.to_string()]);
    }

    /// Adds a line if there is a value.
    pub(crate) fn add_some(&mut self, name: &str, fact: Option<impl Display>) {
        if let Some(fact) = fact {
            self.add(name, fact);
        }
    }

    /// The lines, the last with its end.
    pub(crate) fn finish(mut self) -> String {
        self.0.load_style(NOTHING);
        for (column, right) in self.0.column_iter_mut().zip([1, 0]) {
            column.set_padding((0, right));
        }
        let names = ColumnConstraint::LowerBoundary(Width::Fixed(NAMES + 1));
        self.0.set_constraints([names]);
        self.0.trim_fmt() + "\n"
    }
}

/// Rows of right-aligned columns, two spaces apart, the last with its end.
pub(crate) fn columns(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { 0 } else { 2 }, 0));
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_lined_up() {
        let mut facts = Facts::default();
        facts.add("a", 1);
        facts.add_some("missing", None::<u8>);
        facts.add("b", 2);
        let text = facts.finish();
        assert_eq!(text, "a              1\nb              2\n");
        let mut facts = Facts::default();
        facts.add("a", 1);
        facts.add("fifteen letters", 2);
        let text = facts.finish();
        assert_eq!(text, "a               1\nfifteen letters 2\n");
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let rows = [["a", "±20"], ["long", "3"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(columns(rows), "   a  ±20\nlong    3\n");
    }
}

//! How reports are laid out for a person.

use crate::terminal::grouped;
use std::fmt;

/// Lines of a name and what it is.
#[derive(Debug, Default)]
pub(super) struct Facts(Vec<(String, String)>);

impl Facts {
    pub(super) fn add(&mut self, name: &str, fact: impl fmt::Display) {
        self.0.push((name.to_owned(), fact.to_string()));
    }

    /// Adds a line where there is something to say.
    pub(super) fn add_some(&mut self, name: &str, fact: Option<impl fmt::Display>) {
        if let Some(fact) = fact {
            self.add(name, fact);
        }
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.0.iter().map(|(name, _)| name.chars().count());
        let width = widths.max().unwrap_or(0).max(14);
        for (name, fact) in &self.0 {
            writeln!(f, "{name:<width$} {fact}")?;
        }
        Ok(())
    }
}

/// Columns as wide as what stands in them, numbers at the right.
pub(super) fn table(rows: &[Vec<String>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:>width$}"))
            .collect();
        writeln!(f, "{}", cells.join("  "))?;
    }
    Ok(())
}

/// A share of 1 in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A number that is not known exactly, in three digits.
pub(super) fn about(number: f64) -> String {
    let digits = number.abs().max(1.0).log10().floor();
    let unit = 10f64.powf((digits - 2.0).max(0.0));
    grouped(((number / unit).round() * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_have_three_digits() {
        let texts = [0.0, 7.4, 999.6, 1_234.0, 852_846.3].map(about);
        assert_eq!(texts, ["0", "7", "1,000", "1,230", "853,000"]);
        assert_eq!(about(f64::NAN), "0");
    }

    #[test]
    fn names_and_columns_are_lined_up() {
        let mut facts = Facts::default();
        facts.add("a", 1);
        facts.add_some("missing", None::<u8>);
        facts.add("fifteen letters", 2);
        let text = facts.to_string();
        assert_eq!(text, "a               1\nfifteen letters 2\n");
    }
}

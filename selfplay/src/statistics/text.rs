//! The same for people: a name, then what there is under it, line by line.

use super::CalibrationReport;
use std::fmt::{self, Formatter};

/// A line of a report.
pub(crate) fn line(f: &mut Formatter<'_>, name: &str, what: fmt::Arguments) -> fmt::Result {
    writeln!(f, "{name:<12}{what}")
}

/// A share with its 95% interval.
pub(crate) fn percent(share: f64, [low, high]: [f64; 2]) -> String {
    let [share, low, high] = [share, low, high].map(|share| 100.0 * share);
    format!("{share:.1}% ({low:.1} to {high:.1})")
}

/// Whose values they are, and how they were held against results.
pub(crate) fn calibration(
    f: &mut Formatter<'_>,
    whose: &str,
    report: &CalibrationReport,
) -> fmt::Result {
    let (Some(brier), Some(loss)) = (report.brier, report.log_loss) else {
        return Ok(());
    };
    let values = report.values;
    line(
        f,
        "calibration",
        format_args!(
            "of {whose} values, {values} in decided games: Brier score {brier:.4}, log loss {loss:.4} nats"
        ),
    )?;
    line(
        f,
        "",
        format_args!("  Gold wins     values   mean%    won%   error"),
    )?;
    for bin in &report.bins {
        let (from, to) = (100.0 * bin.from, 100.0 * bin.to);
        if let (Some(mean), Some(won)) = (bin.mean, bin.won_by_gold) {
            let (values, mean, won) = (bin.values, 100.0 * mean, 100.0 * won);
            let error = bin.error.map_or_else(String::new, |error| {
                format!(" {:>7}", format!("±{:.1}", 100.0 * error))
            });
            line(
                f,
                "",
                format_args!("{from:>3.0} to {to:>3.0}% {values:>9} {mean:>7.1} {won:>7.1}{error}"),
            )?;
        }
    }
    Ok(())
}

//! The parts of a match that several machines play: found, and put together.

use super::{Compared, MatchFolder, MatchPlan, OPENINGS, another, read_results, record_of};
use crate::openings::MAX_BYTES;
use crate::pit::result::GameSummary;
use anyhow::{Context, Result, ensure};
use engine::files::read_whole;
use engine::progress::say;
use engine::run::write_file;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl MatchFolder {
    /// The folders of a match's parts in `out`.
    ///
    /// # Errors
    /// No folder there has a part of this match; how the nearest part differs.
    pub(in crate::pit) fn parts(out: &Path, plan: &MatchPlan) -> Result<Vec<PathBuf>> {
        let wanted = |kept: &MatchPlan| {
            let part = Some(kept.part?);
            Some(MatchPlan {
                part,
                ..plan.clone()
            })
        };
        let Compared { same, nearest } = Compared::of(out, wanted, |_, message, _| {
            say(&format!("{message}; its games are left out"));
        })?;
        ensure!(
            !same.is_empty(),
            "--join: {} has no part of this match{}",
            out.display(),
            nearest.map_or_else(String::new, |nearest| format!("; {}", another(&nearest)))
        );
        Ok(same.into_iter().map(|(path, _)| path).collect())
    }

    /// Takes over the games that are over of parts, also of parts that are being played, and adds them to those that are `known`.
    ///
    /// # Errors
    /// A game is known with another record, although the match `is_repeatable`. What the disk says.
    pub(in crate::pit) fn join(
        &mut self,
        parts: &[PathBuf],
        is_repeatable: bool,
        known: &mut BTreeMap<u64, GameSummary>,
    ) -> Result<()> {
        for path in parts {
            let (openings, own) = (path.join(OPENINGS), self.openings());
            if openings.exists() && !own.exists() {
                // So that a pair begun in a part and ended here has one opening.
                let bytes = read_whole(&openings, MAX_BYTES);
                let bytes = bytes.with_context(|| format!("can't read {}", openings.display()))?;
                write_file(&own, &bytes)?;
            }
            let (games, mut torn) = read_results(path)?;
            let (mut joined, mut others, mut known_before) = (0, 0, 0);
            for (number, summary) in games {
                let Some(record) = record_of(path, &summary) else {
                    torn += 1;
                    continue;
                };
                if let Some(first) = known.get(&number) {
                    let is_other = first.record_hash != summary.record_hash;
                    ensure!(
                        !(is_other && is_repeatable),
                        "--join: game {number} of {} is another game than in {} or a part before: move the wrong folder away",
                        path.display(),
                        self.path.display()
                    );
                    if is_other {
                        others += 1;
                    } else {
                        known_before += 1;
                    }
                    continue;
                }
                self.keep(&summary, &record)?;
                known.insert(number, summary);
                joined += 1;
            }
            let more = [
                (known_before, "were there already"),
                (torn, "are torn and left out"),
                (others, "were played elsewhere too and are left out"),
            ];
            let more = more.into_iter().filter(|(games, _)| *games > 0);
            let more: String = more
                .map(|(games, why)| format!("; {games} {why}"))
                .collect();
            say(&format!(
                "took over {joined} games of {}{more}",
                path.display()
            ));
        }
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pit::plan::tests::plan;
    use crate::pit::result::tests::summary;

    #[test]
    fn joined_parts_that_disagree_are_named() {
        let out = tempfile::tempdir().unwrap();
        let parts = ["one", "two"].map(|name| {
            let mut part = MatchFolder::begin(out.path(), name, &plan()).unwrap();
            part.keep(&summary(0, name), name).unwrap();
            part.path().to_owned()
        });
        let mut whole = MatchFolder::begin(out.path(), "m", &plan()).unwrap();
        let mut known = BTreeMap::new();
        whole.join(&parts, false, &mut known).unwrap();
        assert_eq!(known[&0], summary(0, "one"));
        let error = whole.join(&parts, true, &mut known).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("game 0 of") && message.contains("/two is another game"),
            "{message}"
        );
    }
}

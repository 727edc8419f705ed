//! The parts of a match that several machines play: found, and put together.

use super::{Compared, MatchFolder, MatchPlan, another, openings_of, read_results, record_of};
use crate::pit::result::GameSummary;
use anyhow::{Result, ensure};
use engine::progress::say;
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
    /// A game is known with another record, although the match `is_repeatable`. A part's openings were changed since they were written.
    /// What the disk says.
    pub(in crate::pit) fn join(
        &mut self,
        parts: &[PathBuf],
        is_repeatable: bool,
        known: &mut BTreeMap<u64, GameSummary>,
    ) -> Result<()> {
        for path in parts {
            if self.openings()?.is_none()
                && let Some(openings) = openings_of(path)?
            {
                // So that a pair begun in a part and ended here has one opening.
                self.keep_openings(&openings)?;
            }
            let (games, mut torn) = read_results(path)?;
            let (mut joined, mut others, mut known_before) = (0, 0, 0);
            for (number, summary) in games {
                let Some(record) = record_of(path, &summary)? else {
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

    #[test]
    fn openings_of_a_part_are_taken_over_unless_they_are_damaged() {
        let out = tempfile::tempdir().unwrap();
        let begin = |name| MatchFolder::begin(out.path(), name, &plan()).unwrap();
        let (part, mut whole) = (begin("part"), begin("m"));
        let parts = [part.path().to_owned()];
        part.keep_openings("# opening 0\n").unwrap();
        whole.join(&parts, true, &mut BTreeMap::new()).unwrap();
        assert_eq!(whole.openings().unwrap().as_deref(), Some("# opening 0\n"));
        let file = part.path().join("openings.txt");
        let changed = std::fs::read_to_string(&file).unwrap().replace('0', "1");
        std::fs::write(&file, changed).unwrap();
        let mut other = begin("n");
        let error = other.join(&parts, true, &mut BTreeMap::new()).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("part/openings.txt was damaged"),
            "{message}"
        );
    }
}

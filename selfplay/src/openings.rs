//! Files of openings: positions and game records, one after another, as [`RecordReader`] reads them.

use anyhow::{Context, Result, bail};
use arimaa::notation::{RecordReader, WrittenGame};
use arimaa::rules::{Phase, Position};
use engine::files::read_whole;
use std::path::Path;

/// The most bytes of a file: about half a million games.
pub(crate) const MAX_BYTES: u64 = 1 << 30;

/// Reads a file of positions and game records, one at least. Each must be a possible opening; those with turns may be over at their
/// end. `what` names the file in errors, which give the line too.
pub(crate) fn read_openings(path: &Path, what: &str) -> Result<Vec<WrittenGame>> {
    let bytes = read_whole(path, MAX_BYTES).with_context(|| what.to_owned())?;
    let mut texts = RecordReader::new(bytes.as_slice());
    let mut openings = Vec::new();
    while let Some(text) = texts.next_text() {
        let written = text.and_then(|text| text.read());
        let written = written.with_context(|| what.to_owned())?;
        check(&written).with_context(|| format!("{what}: line {}", written.line))?;
        openings.push(written);
    }
    if openings.is_empty() {
        bail!("{what}: it holds neither a position nor a game");
    }
    Ok(openings)
}

fn check(WrittenGame { game, .. }: &WrittenGame) -> Result<()> {
    if let (Some(outcome), true) = (game.outcome(), game.turns().is_empty()) {
        bail!("the game is over already: {outcome}");
    }
    if game.start().phase() == Phase::Setup && *game.start() != Position::INITIAL {
        bail!("a game can't start between the setups; give Gold's setup as a turn");
    }
    Ok(())
}

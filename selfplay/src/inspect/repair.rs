//! `--repair`: the good games of damaged shards, copied into new ones.

use super::read::{ShardGames, folder_of};
use super::summary::{Inspected, Repaired};
use anyhow::{Result, anyhow, bail, ensure};
use engine::record::{GameRecord, Header, ShardError, ShardName, ShardReader, ShardWriter};
use engine::run::make_folder;
use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Display, Formatter};
use std::path::Path;

impl Display for Repaired {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match (&self.written, &self.reason) {
            (Some(written), _) => write!(
                f,
                "{file}: {} games kept, {} faults left out: {}",
                self.kept,
                self.passed_over,
                written.display()
            ),
            (None, reason) => write!(f, "{file}: {}", reason.as_deref().unwrap_or_default()),
        }
    }
}

/// Writes the good games of every damaged shard into a shard of the same name and header in another folder, which is made if missing.
/// Shards without a fault are not copied. A shard that is there with the same games is kept: an interrupted repair can be repeated.
///
/// # Errors
/// A shard would be overwritten: then nothing is written. A shard can't be read or written.
pub(super) fn repair(shards: &[Inspected], folder: &Path) -> Result<Vec<Repaired>> {
    let damaged = || shards.iter().filter(|shard| !shard.faults.is_empty());
    // A folder that is not there yet holds no shard.
    if let Ok(own) = folder.canonicalize() {
        let source = shards.iter().find(|shard| folder_of(&shard.path) == own);
        if let Some(shard) = source.filter(|_| damaged().next().is_some()) {
            bail!(
                "--repair: {} is where {} is from; repaired shards go into another folder",
                folder.display(),
                shard.path.display()
            );
        }
    }
    let names = names(damaged(), folder)?;
    if damaged().next().is_some() {
        make_folder(folder)?;
    }
    damaged()
        .map(|shard| repair_shard(shard, folder, &names))
        .collect()
}

/// The names of the damaged shards that can be repaired, by their paths.
fn names<'a>(
    damaged: impl Iterator<Item = &'a Inspected>,
    folder: &Path,
) -> Result<BTreeMap<&'a Path, ShardName>> {
    let mut names = BTreeMap::new();
    let mut taken: BTreeMap<ShardName, &Path> = BTreeMap::new();
    for shard in damaged {
        let Some(header) = &shard.header else {
            continue;
        };
        let path = shard.path.as_path();
        let text = path.file_name().and_then(|name| name.to_str());
        let name: ShardName = text
            .unwrap_or_default()
            .parse()
            .map_err(|reason: String| anyhow!("--repair: {}: {reason}", path.display()))?;
        if let Some(other) = taken.insert(name, path) {
            bail!(
                "--repair: {} and {} have the same name; repair them into different folders",
                other.display(),
                path.display()
            );
        }
        let target = folder.join(name.to_string());
        ensure!(
            !target.exists() || is_repaired(shard, header, &target)?,
            "--repair: {} exists already with other games, and is not overwritten: remove it, or repair into another folder",
            target.display()
        );
        names.insert(path, name);
    }
    Ok(names)
}

/// Whether a file is the shard of another's good games.
fn is_repaired(shard: &Inspected, header: &Header, target: &Path) -> Result<bool> {
    let mut repaired = match ShardReader::open(target) {
        Err(error) if error.is_unreadable() => return Err(error.into()),
        Err(_) => return Ok(false),
        Ok(repaired) => repaired,
    };
    let has_same_games = good_games(shard)?
        .all(|game| matches!((game, repaired.next()), (Ok(a), Some(Ok(b))) if a == b));
    Ok(has_same_games && repaired.next().is_none() && repaired.header() == header)
}

/// The games without a fault.
fn good_games(shard: &Inspected) -> Result<impl Iterator<Item = Result<GameRecord, ShardError>>> {
    let bad: HashSet<u64> = shard.faults.iter().map(|fault| fault.offset).collect();
    let good = ShardGames::open(&shard.path)?
        .filter(move |(at, game)| game.is_ok() && !bad.contains(&at.offset));
    Ok(good.map(|(_, game)| game))
}

fn repair_shard(
    shard: &Inspected,
    folder: &Path,
    names: &BTreeMap<&Path, ShardName>,
) -> Result<Repaired> {
    let mut repaired = Repaired {
        file: shard.path.clone(),
        written: None,
        kept: 0,
        passed_over: shard.faults.len() as u64,
        reason: None,
    };
    let (Some(header), Some(&name)) = (&shard.header, names.get(shard.path.as_path())) else {
        repaired.reason = Some(
            "can't be repaired: its header can't be read, so that the origin of its games is not known"
                .into(),
        );
        return Ok(repaired);
    };
    let target = folder.join(name.to_string());
    if target.exists() {
        repaired.kept = good_games(shard)?.count() as u64;
        repaired.written = Some(target);
        return Ok(repaired);
    }
    let mut writer: Option<ShardWriter> = None;
    for record in good_games(shard)? {
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(ShardWriter::create(folder, name, header)?),
        };
        writer.push(&record?)?;
        repaired.kept += 1;
    }
    match writer {
        Some(writer) => repaired.written = Some(writer.finish()?),
        None => repaired.reason = Some("no game in it could be kept; nothing is written".into()),
    }
    Ok(repaired)
}

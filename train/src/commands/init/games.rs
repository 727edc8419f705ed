//! The games of another run, for a new run that begins with them.

use crate::data::open_shard;
use crate::error::TrainError;
use engine::files;
use engine::record::{ShardName, list_shards};
use engine::run::{RunDirectory, make_folder};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Takes the shards of a run over into another: hard links, or copies where the file system has none. Existing shards stay. Returns
/// how many there are.
pub(super) fn take_over(old: &RunDirectory, run: &RunDirectory) -> Result<usize, TrainError> {
    let shards = shards_of(old)?;
    make_folder(&run.shards())?;
    for (name, path) in &shards {
        let own = run.shards().join(name.to_string());
        match files::link(path, &own) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_equal(path, &own)?,
            Err(_) => copy(path, &own).map_err(TrainError::io("copy a shard to", &own))?,
            Ok(()) => {}
        }
    }
    Ok(shards.len())
}

/// The shards of a run, each one that can be trained on; at least one.
pub(super) fn shards_of(old: &RunDirectory) -> Result<BTreeMap<ShardName, PathBuf>, TrainError> {
    let folder = old.shards();
    let shards = if folder.exists() {
        list_shards(&folder)?
    } else {
        BTreeMap::new()
    };
    if shards.is_empty() {
        return Err(TrainError::NoGames { folder });
    }
    for path in shards.values() {
        open_shard(path)?;
    }
    Ok(shards)
}

/// Refuses an existing shard of the same name with other contents.
fn check_equal(path: &Path, own: &Path) -> Result<(), TrainError> {
    let digest_of = |path: &Path| {
        let mut hasher = blake3::Hasher::new();
        let hashed = File::open(path).and_then(|file| Ok(hasher.update_reader(file)?.finalize()));
        hashed.map_err(TrainError::io("read", path))
    };
    if digest_of(path)? == digest_of(own)? {
        return Ok(());
    }
    Err(TrainError::Other(format!(
        "{} is there already, and is not {}: take over games into a folder without shards of its own",
        own.display(),
        path.display()
    )))
}

/// Copies a file, whole or not at all, with the time of its last change: shards are ordered by it.
fn copy(path: &Path, own: &Path) -> io::Result<()> {
    let mut from = File::open(path)?;
    let mut to = files::temporary_in(files::folder_of(own))?;
    io::copy(&mut from, &mut to)?;
    to.as_file().set_modified(from.metadata()?.modified()?)?;
    files::publish_new(to, own)
}

//! Checkpoints: everything that a training needs to resume, in one safetensors file each.
//!
//! The file holds the network's tensors as `network.NAME`, their average's as `average.NAME`, the optimizer's as `first.NAME` and
//! `second.NAME` (AdamW) or `velocity.NAME` (SGD; the header's configuration says which), and one entry of metadata: a
//! [`CheckpointHeader`] as JSON, with the digest of all tensors. Its name is `GGGGG-SSSSSSSSSS.safetensors`, the generation that
//! is being trained and the optimizer's step, so that names are ordered by age.

use crate::error::TrainError;
use crate::trainer::optimizer::Optimizer;
use crate::trainer::state::TrainingState;
use crate::trainer::tensor_file::TensorFile;
use engine::config::Config;
use engine::encoding::ENCODING_VERSION;
use engine::files::{self, read_whole};
use engine::progress::say;
use engine::run::{make_folder, write_file};
use network::{Architecture, Network};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tch::{Tensor, no_grad_guard};

/// The version of the file.
const FORMAT_VERSION: u32 = 5;

/// The most bytes of a file.
const MAX_BYTES: u64 = 1 << 34;

/// The name of the format, and of the metadata entry.
pub(crate) const FORMAT: &str = "tusker-checkpoint";

/// The header of a checkpoint, beside its tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointHeader {
    /// [`FORMAT_VERSION`].
    pub(crate) format: u32,
    /// [`ENCODING_VERSION`].
    pub(crate) encoding: u32,
    /// The network's sizes.
    pub(crate) architecture: Architecture,
    /// The run's configuration when the checkpoint was written.
    #[serde(deserialize_with = "Config::deserialize_kept")]
    pub(crate) config: Config,
    /// Where the training stands.
    pub(crate) state: TrainingState,
    /// The BLAKE3 hash of this header with an empty digest, and of the tensors' names and bytes.
    pub(crate) digest: String,
}

/// The versions at the beginning of a header, whatever its version.
#[derive(Deserialize)]
struct Versions {
    format: u32,
    encoding: u32,
}

/// The name of a checkpoint's file.
pub(crate) fn file_name(state: &TrainingState) -> String {
    format!("{:05}-{:010}.safetensors", state.generation, state.step)
}

/// The checkpoints of a folder, oldest first.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>, TrainError> {
    let listed = match files::entries(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        listed => listed.map_err(TrainError::io("read the folder", folder))?,
    };
    let mut found = BTreeMap::new();
    for path in listed {
        if let Some(age) = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(age)
        {
            found.insert(age, path);
        }
    }
    Ok(found.into_values().collect())
}

/// The generation and step in a checkpoint's name.
fn age(name: &str) -> Option<(u32, u64)> {
    let (generation, step) = name.strip_suffix(".safetensors")?.split_once('-')?;
    Some((generation.parse().ok()?, step.parse().ok()?))
}

/// The step of the newest checkpoint by the files' names; 0 without one.
pub(crate) fn newest_step(folder: &Path) -> u64 {
    let newest = list(folder).unwrap_or_default().pop();
    let name = newest.as_deref().and_then(Path::file_name);
    let age = name.and_then(|name| age(name.to_str()?));
    age.map_or(0, |(_, step)| step)
}

/// The newest checkpoint that is whole, if there are any; broken ones are reported on standard error.
///
/// # Errors
///
/// All are broken, the newest has another version, or the system does not let it be read: without a checkpoint all games would count
/// as new.
pub(crate) fn newest(folder: &Path) -> Result<Option<Checkpoint>, TrainError> {
    let mut newest_broken = None;
    for path in list(folder)?.iter().rev() {
        match Checkpoint::load_named(path) {
            Ok(checkpoint) => return Ok(Some(checkpoint)),
            Err(error @ (TrainError::CheckpointVersion { .. } | TrainError::Io { .. })) => {
                return Err(error);
            }
            Err(error) => {
                say(&error.to_string());
                newest_broken.get_or_insert(path.clone());
            }
        }
    }
    match newest_broken {
        None => Ok(None),
        Some(newest) => Err(TrainError::Other(format!(
            "{}: all checkpoints are damaged, the newest too ({}): put back a copy of one, or move them away to begin with a new \
             optimizer, which trains on all games as new ones",
            folder.display(),
            newest.display()
        ))),
    }
}

/// Writes a checkpoint, whole or not at all, and removes the oldest beyond `train.keep_checkpoints`. Returns its path.
pub(crate) fn save(
    folder: &Path,
    network: &Network,
    average: &Network,
    optimizer: &Optimizer,
    config: &Config,
    state: &TrainingState,
) -> Result<PathBuf, TrainError> {
    make_folder(folder)?;
    let path = folder.join(file_name(state));
    let mut header = CheckpointHeader {
        format: FORMAT_VERSION,
        encoding: ENCODING_VERSION,
        architecture: network.architecture(),
        config: config.clone(),
        state: TrainingState {
            optimizer_steps: optimizer.steps(),
            ..state.clone()
        },
        digest: String::new(),
    };
    let mut contents = TensorFile::default();
    for (name, tensor) in tensors(network, average, optimizer)? {
        contents.add(&name, &tensor)?;
    }
    let bytes = to_file(&mut header, &contents).map_err(TrainError::checkpoint(&path))?;
    write_file(&path, &bytes)?;
    prune(folder, &path, config.train.keep_checkpoints)?;
    Ok(path)
}

/// The whole file; the header gets its digest.
fn to_file(header: &mut CheckpointHeader, contents: &TensorFile) -> Result<Vec<u8>, String> {
    let json = |header: &CheckpointHeader| {
        serde_json::to_string(header).map_err(|error| error.to_string())
    };
    header.digest.clear();
    header.digest = digest_of(&json(header)?, contents.named());
    let file = contents.to_bytes(FORMAT, json(header)?);
    file.map_err(|error| error.to_string())
}

/// The digest of a file: of the header's text with an empty digest, and of the tensors in the order of their names.
fn digest_of<'a>(bare_header: &str, tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(bare_header.as_bytes());
    for (name, bytes) in tensors {
        hash.update(name.as_bytes()).update(&[0]).update(bytes);
    }
    hash.finalize().to_hex().to_string()
}

/// A header's text with an empty digest; the digest is its last field. The text itself is used: a header that is parsed and written
/// again has all keys that the configuration has now.
fn without_digest(text: &str, digest: &str) -> Option<String> {
    let rest = text.strip_suffix(&format!("{digest}\"}}"))?;
    Some(format!("{rest}\"}}"))
}

/// Removes all but the newest checkpoints up to the written one. Checkpoints of later steps were broken when the training resumed:
/// they do not count, and are removed once the training has come as far.
fn prune(folder: &Path, written: &Path, keep: u32) -> Result<(), TrainError> {
    let mut paths = list(folder)?;
    if let Some(place) = paths.iter().position(|path| path == written) {
        paths.truncate(place + 1);
    }
    for path in &paths[..paths.len().saturating_sub(keep as usize)] {
        files::remove(path).map_err(TrainError::io("remove", path))?;
    }
    Ok(())
}

/// A checkpoint that was read and is whole.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    path: PathBuf,
    /// Its header.
    pub(crate) header: CheckpointHeader,
    bytes: Vec<u8>,
}

impl Checkpoint {
    /// Reads and checks a checkpoint: its versions, its form and its digest.
    pub(crate) fn load(path: &Path) -> Result<Self, TrainError> {
        let bytes = read_whole(path, MAX_BYTES).map_err(TrainError::io("read", path))?;
        let (_, metadata) =
            SafeTensors::read_metadata(&bytes).map_err(TrainError::checkpoint(path))?;
        let header = metadata
            .metadata()
            .as_ref()
            .and_then(|entries| entries.get(FORMAT));
        let text = header.map_or("", String::as_str);
        let header = parse_header(path, text)?;
        let contents = SafeTensors::deserialize(&bytes).map_err(TrainError::checkpoint(path))?;
        let mut tensors: Vec<_> = contents.iter().collect();
        tensors.sort_by_key(|(name, _)| *name);
        let named = tensors.iter().map(|(name, view)| (*name, view.data()));
        let bare = without_digest(text, &header.digest);
        if bare.is_none_or(|bare| digest_of(&bare, named) != header.digest) {
            let reason = "its bytes are not those that were written";
            return Err(TrainError::checkpoint(path)(reason));
        }
        Ok(Self {
            path: path.to_owned(),
            header,
            bytes,
        })
    }

    /// As [`load`](Self::load), of a file that has the name of what it holds.
    pub(crate) fn load_named(path: &Path) -> Result<Self, TrainError> {
        let checkpoint = Self::load(path)?;
        let name = file_name(&checkpoint.header.state);
        if path.ends_with(&name) {
            Ok(checkpoint)
        } else {
            Err(TrainError::checkpoint(path)(format!(
                "it is the checkpoint {name}"
            )))
        }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Copies the tensors into a network, its average and its optimizer, which are of the checkpoint's architecture.
    pub(crate) fn restore(
        &self,
        network: &Network,
        average: &Network,
        optimizer: &mut Optimizer,
    ) -> Result<(), TrainError> {
        self.copy_into(tensors(network, average, optimizer)?)?;
        optimizer.set_steps(self.header.state.optimizer_steps);
        Ok(())
    }

    /// The same for the optimizer alone.
    pub(crate) fn restore_optimizer(
        &self,
        network: &Network,
        optimizer: &mut Optimizer,
    ) -> Result<(), TrainError> {
        self.copy_into(optimizer.tensors(network)?)?;
        optimizer.set_steps(self.header.state.optimizer_steps);
        Ok(())
    }

    fn copy_into(&self, tensors: Vec<(String, Tensor)>) -> Result<(), TrainError> {
        let _no_grad = no_grad_guard();
        let contents =
            SafeTensors::deserialize(&self.bytes).map_err(TrainError::checkpoint(&self.path))?;
        for (name, mut tensor) in tensors {
            let view = contents
                .tensor(&name)
                .map_err(TrainError::checkpoint(&self.path))?;
            let shape: Vec<i64> = view.shape().iter().map(|&size| size as i64).collect();
            if view.dtype() != Dtype::F32 || shape != tensor.size() {
                let reason = format!("tensor `{name}` is not F32 of {:?}", tensor.size());
                return Err(TrainError::checkpoint(&self.path)(reason));
            }
            let bytes = view.data().as_chunks().0.iter();
            let numbers: Vec<f32> = bytes.map(|&bytes| f32::from_le_bytes(bytes)).collect();
            tensor.f_copy_(&Tensor::f_from_slice(&numbers)?.f_view(shape.as_slice())?)?;
        }
        Ok(())
    }
}

/// A checkpoint's header from its metadata.
///
/// # Errors
///
/// The header has another version, or the text is no header.
fn parse_header(path: &Path, text: &str) -> Result<CheckpointHeader, TrainError> {
    if text.is_empty() {
        let reason = format!("it has no metadata `{FORMAT}`");
        return Err(TrainError::checkpoint(path)(reason));
    }
    let versions: Versions = serde_json::from_str(text).map_err(TrainError::checkpoint(path))?;
    for (what, found, known) in [
        ("format", versions.format, FORMAT_VERSION),
        ("encoding", versions.encoding, ENCODING_VERSION),
    ] {
        if found != known {
            return Err(TrainError::CheckpointVersion {
                path: path.to_owned(),
                what,
                found,
                known,
            });
        }
    }
    serde_json::from_str(text).map_err(TrainError::checkpoint(path))
}

/// All tensors of a training with their names in the file; they share their storage with the training's.
fn tensors(
    network: &Network,
    average: &Network,
    optimizer: &Optimizer,
) -> Result<Vec<(String, Tensor)>, TrainError> {
    let mut named = Vec::new();
    for (kind, network) in [("network", network), ("average", average)] {
        let parameters = network.parameters();
        let parameters = parameters.map(|parameter| (parameter.name, parameter.tensor));
        let tensors = parameters.chain(network.buffers());
        named.extend(
            tensors.map(|(name, tensor)| (format!("{kind}.{name}"), tensor.shallow_clone())),
        );
    }
    named.extend(optimizer.tensors(network)?);
    Ok(named)
}

#[cfg(test)]
mod tests;

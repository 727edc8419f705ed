//! The weights file: safetensors, with one metadata entry that says what the network is and where it comes from.
//!
//! Equal networks with equal origins make equal files, byte by byte, so that a file's hash is the network's identity. The
//! entry holds a checksum of all else that the file says, so that a file which the disk has changed is never taken for a
//! network.

use crate::architecture::{Architecture, Role, TensorSpec};
use crate::error::{FileFault, NetworkError};
use crate::heads::{Head, is_auxiliary};
use crate::model::Network;
use engine::encoding::{ENCODING_VERSION, PLANES, PLANES_OF_VERSION_2, READABLE_VERSIONS};
use engine::files;
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, SafeTensors};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::Path;
use tch::{Device, TchError, Tensor};

/// The version of the weights file: which tensors it holds under which names, and its metadata.
const FORMAT_VERSION: u32 = 3;

/// The versions that are read. Version 2 had no auxiliary heads.
const READABLE_FORMATS: RangeInclusive<u32> = 2..=FORMAT_VERSION;

/// The seed that auxiliary heads begin with where a file has none.
const AUXILIARY_SEED: u64 = 0;

/// The weights of the first layer.
const INPUT_WEIGHT: &str = "input.weight";

/// Size limit of a weights file, in bytes.
const MAX_BYTES: u64 = 1 << 33;

/// The name of the format, and of the metadata entry.
const FORMAT: &str = "tusker-network";

/// The built-in network; how it was made: `engine/network/built_in/README.md`.
const BUILT_IN: &[u8] = include_bytes!("../built_in/tusker.safetensors");

/// Its name in errors.
const BUILT_IN_NAME: &str = "the built-in network";

/// Where a network comes from, by keys such as `run`, `generation`, `step`, `games`, `rows`, `parent`, `version` (of the
/// program).
pub type Origin = BTreeMap<String, String>;

/// A network with what else its file says.
#[derive(Debug)]
pub struct NetworkFile {
    /// The network, on the CPU.
    pub network: Network,
    /// The version of the file's format.
    pub format: u32,
    /// The version of the encoding that it was trained with.
    pub encoding: u32,
    /// Where it comes from.
    pub origin: Origin,
    /// The BLAKE3 hash of the file, in hexadecimal digits.
    pub identity: String,
}

impl NetworkFile {
    /// Whether it was trained, here or elsewhere: a run's first network may have random weights.
    pub fn is_trained(&self) -> bool {
        // A network that the user put there states its steps.
        let steps = self.origin.get("step");
        self.origin.contains_key("parent") || steps.is_some_and(|steps| steps != "0")
    }
}

/// What every version of the metadata begins with.
#[derive(Deserialize)]
struct Versions {
    format: u32,
    encoding: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    format: u32,
    encoding: u32,
    architecture: Architecture,
    origin: Origin,
    /// See [`Metadata::checksum`].
    checksum: String,
}

impl Metadata {
    /// The BLAKE3 hash, in hexadecimal digits, of everything else that the file says: the metadata without a checksum, then each
    /// tensor's name and bytes in the order of the architecture, every part with its length before it. The shapes follow from
    /// the architecture.
    fn checksum<'a>(
        &self,
        tensors: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> serde_json::Result<String> {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        let parts = (self.format, self.encoding, &self.architecture, &self.origin);
        add(&serde_json::to_vec(&parts)?);
        for (name, bytes) in tensors {
            add(name.as_bytes());
            add(bytes);
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// That of a file's header, its versions checked.
    fn of(header: &safetensors::tensor::Metadata) -> Result<Self, FileFault> {
        let entries = header.metadata().as_ref();
        let text = entries.and_then(|entries| entries.get(FORMAT));
        let text = text.ok_or_else(|| {
            let reason = format!("there is no entry `{FORMAT}`: the file is not from this program");
            FileFault::Metadata(reason)
        })?;
        let versions: Versions = serde_json::from_str(text)?;
        for (what, found, readable) in [
            ("format", versions.format, READABLE_FORMATS),
            ("encoding", versions.encoding, READABLE_VERSIONS),
        ] {
            if !readable.contains(&found) {
                let known = *readable.end();
                return Err(FileFault::Version { what, found, known });
            }
        }
        Ok(serde_json::from_str(text)?)
    }
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn read(path: &Path) -> Result<Vec<u8>, NetworkError> {
    files::read_whole(path, MAX_BYTES).map_err(|error| NetworkError::Read {
        path: path.to_owned(),
        error,
    })
}

fn in_file(path: &Path) -> impl Fn(FileFault) -> NetworkError {
    |fault| NetworkError::File {
        path: path.to_owned(),
        fault,
    }
}

impl Network {
    /// Writes the network to a file, whole or not at all, and returns its [identity](NetworkFile::identity). A file of that name is replaced. A
    /// network with a number that is not finite is not written.
    pub fn save(&self, path: &Path, origin: &Origin) -> Result<String, NetworkError> {
        let mut contents = Vec::with_capacity(self.tensors().len());
        for (spec, tensor) in self.tensors() {
            let mut numbers = vec![0f32; spec.len()];
            tensor.f_detach()?.f_copy_data(&mut numbers, spec.len())?;
            check_numbers(spec, &numbers).map_err(in_file(path))?;
            let bytes: Vec<u8> = numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            contents.push((spec, bytes));
        }
        let bytes = to_bytes(self.architecture(), origin, &contents).map_err(in_file(path))?;
        files::write_whole(path, &bytes).map_err(|error| NetworkError::Write {
            path: path.to_owned(),
            error,
        })?;
        Ok(hash(&bytes))
    }

    /// Reads a network from a file. Everything is checked: the versions, that each tensor of the architecture is there with
    /// its shape and type, that there is no other, that every number is finite, and the checksum of it all. An auxiliary head without
    /// any tensor in the file begins as in a [new network](Network::new) of seed 0.
    pub fn load(path: &Path) -> Result<NetworkFile, NetworkError> {
        Self::from_bytes(path, &read(path)?)
    }

    /// The network that is built into the program: the strongest one of at most 8 MB that this project has trained. Its training and
    /// strength are described in `engine/network/built_in/README.md`, beside its file.
    pub fn built_in() -> Result<NetworkFile, NetworkError> {
        Self::from_bytes(Path::new(BUILT_IN_NAME), BUILT_IN)
    }

    /// Reads a network from a file's contents; errors name the file.
    fn from_bytes(path: &Path, bytes: &[u8]) -> Result<NetworkFile, NetworkError> {
        let header = SafeTensors::read_metadata(bytes).map_err(FileFault::from);
        let metadata = header
            .and_then(|(_, header)| Metadata::of(&header))
            .map_err(in_file(path))?;
        let contents = SafeTensors::deserialize(bytes).map_err(FileFault::from);
        let contents = contents.map_err(in_file(path))?;
        let architecture = metadata.architecture;
        architecture.check().map_err(|error| {
            let fault = FileFault::Metadata(error.to_string());
            in_file(path)(fault)
        })?;
        // Made after the tensors that play were found: a damaged architecture must not take all memory.
        let mut fresh = None;
        let mut read = Vec::new();
        let network = Network::build(architecture, Device::Cpu, |spec| {
            if is_auxiliary(&spec.name) {
                let fresh = match &mut fresh {
                    Some(fresh) => fresh,
                    none => none.insert(missing_heads(&contents, architecture)?),
                };
                if let Some(tensor) = fresh.remove(&spec.name) {
                    return Ok(tensor);
                }
            }
            let stored = stored_spec(spec, metadata.encoding);
            let found = find_tensor(&contents, &stored).map_err(in_file(path));
            let (view, numbers) = found?;
            read.push((spec.name.clone(), view));
            let tensor = Tensor::f_from_slice(&numbers)?.f_view(stored.shape.as_slice())?;
            if stored.shape == spec.shape {
                Ok(tensor)
            } else {
                Ok(with_new_planes(&tensor)?)
            }
        })?;
        check_contents(&metadata, &contents, &read).map_err(in_file(path))?;
        Ok(NetworkFile {
            network,
            format: metadata.format,
            encoding: metadata.encoding,
            origin: metadata.origin,
            identity: hash(bytes),
        })
    }
}

fn to_bytes(
    architecture: Architecture,
    origin: &Origin,
    contents: &[(&TensorSpec, Vec<u8>)],
) -> Result<Vec<u8>, FileFault> {
    let mut metadata = Metadata {
        format: FORMAT_VERSION,
        encoding: ENCODING_VERSION,
        architecture,
        origin: origin.clone(),
        checksum: String::new(),
    };
    let named = contents.iter();
    let named = named.map(|(spec, bytes)| (spec.name.as_str(), &**bytes));
    metadata.checksum = metadata.checksum(named)?;
    let views = contents.iter().map(|(spec, bytes)| {
        let shape = spec.shape.iter().map(|&size| size as usize).collect();
        Ok((&spec.name, TensorView::new(Dtype::F32, shape, bytes)?))
    });
    let views = views.collect::<Result<Vec<_>, SafeTensorError>>()?;
    // One entry only: several would be written in an order that changes from run to run.
    let entries = HashMap::from([(FORMAT.to_owned(), serde_json::to_string(&metadata)?)]);
    Ok(safetensors::serialize(views, Some(entries))?)
}

/// Checks that the tensors that were read are all that there are, and that nothing has changed since they were written.
fn check_contents(
    metadata: &Metadata,
    contents: &SafeTensors,
    read: &[(String, TensorView)],
) -> Result<(), FileFault> {
    let mut names = contents.names().into_iter();
    if let Some(name) = names.find(|&name| !read.iter().any(|(known, _)| known == name)) {
        return Err(FileFault::Tensor {
            tensor: name.to_owned(),
            reason: "a network of this architecture has no such tensor".into(),
        });
    }
    let named = read.iter().map(|(name, view)| (name.as_str(), view.data()));
    if metadata.checksum(named)? != metadata.checksum {
        let reason = "its checksum does not fit: the file has been changed since it was written";
        return Err(FileFault::Format(reason.into()));
    }
    Ok(())
}

/// The tensors, by name, of the auxiliary heads that the file was written without: those of a new network.
fn missing_heads(
    contents: &SafeTensors,
    architecture: Architecture,
) -> Result<BTreeMap<String, Tensor>, NetworkError> {
    let names = contents.names();
    let is_missing =
        |head: &Head| head.is_auxiliary() && !names.iter().any(|name| head.has_tensor(name));
    let missing: Vec<Head> = Head::ALL.into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(BTreeMap::new());
    }
    let network = Network::new(architecture, AUXILIARY_SEED)?;
    let tensors = network.tensors().iter();
    let fresh = tensors.filter(|(spec, _)| missing.iter().any(|head| head.has_tensor(&spec.name)));
    Ok(fresh
        .map(|(spec, tensor)| (spec.name.clone(), tensor.shallow_clone()))
        .collect())
}

/// A tensor as a file of an encoding version holds it: the first layer of version 2 has fewer inputs.
fn stored_spec(spec: &TensorSpec, encoding: u32) -> TensorSpec {
    let mut stored = spec.clone();
    if encoding == 2 && spec.name == INPUT_WEIGHT {
        stored.shape[1] -= (PLANES - PLANES_OF_VERSION_2) as i64;
    }
    stored
}

/// The weights of the first layer from those of encoding version 2: the planes that it did not have weigh 0.
fn with_new_planes(weight: &Tensor) -> Result<Tensor, TchError> {
    let old = PLANES_OF_VERSION_2 as i64;
    let (outputs, inputs, height, width) = weight.size4()?;
    let size = [
        outputs,
        (PLANES - PLANES_OF_VERSION_2) as i64,
        height,
        width,
    ];
    let new = Tensor::f_zeros(size, (weight.kind(), weight.device()))?;
    let [planes, scalars] =
        [(0, old), (old, inputs - old)].map(|(from, length)| weight.f_narrow(1, from, length));
    Tensor::f_cat(&[planes?, new, scalars?], 1)
}

/// One tensor of the file and its numbers, all checked.
fn find_tensor<'a>(
    contents: &SafeTensors<'a>,
    spec: &TensorSpec,
) -> Result<(TensorView<'a>, Vec<f32>), FileFault> {
    let missing = |_| FileFault::MissingTensor(spec.name.clone());
    let view = contents.tensor(&spec.name).map_err(missing)?;
    if view.dtype() != Dtype::F32 {
        return Err(tensor_fault(
            spec,
            format!("its type is {}, not F32", view.dtype()),
        ));
    }
    let shape = spec.shape.iter().map(|&size| size as usize);
    if !shape.eq(view.shape().iter().copied()) {
        let reason = format!("its shape is {:?}, not {:?}", view.shape(), spec.shape);
        return Err(tensor_fault(spec, reason));
    }
    let (numbers, _) = view.data().as_chunks();
    let numbers = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes));
    let numbers: Vec<f32> = numbers.collect();
    check_numbers(spec, &numbers)?;
    Ok((view, numbers))
}

fn check_numbers(spec: &TensorSpec, numbers: &[f32]) -> Result<(), FileFault> {
    if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
        let reason = format!("it holds {number}, which is not finite");
        return Err(tensor_fault(spec, reason));
    }
    match numbers.iter().find(|&&number| number < 0.0) {
        Some(number) if spec.role == Role::Variance => {
            let reason = format!("it holds {number}, which is not a variance");
            Err(tensor_fault(spec, reason))
        }
        _ => Ok(()),
    }
}

fn tensor_fault(spec: &TensorSpec, reason: String) -> FileFault {
    FileFault::Tensor {
        tensor: spec.name.clone(),
        reason,
    }
}

#[cfg(test)]
mod tests;

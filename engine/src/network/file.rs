//! The weights file: safetensors, with one metadata entry that says what the network is and where it comes from.
//!
//! Equal networks with equal origins make equal files, byte by byte, so that a file's hash is the network's identity. The
//! entry holds a checksum of all else that the file says, so that a file which the disk has changed is never taken for a
//! network.

use super::architecture::{Role, TensorSpec};
use super::{Architecture, Network, NetworkError};
use crate::encoding::ENCODING_VERSION;
use crate::files;
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, SafeTensors};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tch::{Device, Tensor};

/// The version of the weights file: which tensors it holds under which names, and its metadata.
pub const FORMAT_VERSION: u32 = 2;

/// The bytes of a file: some thousand million numbers are far beyond any network of this kind.
const LARGEST: u64 = 1 << 33;

/// The name of the format, and of the metadata entry.
const FORMAT: &str = "tusker-network";

/// Where a network comes from, by keys such as `run`, `generation`, `step`, `games`, `rows`, `parent`, `version` (of the
/// program).
pub type Origin = BTreeMap<String, String>;

/// A network with what else its file says.
#[derive(Debug)]
pub struct NetworkFile {
    /// The network, on the CPU.
    pub network: Network,
    /// Where it comes from.
    pub origin: Origin,
    /// The hash of the file; see [`identity`].
    pub identity: String,
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
}

/// The identity of a network: the BLAKE3 hash of its file, in hexadecimal digits.
pub fn identity(path: &Path) -> Result<String, NetworkError> {
    Ok(hash(&read(path)?))
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn read(path: &Path) -> Result<Vec<u8>, NetworkError> {
    files::read_whole(path, LARGEST).map_err(|error| NetworkError::Read {
        path: path.to_owned(),
        error,
    })
}

impl Network {
    /// Writes the network to a file, whole or not at all, and returns its [`identity`]. A file of that name is replaced. A
    /// network with a number that is not finite is not written.
    pub fn save(&self, path: &Path, origin: &Origin) -> Result<String, NetworkError> {
        let bytes = self.to_bytes(path, origin)?;
        files::write_whole(path, &bytes).map_err(|error| NetworkError::Write {
            path: path.to_owned(),
            error,
        })?;
        Ok(hash(&bytes))
    }

    fn to_bytes(&self, path: &Path, origin: &Origin) -> Result<Vec<u8>, NetworkError> {
        let mut contents = Vec::with_capacity(self.tensors().len());
        for (spec, tensor) in self.tensors() {
            let mut numbers = vec![0f32; spec.len()];
            tensor.f_detach()?.f_copy_data(&mut numbers, spec.len())?;
            check_numbers(path, spec, &numbers)?;
            let bytes: Vec<u8> = numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            contents.push((spec, bytes));
        }
        let mut metadata = Metadata {
            format: FORMAT_VERSION,
            encoding: ENCODING_VERSION,
            architecture: self.architecture(),
            origin: origin.clone(),
            checksum: String::new(),
        };
        let fault = |reason: String| NetworkError::Format {
            path: path.to_owned(),
            reason,
        };
        let named = contents
            .iter()
            .map(|(spec, bytes)| (spec.name.as_str(), &**bytes));
        metadata.checksum = metadata
            .checksum(named)
            .map_err(|error| fault(error.to_string()))?;
        let metadata =
            serde_json::to_string(&metadata).map_err(|error| fault(error.to_string()))?;
        let views = contents
            .iter()
            .map(|(spec, bytes)| {
                let shape = spec.shape.iter().map(|&size| size as usize).collect();
                Ok((&spec.name, TensorView::new(Dtype::F32, shape, bytes)?))
            })
            .collect::<Result<Vec<_>, SafeTensorError>>()
            .map_err(|error| fault(error.to_string()))?;
        // One entry only: several would be written in an order that changes from run to run.
        let metadata = HashMap::from([(FORMAT.to_owned(), metadata)]);
        safetensors::serialize(views, Some(metadata)).map_err(|error| fault(error.to_string()))
    }

    /// Reads a network from a file. Everything is checked: the versions, that each tensor of the architecture is there with
    /// its shape and type, that there is no other, that every number is finite, and the checksum of it all.
    pub fn load(path: &Path) -> Result<NetworkFile, NetworkError> {
        let bytes = read(path)?;
        let broken = |error: SafeTensorError| NetworkError::Format {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(broken)?;
        let metadata = parse_metadata(path, header.metadata().as_ref())?;
        let contents = SafeTensors::deserialize(&bytes).map_err(broken)?;
        let architecture = metadata.architecture;
        let mut read = Vec::new();
        let network = Network::build(architecture, Device::Cpu, |spec| {
            let view = find_tensor(path, &contents, spec)?;
            let tensor = read_tensor(path, &view, spec)?;
            read.push((spec.name.clone(), view));
            Ok(tensor)
        })
        .map_err(|error| match error {
            NetworkError::Architecture { .. } => NetworkError::Metadata {
                path: path.to_owned(),
                reason: error.to_string(),
            },
            other => other,
        })?;
        if let Some(name) = contents.names().into_iter().find(|&name| {
            let mut known = network.tensors().iter();
            !known.any(|(spec, _)| spec.name == name)
        }) {
            return Err(NetworkError::Tensor {
                path: path.to_owned(),
                tensor: name.to_owned(),
                reason: "a network of this architecture has no such tensor".into(),
            });
        }
        let named = read.iter().map(|(name, view)| (name.as_str(), view.data()));
        if metadata.checksum(named).ok().as_ref() != Some(&metadata.checksum) {
            return Err(NetworkError::Format {
                path: path.to_owned(),
                reason: "its checksum does not fit: the file has been changed since it was written"
                    .into(),
            });
        }
        Ok(NetworkFile {
            network,
            origin: metadata.origin,
            identity: hash(&bytes),
        })
    }
}

fn parse_metadata(
    path: &Path,
    metadata: Option<&HashMap<String, String>>,
) -> Result<Metadata, NetworkError> {
    let fault = |reason: String| NetworkError::Metadata {
        path: path.to_owned(),
        reason,
    };
    let text = metadata
        .and_then(|entries| entries.get(FORMAT))
        .ok_or_else(|| {
            fault(format!(
                "there is no entry `{FORMAT}`: the file is not from this program"
            ))
        })?;
    let versions: Versions =
        serde_json::from_str(text).map_err(|error| fault(error.to_string()))?;
    for (what, found, known) in [
        ("format", versions.format, FORMAT_VERSION),
        ("encoding", versions.encoding, ENCODING_VERSION),
    ] {
        if found != known {
            return Err(NetworkError::Version {
                path: path.to_owned(),
                what,
                found,
                known,
            });
        }
    }
    serde_json::from_str(text).map_err(|error| fault(error.to_string()))
}

/// One tensor of the file, its type and shape checked.
fn find_tensor<'a>(
    path: &Path,
    contents: &SafeTensors<'a>,
    spec: &TensorSpec,
) -> Result<TensorView<'a>, NetworkError> {
    let fault = |reason: String| NetworkError::Tensor {
        path: path.to_owned(),
        tensor: spec.name.clone(),
        reason,
    };
    let view = contents
        .tensor(&spec.name)
        .map_err(|_| NetworkError::MissingTensor {
            path: path.to_owned(),
            tensor: spec.name.clone(),
        })?;
    if view.dtype() != Dtype::F32 {
        return Err(fault(format!("its type is {}, not F32", view.dtype())));
    }
    let shape = spec.shape.iter().map(|&size| size as usize);
    if !shape.eq(view.shape().iter().copied()) {
        return Err(fault(format!(
            "its shape is {:?}, not {:?}",
            view.shape(),
            spec.shape
        )));
    }
    Ok(view)
}

/// A tensor's numbers, checked.
fn read_tensor(path: &Path, view: &TensorView, spec: &TensorSpec) -> Result<Tensor, NetworkError> {
    let numbers: Vec<f32> = view
        .data()
        .as_chunks()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes))
        .collect();
    check_numbers(path, spec, &numbers)?;
    Ok(Tensor::f_from_slice(&numbers)?.f_view(spec.shape.as_slice())?)
}

fn check_numbers(path: &Path, spec: &TensorSpec, numbers: &[f32]) -> Result<(), NetworkError> {
    let fault = |number: f32, what: &str| NetworkError::Tensor {
        path: path.to_owned(),
        tensor: spec.name.clone(),
        reason: format!("it holds {number}, {what}"),
    };
    if let Some(&number) = numbers.iter().find(|number| !number.is_finite()) {
        return Err(fault(number, "which is not finite"));
    }
    match numbers.iter().find(|&&number| number < 0.0) {
        Some(&number) if spec.role == Role::Variance => Err(fault(number, "which is no variance")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};
    use std::path::PathBuf;

    fn network() -> Network {
        let architecture = Architecture {
            blocks: 2,
            channels: 8,
        };
        Network::new(architecture, 3).unwrap()
    }

    fn origin() -> Origin {
        let pairs = [("generation", "3"), ("run", "first"), ("step", "12")];
        pairs.map(|(key, value)| (key.into(), value.into())).into()
    }

    #[test]
    fn a_file_brings_back_the_network_and_its_origin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        let saved = network().save(&path, &origin()).unwrap();
        let file = Network::load(&path).unwrap();
        assert_eq!(file.origin, origin());
        assert_eq!(file.network.architecture(), network().architecture());
        for ((spec, loaded), (expected, made)) in
            file.network.tensors().iter().zip(network().tensors())
        {
            assert_eq!(spec, expected);
            assert!(loaded.equal(made), "{}", spec.name);
        }
        assert_eq!(saved, file.identity);
        assert_eq!(saved, identity(&path).unwrap());

        // Equal networks make equal files, in place of what was there.
        file.network.save(&path, &origin()).unwrap();
        assert_eq!(saved, identity(&path).unwrap());
        file.network.save(&path, &Origin::new()).unwrap();
        assert_ne!(saved, identity(&path).unwrap());
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "no temporary file is left");
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        let network = network();
        let saved = network.save(&path, &origin()).unwrap();
        let bias = network
            .parameters()
            .find(|parameter| parameter.name == "value.output.bias");
        let _ = bias.unwrap().tensor.shallow_clone().fill_(f64::NAN);
        let message = network.save(&path, &origin()).unwrap_err().to_string();
        assert!(
            message.contains("a.safetensors: tensor `value.output.bias`: it holds NaN"),
            "{message}"
        );
        assert_eq!(identity(&path).unwrap(), saved);

        let nowhere = folder.path().join("no/folder/a.safetensors");
        let message = self::network()
            .save(&nowhere, &origin())
            .unwrap_err()
            .to_string();
        assert!(message.contains("no/folder/a.safetensors"), "{message}");
    }

    /// A file's tensors and metadata entry, to be spoilt.
    struct Contents {
        tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
        metadata: Option<String>,
    }

    impl Contents {
        fn read(path: &Path) -> Self {
            let bytes = std::fs::read(path).unwrap();
            let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
            let tensors = SafeTensors::deserialize(&bytes).unwrap().tensors();
            let tensors = tensors.into_iter().map(|(name, view)| {
                (
                    name,
                    view.dtype(),
                    view.shape().to_vec(),
                    view.data().to_vec(),
                )
            });
            Self {
                tensors: tensors.collect(),
                metadata: header.metadata().as_ref().unwrap().get(FORMAT).cloned(),
            }
        }

        fn tensor(&mut self, name: &str) -> &mut (String, Dtype, Vec<usize>, Vec<u8>) {
            self.tensors
                .iter_mut()
                .find(|tensor| tensor.0 == name)
                .unwrap()
        }

        fn edit(&mut self, from: &str, to: &str) {
            let text = self.metadata.take().unwrap();
            assert!(text.contains(from), "{text}");
            self.metadata = Some(text.replace(from, to));
        }

        /// Makes the checksum fit what has been spoilt, so that the fault itself is found.
        fn sign(&mut self) {
            let Some(text) = &self.metadata else { return };
            let Ok(mut metadata) = serde_json::from_str::<Metadata>(text) else {
                return;
            };
            let Ok(network) = Network::new(metadata.architecture, 0) else {
                return;
            };
            let named = network.tensors().iter().filter_map(|(spec, _)| {
                let tensor = self.tensors.iter().find(|tensor| tensor.0 == spec.name)?;
                Some((spec.name.as_str(), &*tensor.3))
            });
            metadata.checksum = metadata.checksum(named).unwrap();
            self.metadata = Some(serde_json::to_string(&metadata).unwrap());
        }

        fn write(&self, path: &Path) {
            let views = self.tensors.iter().map(|(name, dtype, shape, data)| {
                (name, TensorView::new(*dtype, shape.clone(), data).unwrap())
            });
            let metadata = self
                .metadata
                .clone()
                .map(|text| HashMap::from([(FORMAT.to_owned(), text)]));
            std::fs::write(path, safetensors::serialize(views, metadata).unwrap()).unwrap();
        }
    }

    #[test]
    fn faults_are_named_with_file_and_tensor() {
        type Spoil = fn(&mut Contents);
        let cases: [(Spoil, &str); 14] = [
            (
                |file| file.metadata = None,
                "metadata: there is no entry `tusker-network`",
            ),
            (|file| file.edit("{", "["), "metadata: "),
            (
                |file| file.edit(r#""format":2"#, r#""format":1"#),
                "format version 1, but this program knows version 2",
            ),
            (
                |file| {
                    let written = format!("\"encoding\":{ENCODING_VERSION}");
                    file.edit(&written, r#""encoding":9"#);
                },
                "encoding version 9, but",
            ),
            (
                |file| file.edit(r#""blocks":2"#, r#""blocks":4000000000"#),
                "metadata: a network's blocks must be 1 to 100",
            ),
            (
                |file| file.edit(r#""blocks":2"#, r#""blocks":3"#),
                "tensor `blocks.2.first.norm.weight` is missing",
            ),
            (
                |file| file.edit(r#""blocks":2"#, r#""blocks":1"#),
                "no such tensor",
            ),
            (
                |file| file.edit(r#""origin""#, r#""more":1,"origin""#),
                "unknown field `more`",
            ),
            (
                |file| file.tensor("value.output.bias").0 = "value.bias".into(),
                "tensor `value.output.bias` is missing",
            ),
            (
                |file| file.tensor("input.weight").2.swap(0, 1),
                "tensor `input.weight`: its shape is [33, 8, 3, 3], not [8, 33, 3, 3]",
            ),
            (
                |file| file.tensor("policy.end.bias").1 = Dtype::I32,
                "tensor `policy.end.bias`: its type is I32, not F32",
            ),
            (
                |file| file.tensor("policy.end.bias").3 = f32::INFINITY.to_le_bytes().into(),
                "tensor `policy.end.bias`: it holds inf",
            ),
            (
                |file| file.tensor("value.norm.variance").3[3] = 0xbf,
                "tensor `value.norm.variance`: it holds -",
            ),
            (
                |file| {
                    file.tensors
                        .push(("extra".into(), Dtype::F32, vec![1], vec![0; 4]))
                },
                "tensor `extra`: a network of this architecture has no such tensor",
            ),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        for (spoil, part) in cases {
            network().save(&path, &origin()).unwrap();
            let mut contents = Contents::read(&path);
            contents.write(&path);
            Network::load(&path).expect("unspoilt, it loads");
            spoil(&mut contents);
            contents.sign();
            contents.write(&path);
            let message = Network::load(&path).unwrap_err().to_string();
            assert!(
                message.contains("a.safetensors: ") && message.contains(part),
                "{message}"
            );
        }
    }

    #[test]
    fn broken_and_missing_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("a.safetensors");
        let message = Network::load(&path).unwrap_err().to_string();
        assert!(
            message.contains("can't read the network") && message.contains("a.safetensors"),
            "{message}"
        );

        network().save(&path, &origin()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            let message = Network::load(&path).unwrap_err().to_string();
            assert!(
                message.contains("a.safetensors: this is no network"),
                "{length}: {message}"
            );
        }
        for length in (0..whole.len()).step_by(97) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(Network::load(&path).is_err(), "{length}");
        }
        std::fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        assert!(Network::load(&path).is_err(), "nothing may follow");
    }

    /// Whether two networks say the same: the same sizes, and the same numbers bit by bit.
    fn equal(a: &Network, b: &Network) -> bool {
        let tensors = || a.tensors().iter().zip(b.tensors());
        a.architecture() == b.architecture()
            && tensors().all(|((one, here), (other, there))| one == other && here.equal(there))
    }

    #[test]
    fn a_changed_bit_never_makes_another_network() {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("a.safetensors");
        let network = network();
        network.save(&path, &origin()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;

        // A low bit of the last weight: the number stays finite, and only the checksum can tell.
        let mut changed = whole.clone();
        changed[whole.len() - 4] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let message = Network::load(&path).unwrap_err().to_string();
        assert!(
            message.contains("a.safetensors: ") && message.contains("checksum"),
            "{message}"
        );

        // The header with its names, sizes and origin is short beside the weights: it gets as many flips.
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut harmless = 0;
        for round in 0..600 {
            let bytes = match round % 2 {
                0 => 0..header,
                _ => header..whole.len(),
            };
            let (byte, bit) = (random.random_range(bytes), random.random_range(0..8));
            changed.copy_from_slice(&whole);
            changed[byte] ^= 1 << bit;
            std::fs::write(&path, &changed).unwrap();
            if let Ok(file) = Network::load(&path) {
                assert!(byte < header, "bit {bit} of byte {byte}");
                assert!(equal(&file.network, &network), "bit {bit} of byte {byte}");
                assert_eq!(file.origin, origin(), "bit {bit} of byte {byte}");
                harmless += 1;
            }
        }
        assert!(harmless < 20, "{harmless} flips changed nothing");
    }
}

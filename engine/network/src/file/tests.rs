//! What a weights file brings back, and what it refuses.

use super::*;
use engine::encoding::{CHANNELS, SCALARS};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::path::PathBuf;

/// The bytes of a 3×3 filter.
const FILTER_BYTES: usize = 9 * size_of::<f32>();

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
    for ((spec, loaded), (expected, made)) in file.network.tensors().iter().zip(network().tensors())
    {
        assert_eq!(spec, expected);
        assert!(loaded.equal(made), "{}", spec.name);
    }
    assert_eq!(saved, file.identity);
    assert_eq!(saved, Network::load(&path).unwrap().identity);

    // Equal networks make equal files, in place of what was there.
    file.network.save(&path, &origin()).unwrap();
    assert_eq!(saved, Network::load(&path).unwrap().identity);
    file.network.save(&path, &Origin::new()).unwrap();
    assert_ne!(saved, Network::load(&path).unwrap().identity);
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
    assert_eq!(Network::load(&path).unwrap().identity, saved);

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
    let cases: [(Spoil, &str); 15] = [
        (
            |file| file.metadata = None,
            "metadata: there is no entry `tusker-network`",
        ),
        (|file| file.edit("{", "["), "metadata: "),
        (
            |file| file.edit(r#""format":3"#, r#""format":1"#),
            "format version 1, but this program knows version 3: use the program that wrote the file",
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
            |file| file.tensor("helpers.ending.output.bias").0 = "ending".into(),
            "tensor `helpers.ending.output.bias` is missing",
        ),
        (
            |file| file.tensor("input.weight").2.swap(0, 1),
            "tensor `input.weight`: its shape is [39, 8, 3, 3], not [8, 39, 3, 3]",
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
                    .push(("extra".into(), Dtype::F32, vec![1], vec![0; 4]));
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
            message.contains("a.safetensors: this is not a network"),
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

#[test]
fn heads_that_a_file_lacks_are_those_of_a_new_network() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let saved = network();
    let new = Network::new(saved.architecture(), 0).unwrap();
    let all: Vec<Head> = Head::ALL
        .into_iter()
        .filter(|head| head.is_auxiliary())
        .collect();
    // A file of version 2, and one from before a head was added.
    for (version, missing) in [(2, &all[..]), (3, &[Head::Captures])] {
        let is_missing = |name: &str| missing.iter().any(|head| head.has_tensor(name));
        saved.save(&path, &origin()).unwrap();
        let mut contents = Contents::read(&path);
        contents.edit(r#""format":3"#, &format!("\"format\":{version}"));
        contents.tensors.retain(|tensor| !is_missing(&tensor.0));
        assert!(contents.tensors.len() < saved.tensors().len());
        contents.sign();
        contents.write(&path);
        let file = Network::load(&path).unwrap();
        assert_eq!(file.origin, origin());
        for (place, (spec, tensor)) in file.network.tensors().iter().enumerate() {
            let expected = if is_missing(&spec.name) { &new } else { &saved };
            assert!(tensor.equal(&expected.tensors()[place].1), "{}", spec.name);
        }
        // Written again it is of the newest version.
        file.network.save(&path, &origin()).unwrap();
        assert!(equal(&Network::load(&path).unwrap().network, &file.network));
    }
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

#[test]
fn a_network_of_encoding_version_2_ignores_the_newer_planes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.safetensors");
    let network = network();
    network.save(&path, &origin()).unwrap();
    let mut contents = Contents::read(&path);
    let (old, new) = (PLANES_OF_VERSION_2, PLANES - PLANES_OF_VERSION_2);
    let (_, _, shape, bytes) = contents.tensor(INPUT_WEIGHT);
    shape[1] -= new;
    let filters = bytes.chunks(CHANNELS * FILTER_BYTES);
    let kept = |filter: &[u8]| {
        [
            &filter[..old * FILTER_BYTES],
            &filter[PLANES * FILTER_BYTES..],
        ]
        .concat()
    };
    *bytes = filters.flat_map(kept).collect();
    contents.edit(
        &format!("\"encoding\":{ENCODING_VERSION}"),
        "\"encoding\":2",
    );
    contents.sign();
    contents.write(&path);

    let read = Network::load(&path).unwrap().network;
    for ((spec, written), (_, read)) in network.tensors().iter().zip(read.tensors()) {
        if spec.name != INPUT_WEIGHT {
            assert!(written.equal(read), "{}", spec.name);
            continue;
        }
        let part = |tensor: &Tensor, from: usize, length: usize| {
            tensor.narrow(1, from as i64, length as i64)
        };
        assert!(part(written, 0, old).equal(&part(read, 0, old)));
        assert!(part(written, PLANES, SCALARS).equal(&part(read, PLANES, SCALARS)));
        assert_eq!(part(read, old, new).abs().max().double_value(&[]), 0.0);
    }
}

/// The bytes of the largest network that a clone should have to carry.
const MAX_BYTES: usize = 8_000_000;

#[test]
fn the_built_in_network_is_the_one_that_its_readme_names() {
    assert!(BUILT_IN.len() <= MAX_BYTES, "{} bytes", BUILT_IN.len());
    let file = Network::built_in().unwrap();
    let readme = include_str!("../../built_in/README.md");
    let architecture = file.network.architecture();
    for said in [
        format!("`{}`", file.identity),
        format!(
            "{} blocks, {} channels",
            architecture.blocks, architecture.channels
        ),
        format!("encoding version {}", file.encoding),
    ] {
        assert!(readme.contains(&said), "the README does not contain {said}");
    }
}

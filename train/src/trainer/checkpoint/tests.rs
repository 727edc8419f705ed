//! Checkpoints that are kept, read back, broken and passed over.

use super::*;
use crate::data::Cursor;
use crate::trainer::loss::LossSums;
use crate::trainer::supply::SupplyState;
use engine::config::OptimizerKind;
use network::{Head, PerHead};

fn state(generation: u32, step: u64) -> TrainingState {
    // Numbers that come back wrong where floats are read carelessly.
    let mut losses = PerHead::default();
    (losses[Head::Policy], losses[Head::Value]) = (0.1 + 0.2, 1.0 / 3.0);
    let mut sums = LossSums::default();
    sums.add(&losses, &losses);
    TrainingState {
        generation,
        seed: 3,
        step,
        optimizer_steps: 0,
        first_step: 0,
        last_step: 100,
        segment: 2,
        cursor: Cursor {
            epoch: 1,
            game: 2,
            row: 3,
        },
        supply: SupplyState {
            shards: vec!["000-000000.shard".into()],
            seen_games: 7,
            seen_rows: 8,
            allowance: 0.1 + 0.7,
            reuse_factor: 0.1 + 0.9,
            trained_rows: 10,
            window_rows: 9,
        },
        new_games: 5,
        new_evaluations: Some(40),
        new_rows: 6,
        dropped: 1,
        parent: "x".into(),
        sums,
        validation_before: LossSums::default(),
    }
}

fn network(seed: u64) -> (Network, Optimizer) {
    network_of(OptimizerKind::AdamW, seed)
}

fn network_of(kind: OptimizerKind, seed: u64) -> (Network, Optimizer) {
    let architecture = Architecture {
        blocks: 1,
        channels: 8,
    };
    let network = Network::new(architecture, seed).unwrap();
    let mut optimizer = Optimizer::new(kind, &network).unwrap();
    optimizer.set_steps(41);
    for (number, (_, mut tensor)) in optimizer.tensors(&network).unwrap().into_iter().enumerate() {
        let _ = tensor.fill_(number as f64 + 0.1);
    }
    (network, optimizer)
}

fn numbers(network: &Network, average: &Network, optimizer: &Optimizer) -> TensorFile {
    let mut contents = TensorFile::default();
    for (name, tensor) in tensors(network, average, optimizer).unwrap() {
        contents.add(&name, &tensor).unwrap();
    }
    contents
}

#[test]
fn a_checkpoint_brings_everything_back() {
    for kind in [OptimizerKind::AdamW, OptimizerKind::Sgd] {
        let folder = tempfile::tempdir().unwrap();
        let (network_saved, optimizer_saved) = network_of(kind, 1);
        let (average_saved, _) = network(3);
        let mut config = Config::default();
        config.train.learning_rate = 0.0017;
        config.train.optimizer = kind;
        let path = save(
            folder.path(),
            &network_saved,
            &average_saved,
            &optimizer_saved,
            &config,
            &state(2, 50),
        )
        .unwrap();
        assert!(path.ends_with("00002-0000000050.safetensors"));
        let checkpoint = Checkpoint::load(&path).unwrap();
        let expected = TrainingState {
            optimizer_steps: 41,
            ..state(2, 50)
        };
        assert_eq!(
            (&checkpoint.header.state, &checkpoint.header.config),
            (&expected, &config)
        );
        let (average, _) = network(4);
        let (network, mut optimizer) = network_of(kind, 2);
        for (_, mut tensor) in optimizer.tensors(&network).unwrap() {
            let _ = tensor.zero_();
        }
        optimizer.set_steps(0);
        checkpoint
            .restore(&network, &average, &mut optimizer)
            .unwrap();
        assert_eq!(optimizer.steps(), 41);
        assert_eq!(
            numbers(&network, &average, &optimizer),
            numbers(&network_saved, &average_saved, &optimizer_saved)
        );
    }
}

/// What lies where in memory is the network's affair: in the file each tensor's numbers stand in the order of its dimensions.
#[test]
fn a_file_of_plain_tensors_is_restored_and_written_again_byte_by_byte() {
    for kind in [OptimizerKind::AdamW, OptimizerKind::Sgd] {
        let (network, mut optimizer) = network_of(kind, 1);
        let average = network.copy().unwrap();
        let mut contents = TensorFile::default();
        for (number, (name, tensor)) in tensors(&network, &average, &optimizer)
            .unwrap()
            .into_iter()
            .enumerate()
        {
            let shape: Vec<usize> = tensor.size().iter().map(|&size| size as usize).collect();
            let numbers = (0..tensor.numel()).map(|index| number as f32 + index as f32 / 65_536.0);
            let bytes = numbers.flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
            contents.0.insert(name, (shape, bytes));
        }
        let mut config = Config::default();
        config.train.optimizer = kind;
        let state = TrainingState {
            optimizer_steps: 41,
            ..state(1, 2)
        };
        let mut header = CheckpointHeader {
            format: FORMAT_VERSION,
            encoding: ENCODING_VERSION,
            architecture: network.architecture(),
            config: config.clone(),
            state: state.clone(),
            digest: String::new(),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file_name(&state));
        let bytes = to_file(&mut header, &contents).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let checkpoint = Checkpoint::load(&path).unwrap();
        checkpoint
            .restore(&network, &average, &mut optimizer)
            .unwrap();
        // A number of a convolution's second output, third input, first row, second column.
        let (number, (_, weight)) = tensors(&network, &average, &optimizer)
            .unwrap()
            .into_iter()
            .enumerate()
            .find(|(_, (name, _))| name == "average.blocks.0.first.weight")
            .unwrap();
        let index = (8 + 2) * 9 + 1;
        assert_eq!(
            weight.double_value(&[1, 2, 0, 1]) as f32,
            number as f32 + index as f32 / 65_536.0
        );
        let written = save(
            folder.path(),
            &network,
            &average,
            &optimizer,
            &config,
            &state,
        )
        .unwrap();
        assert!(std::fs::read(written).unwrap() == bytes);
    }
}

#[test]
fn another_optimizer_s_tensors_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (saved, optimizer) = network(1);
    let config = Config::default();
    let path = save(
        folder.path(),
        &saved,
        &saved,
        &optimizer,
        &config,
        &state(1, 2),
    )
    .unwrap();
    let (network, mut optimizer) = network_of(OptimizerKind::Sgd, 1);
    let message = Checkpoint::load(&path)
        .unwrap()
        .restore_optimizer(&network, &mut optimizer)
        .unwrap_err()
        .to_string();
    assert!(message.contains("velocity."), "{message}");
}

/// What an earlier program wrote, whose configuration knew fewer keys.
#[test]
fn a_checkpoint_from_before_a_key_is_whole() {
    let (network, optimizer) = network(1);
    let contents = numbers(&network, &network, &optimizer);
    let header = CheckpointHeader {
        format: FORMAT_VERSION,
        encoding: ENCODING_VERSION,
        architecture: network.architecture(),
        config: Config::default(),
        state: state(1, 2),
        digest: String::new(),
    };
    let bare = serde_json::to_string(&header).unwrap();
    let old = bare.replace(r#""prior_temperature":1.0,"#, "");
    assert_ne!(old, bare);
    let digest = digest_of(&old, contents.named());
    let folder = tempfile::tempdir().unwrap();
    let load = |text: String| {
        let bytes = contents.to_bytes(FORMAT, text).unwrap();
        let path = folder.path().join("00001-0000000002.safetensors");
        std::fs::write(&path, bytes).unwrap();
        Checkpoint::load(&path)
    };
    let with_digest = |text: &str| format!("{}{digest}\"}}", text.strip_suffix("\"}").unwrap());
    let checkpoint = load(with_digest(&old)).unwrap();
    assert_eq!(checkpoint.header.config, Config::default());
    load(with_digest(&bare)).unwrap_err();

    // Keys that were removed since.
    let cap = r#""playout_cap":{"full_share":1.0,"fast_evaluations":32},"openings":{"#;
    let old = bare.replace(r#""openings":{"#, cap);
    assert_ne!(old, bare);
    let digest = digest_of(&old, contents.named());
    let text = format!("{}{digest}\"}}", old.strip_suffix("\"}").unwrap());
    assert_eq!(load(text).unwrap().header.config, Config::default());
}

#[test]
fn the_newest_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (network, optimizer) = network(1);
    let mut config = Config::default();
    config.train.keep_checkpoints = 2;
    for (generation, step) in [(1, 90), (1, 100), (2, 100), (2, 1_000)] {
        save(
            folder.path(),
            &network,
            &network,
            &optimizer,
            &config,
            &state(generation, step),
        )
        .unwrap();
    }
    std::fs::write(folder.path().join("notes.txt"), "kept").unwrap();
    let names: Vec<String> = list(folder.path())
        .unwrap()
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        names,
        [
            "00002-0000000100.safetensors",
            "00002-0000001000.safetensors"
        ]
    );
    assert!(folder.path().join("notes.txt").exists());
    // Later ones that could not be read don't push out what is written now.
    let written = save(
        folder.path(),
        &network,
        &network,
        &optimizer,
        &config,
        &state(2, 50),
    )
    .unwrap();
    assert!(written.exists());
    assert_eq!(list(folder.path()).unwrap().len(), 3);
}

#[test]
fn another_version_is_an_error_and_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let (network, optimizer) = network(1);
    let save = |step| {
        let config = Config::default();
        let state = state(1, step);
        save(
            folder.path(),
            &network,
            &network,
            &optimizer,
            &config,
            &state,
        )
        .unwrap()
    };
    save(1);
    let path = save(2);
    let bytes = std::fs::read(&path).unwrap();
    let text = format!("\\\"format\\\":{FORMAT_VERSION}").into_bytes();
    let at = bytes.windows(text.len()).position(|part| part == text);
    let mut other = bytes;
    other[at.unwrap() + text.len() - 1] = b'9';
    std::fs::write(&path, &other).unwrap();
    let message = newest(folder.path()).unwrap_err().to_string();
    assert!(
        message.contains("00001-0000000002.safetensors: format version 9, but this program knows"),
        "{message}"
    );
}

/// Without any of them, all games would count as new.
#[test]
fn damaged_checkpoints_are_passed_over_unless_all_are() {
    let folder = tempfile::tempdir().unwrap();
    assert!(newest(folder.path()).unwrap().is_none());
    let (network, optimizer) = network(1);
    let paths = [1, 2].map(|step| {
        let (config, state) = (Config::default(), state(1, step));
        save(
            folder.path(),
            &network,
            &network,
            &optimizer,
            &config,
            &state,
        )
        .unwrap()
    });
    let damage = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    let step_3 = folder.path().join("00001-0000000003.safetensors");
    std::fs::copy(&paths[1], &step_3).unwrap();
    let whole = newest(folder.path()).unwrap().unwrap();
    assert_eq!(whole.path(), paths[1], "another checkpoint's contents");
    std::fs::remove_file(step_3).unwrap();
    damage(&paths[1]);
    let whole = newest(folder.path()).unwrap().unwrap();
    assert_eq!(whole.path(), paths[0]);
    damage(&paths[0]);
    let message = newest(folder.path()).unwrap_err().to_string();
    for part in [
        "all checkpoints are damaged",
        "00001-0000000002",
        "move them away",
    ] {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

#[test]
fn no_changed_byte_and_no_cut_goes_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let (network, optimizer) = network(1);
    let path = save(
        folder.path(),
        &network,
        &network,
        &optimizer,
        &Config::default(),
        &state(1, 2),
    )
    .unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let copy = folder.path().join("copy");
    let message = |bytes: &[u8]| {
        std::fs::write(&copy, bytes).unwrap();
        Checkpoint::load(&copy).unwrap_err().to_string()
    };
    // In the lengths, the header, its metadata, the tensors and the end.
    for at in (0..bytes.len())
        .step_by(1_009)
        .chain([0, 9, 60, bytes.len() - 1])
    {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(
            message(&changed).contains("copy: this is not a checkpoint, or it is damaged"),
            "byte {at}"
        );
    }
    for end in [0, 7, 100, bytes.len() / 2, bytes.len() - 1] {
        assert!(message(&bytes[..end]).contains("damaged"), "cut at {end}");
    }
    let network_file = folder.path().join("network.safetensors");
    network.save(&network_file, &Default::default()).unwrap();
    let error = Checkpoint::load(&network_file).unwrap_err().to_string();
    assert!(error.contains("no metadata `tusker-checkpoint`"), "{error}");
}

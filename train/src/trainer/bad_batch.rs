//! Files of batches whose losses or gradients are not finite.
//!
//! `logs/bad-batches/GGGGG-SSSSSSSSSS-N.safetensors` holds the batch: planes, legal actions, the targets under the heads' names, and
//! weights. The name has the generation, the number of the step, and the number of batches dropped in this generation. The metadata
//! states which number is not finite, and where in the window the batch ends.

use crate::data::{Batch, BatchTensors};
use crate::error::TrainError;
use crate::trainer::state::TrainingState;
use crate::trainer::tensor_file::TensorFile;
use engine::run::{make_folder, write_file};
use network::RowWeight;
use std::path::{Path, PathBuf};
use tch::{Device, TchError};

/// The name of the metadata entry.
pub(crate) const FORMAT: &str = "tusker-bad-batch";

/// Writes a batch to its file in the folder of logs, and returns the file.
pub(crate) fn keep(
    logs: &Path,
    state: &TrainingState,
    batch: &Batch,
    error: &TrainError,
) -> Result<PathBuf, TrainError> {
    let folder = logs.join("bad-batches");
    make_folder(&folder)?;
    let (generation, step, number) = (state.generation, state.step + 1, state.dropped);
    // After a restart the numbers repeat; no file is overwritten.
    let name =
        |number: u64| folder.join(format!("{generation:05}-{step:010}-{number}.safetensors"));
    let path = (number..)
        .map(name)
        .find(|path| !path.exists())
        .unwrap_or_else(|| name(number));
    let file = named(&batch.to_device(0..batch.len(), Device::Cpu)?)?;
    let cursor = state.cursor;
    let metadata = format!(
        "{error}; segment {}, epoch {}, game {}, row {}",
        state.segment, cursor.epoch, cursor.game, cursor.row
    );
    let bytes = file
        .to_bytes(FORMAT, metadata)
        .map_err(|error| TrainError::io("write", &path)(std::io::Error::other(error)))?;
    write_file(&path, &bytes)?;
    Ok(path)
}

fn named(batch: &BatchTensors) -> Result<TensorFile, TchError> {
    let mut file = TensorFile::default();
    file.add("planes", &batch.planes)?;
    file.add("legal", &batch.legal)?;
    for (head, target) in batch.targets.iter() {
        file.add(head.name(), target)?;
    }
    for (of, weights) in RowWeight::ALL.into_iter().zip(&batch.weights) {
        file.add(of.name(), weights)?;
    }
    Ok(file)
}

//! Batches that could not be trained on, kept for study.
//!
//! `logs/bad-batches/GGGGG-SSSSSSSSSS-N.safetensors` holds the batch: planes, legal actions, the targets under the heads' names, and
//! weights. The name has generation, step that was to be made, and how many batches were dropped in this generation so far. The metadata
//! say what was no finite number, and where in the window the batch ends.

use crate::data::{Batch, BatchTensors};
use crate::error::TrainError;
use crate::trainer::checkpoint::TrainingState;
use engine::run::{make_folder, write_file};
use network::RowWeight;
use safetensors::tensor::{Dtype, TensorView};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tch::{Device, Kind, TchError, Tensor};

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
    // After a restart the numbers begin anew, and nothing is written over.
    let name =
        |number: u64| folder.join(format!("{generation:05}-{step:010}-{number}.safetensors"));
    let path = (number..)
        .map(name)
        .find(|path| !path.exists())
        .unwrap_or_else(|| name(number));
    let tensors = batch.to_device(Device::Cpu)?;
    let contents = named(&tensors)
        .into_iter()
        .map(|(name, tensor)| Ok((name, shape(tensor), bytes(tensor)?)))
        .collect::<Result<Vec<_>, TchError>>()?;
    let broken = |error| TrainError::io("write", &path)(std::io::Error::other(error));
    let views = contents
        .iter()
        .map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            view.map(|view| (*name, view))
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(broken)?;
    let cursor = state.cursor;
    let metadata = HashMap::from([(
        "tusker-bad-batch".to_owned(),
        format!(
            "{error}; segment {}, epoch {}, game {}, row {}",
            state.segment, cursor.epoch, cursor.game, cursor.row
        ),
    )]);
    let file = safetensors::serialize(views, Some(metadata)).map_err(broken)?;
    write_file(&path, &file)?;
    Ok(path)
}

fn named(batch: &BatchTensors) -> Vec<(&'static str, &Tensor)> {
    let mut named = vec![("planes", &batch.planes), ("legal", &batch.legal)];
    named.extend(
        batch
            .targets
            .iter()
            .map(|(head, tensor)| (head.name(), tensor)),
    );
    let weights = RowWeight::ALL.map(RowWeight::name);
    named.extend(weights.into_iter().zip(&batch.weights));
    named
}

fn shape(tensor: &Tensor) -> Vec<usize> {
    tensor.size().iter().map(|&size| size as usize).collect()
}

/// The numbers as little-endian floats.
fn bytes(tensor: &Tensor) -> Result<Vec<u8>, TchError> {
    let tensor = tensor.f_to_kind(Kind::Float)?.f_contiguous()?;
    let mut numbers = vec![0f32; tensor.numel()];
    let count = numbers.len();
    tensor.f_copy_data(&mut numbers, count)?;
    Ok(numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect())
}

//! What can go wrong with networks.

use super::{Device, Precision};
use crate::notation::NotationError;
use std::path::PathBuf;
use tch::TchError;

/// Why a network could not be made, read, written or computed with.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The file can't be read.
    #[error("can't read the network {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file can't be written; what was there before is untouched.
    #[error("can't write the network {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file is no safetensors file, or a broken one.
    #[error("{}: this is no network, or a broken one: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file's metadata is not what this program writes.
    #[error("{}: metadata: {reason}", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is of another version.
    #[error("{}: {what} version {found}, but this program knows version {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// What has a version: `format` or `encoding`.
        what: &'static str,
        /// The file's.
        found: u32,
        /// This program's.
        known: u32,
    },
    /// A tensor of the architecture is not in the file.
    #[error("{}: tensor `{tensor}` is missing", path.display())]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// Its name.
        tensor: String,
    },
    /// A tensor is not what its architecture asks for.
    #[error("{}: tensor `{tensor}`: {reason}", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// Its name.
        tensor: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Sizes that no network has.
    #[error("a network's {key} must be {allowed}, not {value}")]
    Architecture {
        /// `blocks` or `channels`.
        key: &'static str,
        /// Its value.
        value: u32,
        /// The range.
        allowed: String,
    },
    /// A device that was asked for can't be used.
    #[error("device {device}: {reason}")]
    Device {
        /// As given: `cuda:1`.
        device: String,
        /// Why not.
        reason: String,
    },
    /// The network's fast form says something else than the network itself.
    #[error(
        "{network}: computed in {precision} on {device} it drifts too far from itself in fp32: the largest error of a value \
         is {value_error:.2e} (at most {value_bound:.0e}), the mean divergence of a policy {divergence:.2e} (at most \
         {divergence_bound:.0e})"
    )]
    Drift {
        /// What the network is called.
        network: String,
        /// In what the fast form computes.
        precision: Precision,
        /// Where.
        device: Device,
        /// The largest difference of two win probabilities.
        value_error: f64,
        /// What it may be.
        value_bound: f64,
        /// The mean Kullback-Leibler divergence over the legal actions, in nats.
        divergence: f64,
        /// What it may be.
        divergence_bound: f64,
    },
    /// The network says numbers that are none, or infinite.
    #[error(
        "{network}: computed in {precision} on {device}, {place} gives numbers that are not finite"
    )]
    NotFinite {
        /// What the network is called.
        network: String,
        /// In what it was computed.
        precision: Precision,
        /// Where.
        device: Device,
        /// The first layer or head at fault: `layer blocks.3.first`, `the policy head`.
        place: String,
    },
    /// The positions that come with the program can't be read.
    #[error("the positions for the check of a network: {0}")]
    Positions(#[from] NotationError),
    /// libtorch failed.
    #[error("libtorch: {0}")]
    Torch(String),
}

impl From<TchError> for NetworkError {
    fn from(error: TchError) -> Self {
        Self::Torch(message(&error))
    }
}

/// What libtorch says, without the stack of C++ functions that follows.
fn message(error: &TchError) -> String {
    let text = match error {
        TchError::Torch(text) => text.clone(),
        other => other.to_string(),
    };
    let end = text.find("\nException raised from").unwrap_or(text.len());
    text[..end].trim().to_owned()
}

//! The network's sizes, and the tensors that follow from them.

use crate::error::NetworkError;
use engine::config::NetworkConfig;
use serde::{Deserialize, Serialize};

/// The sizes of the residual tower, which determine those of the heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Residual blocks of two 3×3 convolutions.
    pub blocks: u32,
    /// Channels of the tower.
    pub channels: u32,
}

impl From<NetworkConfig> for Architecture {
    fn from(config: NetworkConfig) -> Self {
        Self {
            blocks: config.blocks,
            channels: config.channels,
        }
    }
}

impl Architecture {
    /// Checks the ranges that the configuration allows.
    pub(super) fn check(self) -> Result<(), NetworkError> {
        for (key, value, allowed) in [
            ("blocks", self.blocks, 1..=100),
            ("channels", self.channels, 8..=2_048),
        ] {
            if !allowed.contains(&value) {
                return Err(NetworkError::Architecture {
                    key,
                    value,
                    allowed: format!("{} to {}", allowed.start(), allowed.end()),
                });
            }
        }
        Ok(())
    }

    /// Whether a block, counted from 0, has global pooling.
    pub(super) fn pools(block: u32) -> bool {
        block % 2 == 1
    }
}

/// The role of a tensor: its initial values, and whether and how it is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// A convolution's or linear layer's weights: normally distributed at the start, with a standard deviation of
    /// `gain * sqrt(2 / inputs)` (He et al. 2015); decayed.
    Weight { gain: f64 },
    /// Added to something: 0 at the start; not decayed.
    Bias,
    /// A norm's factors: 1 at the start; not decayed.
    Scale,
    /// A norm's running mean: 0 at the start; not trained.
    Mean,
    /// A norm's running variance: 1 at the start; not trained.
    Variance,
}

impl Role {
    /// Whether it is trained by gradients.
    pub(super) fn trained(self) -> bool {
        !matches!(self, Self::Mean | Self::Variance)
    }
}

/// A tensor of a network: its name in the weights file, its shape and its role.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TensorSpec {
    pub(super) name: String,
    pub(super) shape: Vec<i64>,
    pub(super) role: Role,
}

impl TensorSpec {
    /// How many numbers it holds.
    pub(super) fn len(&self) -> usize {
        self.shape.iter().product::<i64>() as usize
    }

    /// The number of inputs that each output of a weight sums over (fan-in).
    pub(super) fn inputs(&self) -> usize {
        self.shape[1..].iter().product::<i64>() as usize
    }
}

//! The whole configuration and its sections; the large ones are in files of their own.

use super::search::SearchConfig;
use super::selfplay::SelfplayConfig;
use super::training::TrainConfig;
use super::training_loop::LoopConfig;
use super::values::within;
use garde::Validate;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The configuration of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The network's architecture.
    #[garde(dive)]
    pub network: NetworkConfig,
    /// Self-play games.
    #[garde(dive)]
    pub selfplay: SelfplayConfig,
    /// The training of a network on them.
    #[garde(dive)]
    pub train: TrainConfig,
    /// Matches between players, analysis and play.
    #[garde(dive)]
    #[serde(rename = "match")]
    pub matches: MatchConfig,
    /// The loop of generating, training and comparing.
    #[garde(dive)]
    #[serde(rename = "loop")]
    pub training_loop: LoopConfig,
}

/// The network's architecture: a residual tower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NetworkConfig {
    /// Residual blocks of two 3×3 convolutions.
    #[garde(custom(within(1..=100)))]
    pub blocks: u32,
    /// Channels of the tower.
    #[garde(custom(within(8..=2_048)))]
    pub channels: u32,
    /// The number format for play.
    pub precision: Precision,
}

/// Matches between players, analysis and play.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct MatchConfig {
    /// A game is truncated after this many turns, setups included, and counts half a point for each side.
    #[garde(custom(within(3..=100_000)))]
    pub max_turns: u32,
    /// The search of a turn.
    #[garde(dive)]
    pub search: SearchConfig,
}

/// The type that a network computes with when it plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// What the device computes fast: bf16 on GPUs of compute capability 8.0 and above and on CPUs with AMX or AMD's AVX-512 BF16,
    /// fp16 on older GPUs, else fp32. A format in which the network drifts too far from fp32 is passed over.
    #[default]
    Auto,
    /// 32-bit floats.
    Fp32,
    /// 16-bit floats with the exponents of 32-bit ones. A CPU needs AVX-512 (BW, VL and DQ) or AVX-NE-CONVERT for it.
    Bf16,
    /// 16-bit floats with more digits and fewer exponents than bf16. CUDA only.
    Fp16,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Fp32 => "fp32",
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precisions_have_their_names_in_files() {
        for (text, precision) in [
            ("auto", Precision::Auto),
            ("fp32", Precision::Fp32),
            ("bf16", Precision::Bf16),
            ("fp16", Precision::Fp16),
        ] {
            let quoted = format!("\"{text}\"");
            assert_eq!(precision.to_string(), text);
            assert_eq!(serde_json::to_string(&precision).unwrap(), quoted);
        }
        assert!(serde_json::from_str::<Precision>("\"float\"").is_err());
    }
}

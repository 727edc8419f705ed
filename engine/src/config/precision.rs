//! The types that a network computes with when it plays.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The type that a network computes with when it plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// What the device computes fast: bf16 on CUDA and on processors with AMX or AMD's AVX-512 BF16, else fp32. Where the
    /// network drifts too far from itself in bf16: fp16 on CUDA, and at last fp32.
    #[default]
    Auto,
    /// 32-bit floats.
    Fp32,
    /// 16-bit floats with the exponents of 32-bit ones. Works on every processor, and crawls on those not made for it.
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
    fn precisions_are_called_what_files_call_them() {
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

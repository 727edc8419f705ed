//! The types that a network computes with when it plays.

use super::{Device, NetworkError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use tch::Kind;

/// The type that a network computes with when it plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// What the device computes fast: bf16 on CUDA and on processors with AMX or AMD's AVX-512 BF16, else fp32. Where the
    /// network drifts too far from itself in bf16, fp32.
    #[default]
    Auto,
    /// 32-bit floats.
    Fp32,
    /// 16-bit floats with the exponents of 32-bit ones. Works on every processor, and crawls on those not made for it.
    Bf16,
    /// 16-bit floats with more digits and fewer exponents than bf16. CUDA only.
    Fp16,
}

/// Text that names no precision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no precision: expected auto, fp32, bf16 or fp16")]
pub struct PrecisionParseError(pub String);

impl FromStr for Precision {
    type Err = PrecisionParseError;

    fn from_str(text: &str) -> Result<Self, PrecisionParseError> {
        match text {
            "auto" => Ok(Self::Auto),
            "fp32" => Ok(Self::Fp32),
            "bf16" => Ok(Self::Bf16),
            "fp16" => Ok(Self::Fp16),
            _ => Err(PrecisionParseError(text.to_owned())),
        }
    }
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

impl Precision {
    /// What to try on a device, the best first; never [`Auto`](Self::Auto).
    pub(super) fn choices(self, device: Device) -> Result<&'static [Self], NetworkError> {
        let bf16_is_fast = || match device {
            Device::Cuda(_) => true,
            Device::Cpu => processor_has_fast_bf16(),
        };
        match (self, device) {
            (Self::Auto, _) if bf16_is_fast() => Ok(&[Self::Bf16, Self::Fp32]),
            (Self::Auto | Self::Fp32, _) => Ok(&[Self::Fp32]),
            (Self::Bf16, _) => Ok(&[Self::Bf16]),
            (Self::Fp16, Device::Cuda(_)) => Ok(&[Self::Fp16]),
            (Self::Fp16, Device::Cpu) => Err(NetworkError::Device {
                device: device.to_string(),
                reason: "processors compute fp16 10 to 50 times slower than fp32: \
                         it is for CUDA only; ask for auto, fp32 or bf16"
                    .into(),
            }),
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Auto | Self::Fp32 => Kind::Float,
            Self::Bf16 => Kind::BFloat16,
            Self::Fp16 => Kind::Half,
        }
    }
}

/// Whether the processor computes bf16 faster than fp32: with AMX, or AMD's AVX-512 BF16. Intel's AVX-512 BF16 has half the
/// throughput of its fp32 (Emerald Rapids without AMX, 3×3 convolution of 64 channels, batch 64: 2.8 ms against 1.5 ms).
fn processor_has_fast_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        let vendor = __cpuid(0);
        let is_amd = [vendor.ebx, vendor.edx, vendor.ecx]
            == [b"Auth", b"enti", b"cAMD"].map(|part| u32::from_le_bytes(*part));
        // Leaf 7 exists on every processor with AVX-512; bit 22 of EDX is AMX-BF16.
        std::is_x86_feature_detected!("avx512bf16")
            && (is_amd || __cpuid_count(7, 0).edx >> 22 & 1 != 0)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precisions_have_names() {
        for (text, precision) in [
            ("auto", Precision::Auto),
            ("fp32", Precision::Fp32),
            ("bf16", Precision::Bf16),
            ("fp16", Precision::Fp16),
        ] {
            assert_eq!(text.parse(), Ok(precision));
            assert_eq!(precision.to_string(), text);
            let quoted = format!("\"{text}\"");
            assert_eq!(serde_json::to_string(&precision).unwrap(), quoted);
            assert_eq!(
                serde_json::from_str::<Precision>(&quoted).unwrap(),
                precision
            );
        }
        for text in ["", "BF16", "float", "16"] {
            let error = text.parse::<Precision>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")));
        }
    }

    #[test]
    fn half_precision_is_refused_on_a_processor() {
        let error = Precision::Fp16.choices(Device::Cpu).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("device cpu: ") && message.contains("10 to 50 times slower"),
            "{message}"
        );
        assert!(Precision::Fp16.choices(Device::Cuda(0)).is_ok());
        // Automatic choices end with what always works.
        for device in [Device::Cpu, Device::Cuda(0)] {
            let choices = Precision::Auto.choices(device).unwrap();
            assert_eq!(choices.last(), Some(&Precision::Fp32));
        }
    }
}

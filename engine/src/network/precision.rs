//! The types that a network computes with when it plays.

use super::{Device, NetworkError};
use crate::config::Precision;
use tch::Kind;

impl Precision {
    /// What to try on a device, the best first; never [`Auto`](Self::Auto).
    pub(super) fn choices(self, device: Device) -> Result<&'static [Self], NetworkError> {
        match (self, device) {
            // bf16 knows no overflow; fp16 is as fast and says more digits.
            (Self::Auto, Device::Cuda(_)) => Ok(&[Self::Bf16, Self::Fp16, Self::Fp32]),
            (Self::Auto, Device::Cpu) if processor_has_fast_bf16() => Ok(&[Self::Bf16, Self::Fp32]),
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

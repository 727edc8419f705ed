//! The types that a network computes with when it plays, and when it is trained.

use crate::device::Device;
use crate::error::NetworkError;
use engine::config::{Precision, TrainingPrecision};
use tch::Kind;

/// The precisions to try on a device, the best first; never [`Precision::Auto`].
pub(super) fn choices(
    precision: Precision,
    device: Device,
) -> Result<&'static [Precision], NetworkError> {
    match (precision, device) {
        // bf16 does not overflow; fp16 is as fast and has more digits.
        (Precision::Auto, Device::Cuda(number)) => match capability(number) {
            Some(found) if found < (8, 0) => Ok(&[Precision::Fp16, Precision::Fp32]),
            _ => Ok(&[Precision::Bf16, Precision::Fp16, Precision::Fp32]),
        },
        (Precision::Auto, _) if cpu_has_fast_bf16() => Ok(&[Precision::Bf16, Precision::Fp32]),
        (Precision::Auto | Precision::Fp32, _) => Ok(&[Precision::Fp32]),
        (Precision::Bf16, _) => Ok(&[Precision::Bf16]),
        (Precision::Fp16, Device::Cuda(_)) => Ok(&[Precision::Fp16]),
        (Precision::Fp16, _) => Err(NetworkError::device(
            device,
            "CPUs compute fp16 10 to 50 times slower than fp32: it is for CUDA only; choose auto, fp32 or bf16",
        )),
    }
}

/// The type that a network plays in.
pub(super) fn kind(precision: Precision) -> Kind {
    match precision {
        Precision::Auto | Precision::Fp32 => Kind::Float,
        Precision::Bf16 => Kind::BFloat16,
        Precision::Fp16 => Kind::Half,
    }
}

/// The type that convolutions are computed in when a network is trained on a device: float or bf16.
pub fn training_kind(precision: TrainingPrecision, device: tch::Device) -> Kind {
    let bf16 = match (precision, device) {
        (TrainingPrecision::Bf16, _) => true,
        (TrainingPrecision::Auto, tch::Device::Cuda(number)) => {
            u16::try_from(number).is_ok_and(gpu_has_fast_bf16)
        }
        (TrainingPrecision::Auto | TrainingPrecision::Fp32, _) => false,
    };
    if bf16 { Kind::BFloat16 } else { Kind::Float }
}

/// Whether a GPU has units for bf16: from compute capability 8.0 on. They are at least 4 times as fast as fp32; older GPUs emulate
/// bf16.
fn gpu_has_fast_bf16(number: u16) -> bool {
    capability(number) >= Some((8, 0))
}

/// The compute capability of a GPU; none where the driver doesn't tell it.
fn capability(number: u16) -> Option<(u32, u32)> {
    Device::Cuda(number).description().ok()?.capability
}

/// Whether the CPU computes bf16 faster than fp32: with AMX, or AMD's AVX-512 BF16. Intel's AVX-512 BF16 has half the
/// throughput of its fp32 (Emerald Rapids without AMX, 3×3 convolution of 64 channels, batch 64: 2.8 ms against 1.5 ms).
fn cpu_has_fast_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        let vendor = __cpuid(0);
        let is_amd = [vendor.ebx, vendor.edx, vendor.ecx]
            == [b"Auth", b"enti", b"cAMD"].map(|part| u32::from_le_bytes(*part));
        // Leaf 7 exists on every CPU with AVX-512; bit 22 of EDX is AMX-BF16.
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
    fn processors_train_in_float_unless_told_otherwise() {
        for (precision, kind) in [
            (TrainingPrecision::Auto, Kind::Float),
            (TrainingPrecision::Fp32, Kind::Float),
            (TrainingPrecision::Bf16, Kind::BFloat16),
        ] {
            assert_eq!(training_kind(precision, tch::Device::Cpu), kind);
        }
        assert_eq!(
            training_kind(TrainingPrecision::Fp32, tch::Device::Cuda(0)),
            Kind::Float
        );
    }

    #[test]
    fn half_precision_is_refused_on_a_processor() {
        let error = choices(Precision::Fp16, Device::Cpu).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("device cpu: ") && message.contains("10 to 50 times slower"),
            "{message}"
        );
        assert!(choices(Precision::Fp16, Device::Cuda(0)).is_ok());
        // Automatic choices end with what always works.
        for device in [Device::Cpu, Device::Cuda(0)] {
            let choices = choices(Precision::Auto, device).unwrap();
            assert_eq!(choices.last(), Some(&Precision::Fp32));
        }
    }
}

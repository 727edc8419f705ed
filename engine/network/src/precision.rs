//! The types that a network computes with when it plays, and when it is trained.

use crate::cuda::Cuda;
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
        (Precision::Bf16, Device::Cuda(_)) => Ok(&[Precision::Bf16]),
        (Precision::Bf16, _) if cpu_computes_bf16() => Ok(&[Precision::Bf16]),
        (Precision::Bf16, _) => Err(NetworkError::device(device, NO_BF16)),
        (Precision::Fp16, Device::Cuda(_)) => Ok(&[Precision::Fp16]),
        (Precision::Fp16, _) => Err(NetworkError::device(
            device,
            "CPUs compute fp16 10 to 50 times slower than fp32: it is for CUDA only; choose auto, fp32 or bf16",
        )),
    }
}

const NO_BF16: &str = "this CPU can't compute bf16, which needs AVX-512 (BW, VL and DQ) or AVX-NE-CONVERT; choose auto or fp32";

/// The type that a network plays in.
pub(super) fn kind(precision: Precision) -> Kind {
    match precision {
        Precision::Auto | Precision::Fp32 => Kind::Float,
        Precision::Bf16 => Kind::BFloat16,
        Precision::Fp16 => Kind::Half,
    }
}

/// The type that convolutions are computed in when a network is trained on a device: float or bf16.
///
/// # Errors
///
/// A CPU that can't compute bf16.
pub fn training_kind(
    precision: TrainingPrecision,
    device: tch::Device,
) -> Result<Kind, NetworkError> {
    let bf16 = match (precision, device) {
        (TrainingPrecision::Bf16, tch::Device::Cpu) if !cpu_computes_bf16() => {
            return Err(NetworkError::device(Device::Cpu, NO_BF16));
        }
        (TrainingPrecision::Bf16, _) => true,
        (TrainingPrecision::Auto, tch::Device::Cuda(number)) => {
            u16::try_from(number).is_ok_and(gpu_has_fast_bf16)
        }
        (TrainingPrecision::Auto | TrainingPrecision::Fp32, _) => false,
    };
    Ok(if bf16 { Kind::BFloat16 } else { Kind::Float })
}

/// Whether libtorch computes convolutions in bf16 on the CPU. Others than x86-64 are left to libtorch.
pub fn cpu_computes_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        // Leaf 7 exists on every CPU with AVX2; bit 5 of subleaf 1's EDX is AVX-NE-CONVERT.
        let has_ne_convert = std::arch::x86_64::__cpuid_count(7, 1).edx >> 5 & 1 != 0;
        let has_avx512 = std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("avx512dq");
        has_avx512 || has_ne_convert
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        true
    }
}

/// Whether a GPU has units for bf16: from compute capability 8.0 on. They are at least 4 times as fast as fp32; older GPUs emulate
/// bf16.
fn gpu_has_fast_bf16(number: u16) -> bool {
    capability(number) >= Some((8, 0))
}

/// The compute capability of a GPU; none where the driver doesn't tell it.
fn capability(number: u16) -> Option<(u32, u32)> {
    let gpu = Cuda::of_this_machine().gpu(number)?;
    Some(gpu.capability)
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
        let kind = |precision, device| training_kind(precision, device).ok();
        for (precision, expected) in [
            (TrainingPrecision::Auto, Some(Kind::Float)),
            (TrainingPrecision::Fp32, Some(Kind::Float)),
            (
                TrainingPrecision::Bf16,
                cpu_computes_bf16().then_some(Kind::BFloat16),
            ),
        ] {
            assert_eq!(kind(precision, tch::Device::Cpu), expected);
        }
        let gpu = tch::Device::Cuda(0);
        assert_eq!(kind(TrainingPrecision::Fp32, gpu), Some(Kind::Float));
        assert_eq!(kind(TrainingPrecision::Bf16, gpu), Some(Kind::BFloat16));
    }

    #[test]
    fn bf16_is_refused_where_the_processor_lacks_it() {
        match choices(Precision::Bf16, Device::Cpu) {
            Ok(choices) => assert!(cpu_computes_bf16() && choices == [Precision::Bf16]),
            Err(error) => {
                let message = error.to_string();
                assert!(!cpu_computes_bf16() && message.ends_with("choose auto or fp32"));
            }
        }
        assert!(cpu_computes_bf16() || !cpu_has_fast_bf16());
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

//! The devices that evaluate networks.

use anyhow::{Context, Result, ensure};
use clap::Args;
use engine::config::Config;
use engine::progress::say;
use network::{Device, EvaluationService, Precision, tuning_file};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The devices as options.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeviceArguments {
    /// Device that evaluates networks: cpu, cuda, cuda:N, or several GPUs, such as cuda:0,cuda:1. cpu:service treats the CPU as a
    /// GPU, for tests
    #[arg(
        long = "device",
        value_name = "DEVICE",
        default_value = "cpu",
        value_delimiter = ','
    )]
    devices: Vec<Device>,
}

impl DeviceArguments {
    /// The devices, each once, with the configured precision.
    pub(crate) fn devices(&self, config: &Config) -> Result<Devices> {
        Devices::new(&self.devices, config, "--device")
    }
}

/// The devices that evaluate networks, with their precision. Copies share the evaluation service.
#[derive(Debug, Clone)]
pub(crate) struct Devices {
    /// One at least: the CPU, or GPUs.
    pub(crate) list: Vec<Device>,
    pub(crate) precision: Precision,
    /// Whether the batch sizes of GPUs are tuned anew, without the remembered ones.
    pub(crate) tunes_anew: bool,
    /// None until the first network is loaded.
    service: Arc<Mutex<Option<Arc<EvaluationService>>>>,
}

impl Devices {
    /// Devices, each once, with the configured precision. `option` names them in errors.
    pub(crate) fn new(devices: &[Device], config: &Config, option: &str) -> Result<Self> {
        for (index, device) in devices.iter().enumerate() {
            ensure!(
                !devices[..index].contains(device),
                "{option}: {device} is named twice"
            );
        }
        ensure!(
            devices.len() == 1 || devices.iter().all(|device| device.is_cuda()),
            "{option}: several devices must all be GPUs"
        );
        Ok(Self::of(devices.to_vec(), config.network.precision))
    }

    /// Devices that have been checked.
    pub(crate) fn of(devices: Vec<Device>, precision: Precision) -> Self {
        Self {
            list: devices,
            precision,
            tunes_anew: false,
            service: Arc::default(),
        }
    }

    /// The service that evaluates on the devices. It starts at the first call.
    pub(crate) fn service(&self) -> Result<Arc<EvaluationService>> {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = &*service {
            return Ok(Arc::clone(service));
        }
        let tunings = if self.tunes_anew { None } else { tuning_file() };
        let started = EvaluationService::start(&self.list, tunings, note)?;
        *service = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Whether the devices have failed, so that this process can't evaluate any more.
    pub(crate) fn has_failed(&self) -> bool {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        service.as_ref().is_some_and(|service| service.has_ended())
    }

    /// As [`new`](Self::new), of a list like `cuda:0,cuda:1`.
    pub(crate) fn parse(list: &str, config: &Config, option: &str) -> Result<Self> {
        let devices: Result<Vec<Device>, _> = list.split(',').map(str::parse).collect();
        let devices = devices.with_context(|| format!("{option} {list}"))?;
        Self::new(&devices, config, option)
    }

    /// Makes the devices ready, so that one that can't be used is an error before any work. `option` names them in errors.
    pub(crate) fn open(&self, option: &str) -> Result<()> {
        for device in &self.list {
            device.open().with_context(|| option.to_owned())?;
        }
        Ok(())
    }

    /// Whether each worker has an evaluator of its own.
    pub(crate) fn is_local(&self) -> bool {
        self.list == [Device::Cpu]
    }
}

/// Prints a note on a network or a device to the terminal.
pub(crate) fn note(note: &str) {
    say(&format!("note: {note}"));
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.list.iter().map(Device::to_string).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        device: DeviceArguments,
    }

    fn devices(arguments: &[&str]) -> Result<Devices> {
        let arguments = [&["program"], arguments].concat();
        Cli::try_parse_from(arguments)?
            .device
            .devices(&Config::default())
    }

    #[test]
    fn devices_are_read_as_a_list() {
        assert!(devices(&[]).unwrap().is_local());
        let two = devices(&["--device", "cuda:0,cuda:1"]).unwrap();
        assert_eq!(two.list, [Device::Cuda(0), Device::Cuda(1)]);
        assert_eq!(two.to_string(), "cuda:0,cuda:1");
        assert!(!two.is_local());
        for (list, said) in [
            ("cuda,cuda:0", "cuda:0 is named twice"),
            ("cpu,cuda", "several devices must all be GPUs"),
            ("cuda,cpu:service", "several devices must all be GPUs"),
            ("cuda:0,gpu", "`gpu` is not a device"),
            ("", "`` is not a device"),
        ] {
            let error = devices(&["--device", list]).unwrap_err().to_string();
            assert!(error.contains(said), "{list}: {error}");
        }
    }
}

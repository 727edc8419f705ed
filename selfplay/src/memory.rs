//! The memory of this process, as the kernel counts it.

/// MiB of memory that is resident now, or was at most.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Resident {
    pub(crate) now: Option<f64>,
    pub(crate) peak: Option<f64>,
}

impl Resident {
    /// The present figures; none on systems other than Linux.
    pub(crate) fn measure() -> Self {
        std::fs::read_to_string("/proc/self/status")
            .map_or_else(|_| Self::default(), |status| Self::parse(&status))
    }

    fn parse(status: &str) -> Self {
        let mib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            let kib = line.trim().strip_suffix("kB")?.trim();
            Some(kib.parse::<f64>().ok()? / 1_024.0)
        };
        Self {
            now: mib("VmRSS:"),
            peak: mib("VmHWM:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_figures_are_read() {
        let status =
            "Name:\tselfplay\nVmPeak:\t  999999 kB\nVmHWM:\t   20480 kB\nVmRSS:\t   10752 kB\n";
        let expected = Resident {
            now: Some(10.5),
            peak: Some(20.0),
        };
        assert_eq!(Resident::parse(status), expected);
        assert_eq!(Resident::parse("VmRSS: many kB"), Resident::default());
    }
}

//! Metrics of this process, under the names that Prometheus clients use by convention. Only Linux provides
//! them.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

/// Collector that asks the kernel at each scrape.
#[derive(Debug)]
pub(super) struct ProcessCollector {
    /// Time at which this collector was created, in seconds since 1970. The kernel's start time is not used,
    /// because computing it needs files outside this process's own, and a sandbox may deny access to them.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux provides these metrics"))]
    start: f64,
}

impl ProcessCollector {
    pub(super) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: since.as_secs_f64() }
    }
}

#[cfg(target_os = "linux")]
impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        use prometheus_client::encoding::EncodeMetric;
        use prometheus_client::metrics::MetricType;
        use prometheus_client::metrics::counter::ConstCounter;

        use super::{float, gauge};

        let out = &mut encoder;
        let Some(figures) = linux::read() else { return Ok(()) };
        let (name, help) = ("process_cpu_seconds", "User and system time of the process");
        let family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(figures.cpu_seconds).encode(family)?;
        let help = "Start time of the process, in seconds since 1970";
        float(out, "process_start_time_seconds", help, self.start)?;
        gauge(out, "process_resident_memory_bytes", "Resident memory of the process", figures.resident)?;
        gauge(
            out,
            "process_virtual_memory_bytes",
            "Size of the address space of the process",
            figures.virtual_memory,
        )?;
        gauge(out, "process_threads", "Threads of the process", figures.threads)?;
        gauge(out, "process_open_fds", "Open file descriptors", figures.open_fds)?;
        figures.max_fds.map_or(Ok(()), |max| {
            gauge(out, "process_max_fds", "Maximum number of open file descriptors", max)
        })
    }
}

#[cfg(not(target_os = "linux"))]
impl Collector for ProcessCollector {
    fn encode(&self, _: DescriptorEncoder<'_>) -> fmt::Result {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::process::{Resource, getrlimit};
    use rustix::time::{ClockId, clock_gettime};

    /// Figures of the kernel about this process.
    pub(super) struct Figures {
        pub(super) cpu_seconds: f64,
        pub(super) resident: u64,
        pub(super) virtual_memory: u64,
        pub(super) threads: u64,
        pub(super) open_fds: u64,
        /// Maximum number of open files. `None` if there is no limit.
        pub(super) max_fds: Option<u64>,
    }

    /// Reads the figures. Returns `None` if the kernel provides none, as in some sandboxes.
    pub(super) fn read() -> Option<Figures> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        // One of the open files is the directory that this function reads.
        let open_fds = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count().saturating_sub(1));
        Some(Figures {
            cpu_seconds: spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9,
            resident: number(&status, "VmRSS")? << 10,
            virtual_memory: number(&status, "VmSize")? << 10,
            threads: number(&status, "Threads")?,
            open_fds: open_fds as u64,
            max_fds: getrlimit(Resource::Nofile).current,
        })
    }

    /// Reads a number from `/proc/self/status`, whose lines look like `VmRSS:     1776 kB`.
    fn number(status: &str, field: &str) -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn a_number_is_read_from_its_own_line() {
            let status = "VmPeak:\t    3060 kB\nVmSize:\t    2048 kB\nVmRSS:\t    1776 kB\nThreads:\t7\n";
            let numbers =
                ["VmSize", "VmRSS", "Threads", "Vm", "VmSwap"].map(|field| super::number(status, field));
            assert_eq!(numbers, [Some(2048), Some(1776), Some(7), None, None]);
        }

        #[test]
        fn the_kernel_reports_plausible_figures() {
            let figures = super::read().unwrap();
            assert!((1 << 20..1 << 36).contains(&figures.resident), "{} bytes", figures.resident);
            assert!(figures.virtual_memory >= figures.resident && figures.threads >= 1);
            assert!(figures.open_fds >= 3 && figures.max_fds.is_none_or(|max| max >= figures.open_fds));
        }
    }
}

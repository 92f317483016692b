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
    use procfs::process::{LimitValue, Process};
    use procfs::{WithCurrentSystemInfo, ticks_per_second};

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
        let process = Process::myself().ok()?;
        let stat = process.stat().ok()?;
        let seconds = |ticks: u64| ticks as f64 / ticks_per_second() as f64;
        let max_fds = process.limits().ok().and_then(|limits| match limits.max_open_files.soft_limit {
            LimitValue::Value(max) => Some(max),
            LimitValue::Unlimited => None,
        });
        Some(Figures {
            cpu_seconds: seconds(stat.utime + stat.stime),
            resident: stat.rss_bytes().get(),
            virtual_memory: stat.vsize,
            threads: u64::try_from(stat.num_threads).unwrap_or(0),
            open_fds: process.fd_count().unwrap_or(0) as u64,
            max_fds,
        })
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn the_kernel_reports_plausible_figures() {
            let figures = super::read().unwrap();
            assert!((1 << 20..1 << 36).contains(&figures.resident), "{} bytes", figures.resident);
            assert!(figures.virtual_memory >= figures.resident && figures.threads >= 1);
            assert!(figures.open_fds >= 3 && figures.max_fds.is_none_or(|max| max >= figures.open_fds));
        }
    }
}

//! This process as metrics, by the names that all programs have for them. Other systems than Linux have none.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

/// Asks the kernel at each scrape.
#[derive(Debug)]
pub(super) struct Process;

#[cfg(target_os = "linux")]
impl Collector for Process {
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
        let help = "When the process was started, in seconds since 1970";
        float(out, "process_start_time_seconds", help, figures.start_seconds)?;
        gauge(
            out,
            "process_resident_memory_bytes",
            "Memory of the process that is in RAM",
            figures.resident,
        )?;
        gauge(out, "process_virtual_memory_bytes", "Address space of the process", figures.virtual_memory)?;
        gauge(out, "process_threads", "Threads of the process", figures.threads)?;
        gauge(out, "process_open_fds", "Open file descriptors", figures.open_fds)?;
        figures.max_fds.map_or(Ok(()), |max| gauge(out, "process_max_fds", "The most of them", max))
    }
}

#[cfg(not(target_os = "linux"))]
impl Collector for Process {
    fn encode(&self, _: DescriptorEncoder<'_>) -> fmt::Result {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use procfs::process::{LimitValue, Process};
    use procfs::{WithCurrentSystemInfo, boot_time_secs, ticks_per_second};

    /// What the kernel says of this process.
    pub(super) struct Figures {
        pub(super) cpu_seconds: f64,
        pub(super) start_seconds: f64,
        pub(super) resident: u64,
        pub(super) virtual_memory: u64,
        pub(super) threads: u64,
        pub(super) open_fds: u64,
        /// None without a limit.
        pub(super) max_fds: Option<u64>,
    }

    /// None where it says nothing, as in some sandboxes.
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
            start_seconds: boot_time_secs().ok()? as f64 + seconds(stat.starttime),
            resident: stat.rss_bytes().get(),
            virtual_memory: stat.vsize,
            threads: u64::try_from(stat.num_threads).unwrap_or(0),
            open_fds: process.fd_count().ok()? as u64,
            max_fds,
        })
    }

    #[cfg(test)]
    mod tests {
        use std::time::{SystemTime, UNIX_EPOCH};

        #[test]
        fn the_kernel_says_what_is_so() {
            let figures = super::read().unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
            let age = now - figures.start_seconds;
            assert!((-5.0..86_400.0).contains(&age), "started {age} s ago");
            assert!((1 << 20..1 << 36).contains(&figures.resident), "{} bytes", figures.resident);
            assert!(figures.virtual_memory >= figures.resident && figures.threads >= 1);
            assert!(figures.open_fds >= 3 && figures.max_fds.is_none_or(|max| max >= figures.open_fds));
        }
    }
}

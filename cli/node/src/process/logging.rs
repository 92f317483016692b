//! The log of a server process on standard error, and its traces if the feature `otel` is on.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Instant;

use clap::{Args, ValueEnum};
use doppel_terminal::exit::AlreadyLogged;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::{Filter, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// Options of the log of a process.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Form of the log on standard error. RUST_LOG selects the events (default: info). The reason why a
    /// process fails is always reported.
    #[arg(long, value_name = "FORM", env = "DOPPEL_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// The form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// One line of text for each event.
    Text,
    /// One line with a JSON object for each event.
    Json,
}

/// The running log of a process. On drop, it logs that the process has ended, and then sends the remaining
/// traces.
#[must_use]
pub struct Logging {
    role: &'static str,
    format: LogFormat,
    begun: Instant,
    #[cfg(feature = "otel")]
    _traces: Option<traces::Traces>,
}

impl LogArgs {
    /// Begins to log events. The first event has the version of the program, its role, its directory, and its
    /// options.
    ///
    /// # Errors
    /// If the environment asks for traces and they cannot be set up.
    pub fn begin(&self, role: &'static str, directory: Option<&Path>) -> anyhow::Result<Logging> {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        // A message about a line that cannot be written would go to the same full disk, and the thread would
        // panic.
        let text = tracing_subscriber::fmt::layer().with_writer(io::stderr).log_internal_errors(false);
        let text = match self.log_format {
            LogFormat::Text => text.with_ansi(io::stderr().is_terminal()).boxed(),
            // The list of spans includes the current span.
            LogFormat::Json => text.json().flatten_event(true).with_current_span(false).boxed(),
        };
        let registry =
            tracing_subscriber::registry().with(text.with_filter(log_filter(self.log_format, filter)));
        #[cfg(not(feature = "otel"))]
        registry.init();
        #[cfg(feature = "otel")]
        let traces = traces::Traces::from_environment(role)?;
        #[cfg(feature = "otel")]
        registry.with(traces.as_ref().map(traces::Traces::layer)).init();
        // Options contain no secrets: tokens and keys come from files or environment variables.
        let options: Vec<String> =
            std::env::args_os().skip(2).map(|option| option.to_string_lossy().into_owned()).collect();
        let directory = directory.map(|directory| directory.display().to_string());
        let (version, process) = (env!("CARGO_PKG_VERSION"), std::process::id());
        tracing::info!(version, role, process, directory, options = options.join(" "), "doppel is starting");
        Ok(Logging {
            role,
            format: self.log_format,
            begun: Instant::now(),
            #[cfg(feature = "otel")]
            _traces: traces,
        })
    }
}

/// The filter of the log: the events that the user has chosen. In the JSON form, the final error of the
/// process is always included, because only the log reports it.
fn log_filter<S: Subscriber + for<'s> LookupSpan<'s>>(
    format: LogFormat,
    chosen: EnvFilter,
) -> impl Filter<S> {
    let is_end = filter_fn(move |event| {
        format == LogFormat::Json && *event.level() == Level::ERROR && event.target() == module_path!()
    });
    chosen.or(is_end.with_max_level_hint(Level::ERROR))
}

impl Logging {
    /// Runs the process, and logs the error if it fails. In the JSON form, the error is marked as
    /// [`AlreadyLogged`], so that it is not printed again as text.
    ///
    /// # Errors
    /// The error of `run`.
    pub fn of<T>(self, run: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        run().map_err(|error| {
            tracing::error!(
                role = self.role,
                error = format!("{error:#}"),
                "doppel ends because of an error"
            );
            match self.format {
                LogFormat::Text => error,
                LogFormat::Json => error.context(AlreadyLogged),
            }
        })
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        tracing::info!(role = self.role, seconds = self.begun.elapsed().as_secs(), "doppel has ended");
    }
}

#[cfg(feature = "otel")]
mod traces {
    //! Sends traces in the OpenTelemetry protocol over HTTP, if `OTEL_EXPORTER_OTLP_ENDPOINT` or
    //! `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` names a receiver. The other OpenTelemetry variables apply as
    //! well.

    use anyhow::Context as _;
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_otlp::SpanExporter;
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing::Subscriber;
    use tracing::level_filters::LevelFilter;
    use tracing_subscriber::Layer;
    use tracing_subscriber::registry::LookupSpan;

    const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

    /// The exporter of traces. On drop, it sends the remaining traces.
    pub(super) struct Traces(SdkTracerProvider);

    impl Traces {
        /// Starts the exporter. Returns `None` if the environment names no receiver.
        pub(super) fn from_environment(role: &'static str) -> anyhow::Result<Option<Self>> {
            if ENDPOINTS.into_iter().all(|name| std::env::var_os(name).is_none_or(|value| value.is_empty())) {
                return Ok(None);
            }
            doppel_contract::client::install_tls();
            let exporter = SpanExporter::builder().with_http().build();
            let exporter =
                exporter.context("cannot send traces as the variables OTEL_EXPORTER_OTLP_* say")?;
            let resource = Resource::builder().with_service_name(format!("doppel-{role}")).build();
            let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter);
            Ok(Some(Self(provider.build())))
        }

        /// Layer that exports spans of level info and above.
        pub(super) fn layer<S: Subscriber + for<'s> LookupSpan<'s>>(&self) -> impl Layer<S> + use<S> {
            let tracer = self.0.tracer("doppel");
            tracing_opentelemetry::layer().with_tracer(tracer).with_filter(LevelFilter::INFO)
        }
    }

    impl Drop for Traces {
        fn drop(&mut self) {
            if let Err(error) = self.0.shutdown() {
                eprintln!("doppel: the last traces were not sent: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_reason_of_a_failure_is_logged_with_every_filter() {
        for chosen in ["off", "doppel_tier1=debug", "info"] {
            let log = tempfile::NamedTempFile::new().unwrap();
            let file: Arc<File> = Arc::new(log.reopen().unwrap());
            let text = tracing_subscriber::fmt::layer().with_writer(file).json().flatten_event(true);
            let text = text.with_filter(log_filter(LogFormat::Json, EnvFilter::new(chosen)));
            let logging = Logging {
                role: "serve",
                format: LogFormat::Json,
                begun: Instant::now(),
                #[cfg(feature = "otel")]
                _traces: None,
            };
            let failed = tracing::subscriber::with_default(tracing_subscriber::registry().with(text), || {
                logging.of(|| anyhow::Result::<()>::Err(anyhow::anyhow!("the disk is full")))
            });
            assert!(failed.unwrap_err().downcast_ref::<AlreadyLogged>().is_some());
            let log = std::fs::read_to_string(log.path()).unwrap();
            let lines = || log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            assert_eq!(
                lines().filter(|line| line["error"] == "the disk is full").count(),
                1,
                "{chosen}: {log}"
            );
            assert_eq!(lines().count(), if chosen == "info" { 2 } else { 1 }, "{chosen}: {log}");
        }
    }
}

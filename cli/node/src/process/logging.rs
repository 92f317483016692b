//! The log of a server process on standard error, and with the feature `otel` its traces.

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

/// How a process logs.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// The form of the log on standard error. RUST_LOG chooses what it says (default: info); why a process fails is always said.
    #[arg(long, value_name = "FORM", env = "DOPPEL_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// The form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// A line of text for each event.
    Text,
    /// A JSON object a line for each event.
    Json,
}

/// Says in the log that the process ends, when it is dropped, and then sends what is left of its traces.
#[must_use]
pub struct Logging {
    role: &'static str,
    format: LogFormat,
    begun: Instant,
    #[cfg(feature = "otel")]
    _traces: Option<traces::Traces>,
}

impl LogArgs {
    /// Begins to log, first of all what was started: the program's version, its role, its directory, and its options.
    ///
    /// # Errors
    /// When traces are to be sent and cannot be.
    pub fn begin(&self, role: &'static str, directory: Option<&Path>) -> anyhow::Result<Logging> {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        // A message about a line that cannot be written would go to the same full disk, and end the thread in a panic.
        let text = tracing_subscriber::fmt::layer().with_writer(io::stderr).log_internal_errors(false);
        let text = match self.log_format {
            LogFormat::Text => text.with_ansi(io::stderr().is_terminal()).boxed(),
            // The list of spans has the last one, too.
            LogFormat::Json => text.json().flatten_event(true).with_current_span(false).boxed(),
        };
        let registry = tracing_subscriber::registry().with(text.with_filter(said(self.log_format, filter)));
        #[cfg(not(feature = "otel"))]
        registry.init();
        #[cfg(feature = "otel")]
        let traces = traces::Traces::from_environment(role)?;
        #[cfg(feature = "otel")]
        registry.with(traces.as_ref().map(traces::Traces::layer)).init();
        // No option has a secret: tokens and keys come in files, or in variables.
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

/// What is logged. Where the log alone says why a process fails, no choice leaves that out.
fn said<S: Subscriber + for<'s> LookupSpan<'s>>(format: LogFormat, chosen: EnvFilter) -> impl Filter<S> {
    let is_end = filter_fn(move |event| {
        format == LogFormat::Json && *event.level() == Level::ERROR && event.target() == module_path!()
    });
    chosen.or(is_end.with_max_level_hint(Level::ERROR))
}

impl Logging {
    /// Runs the process, and says in the log why it fails. In the log's own form nothing else is to be said of that.
    ///
    /// # Errors
    /// What it fails with.
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
    //! Traces in OpenTelemetry's protocol over HTTP, where `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`
    //! names who takes them; its other variables count as well.

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

    /// Sends what is left when it is dropped.
    pub(super) struct Traces(SdkTracerProvider);

    impl Traces {
        /// None where nobody is named who takes them.
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

        /// Spans from the level info on.
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
    fn why_a_process_fails_is_said_whatever_the_log_leaves_out() {
        for chosen in ["off", "doppel_tier1=debug", "info"] {
            let log = tempfile::NamedTempFile::new().unwrap();
            let file: Arc<File> = Arc::new(log.reopen().unwrap());
            let text = tracing_subscriber::fmt::layer().with_writer(file).json().flatten_event(true);
            let text = text.with_filter(said(LogFormat::Json, EnvFilter::new(chosen)));
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

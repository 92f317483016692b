//! Refuses log servers. For programs that were built without the feature `nats`.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;

use crate::engine_error::EngineError;
use crate::engine_state::{EngineState, LogTraffic, Server, StreamSettings};
use crate::log::{AppendError, Extent, LogEntry, LogError, Sequence, SharedLog};

/// A connection to the log servers. No value of this type exists.
#[derive(Debug, Clone)]
pub struct LogEngine(Infallible);

/// A log that is stored in a stream. No value of this type exists.
#[derive(Debug)]
pub struct JetStreamLog(Infallible);

/// A subject on which processes send each other news. No value of this type exists.
#[derive(Debug, Clone)]
pub struct NewsChannel(Infallible);

/// A subscription to news. No value of this type exists.
#[derive(Debug)]
pub struct NewsSubscription(#[allow(dead_code, reason = "it proves that there is no value")] Infallible);

impl LogEngine {
    /// Refuses to connect to log servers.
    ///
    /// # Errors
    /// Always.
    pub fn connect(_: Handle, _: &[String], _: &str) -> Result<Self, EngineError> {
        Err(EngineError::WithoutNats)
    }

    /// Refuses to connect to log servers.
    ///
    /// # Errors
    /// Always.
    pub fn connect_within(_: Handle, _: &[String], _: &str, _: Duration) -> Result<Self, EngineError> {
        Err(EngineError::WithoutNats)
    }

    /// Returns the server that this client is connected to.
    ///
    /// # Errors
    /// Never.
    pub fn server(&self) -> Result<Server, EngineError> {
        match self.0 {}
    }

    /// Creates the stream of a new log.
    ///
    /// # Errors
    /// Never.
    pub fn create(&self, _: &str, _: StreamSettings) -> Result<JetStreamLog, EngineError> {
        match self.0 {}
    }

    /// Opens the stream of a log.
    ///
    /// # Errors
    /// Never.
    pub fn open(&self, _: &str, _: usize) -> Result<JetStreamLog, EngineError> {
        match self.0 {}
    }

    /// Creates a subject for news between processes.
    #[must_use]
    pub fn news_channel(&self, _: &str) -> NewsChannel {
        match self.0 {}
    }

    /// Queries all servers and streams.
    #[must_use]
    pub fn state(&self, _: &[String], _: &[String], _: Duration) -> EngineState {
        match self.0 {}
    }

    /// Returns the traffic of this connection since its creation.
    #[must_use]
    pub fn traffic(&self) -> LogTraffic {
        match self.0 {}
    }
}

impl NewsChannel {
    /// Sends news to all subscribers.
    pub fn tell(&self, _: Bytes) {
        match self.0 {}
    }

    /// Calls a function with all news from now on.
    #[must_use]
    pub fn listen(&self, _: impl Fn(&[u8]) + Send + 'static) -> NewsSubscription {
        match self.0 {}
    }
}

impl JetStreamLog {
    /// Returns the name of the stream.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.0 {}
    }
}

impl SharedLog for JetStreamLog {
    fn append(&self, _: Sequence, _: &Bytes) -> Result<Sequence, AppendError> {
        match self.0 {}
    }

    fn read(&self, _: Sequence, _: usize) -> Result<Vec<LogEntry>, LogError> {
        match self.0 {}
    }

    fn told(&self, _: Sequence) -> Vec<LogEntry> {
        match self.0 {}
    }

    fn extent(&self) -> Result<Extent, LogError> {
        match self.0 {}
    }

    fn wait(&self, _: Sequence, _: Duration) {
        match self.0 {}
    }

    fn report(&self, _: &str, _: &Bytes) {
        match self.0 {}
    }

    fn await_report(&self, _: Duration, _: &dyn Fn(&str, &Bytes) -> bool) -> bool {
        match self.0 {}
    }

    fn trim(&self, _: Sequence) -> Result<(), LogError> {
        match self.0 {}
    }
}

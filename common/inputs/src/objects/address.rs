//! Parses the address of an input in a store into the store and the key. The environment variables of the
//! store's provider configure the store.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore};
use reqwest::Url;

/// How long a server may be silent in the middle of an answer. The answer as a whole has no time limit,
/// because it may be a file of any size.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A store, and the key or pattern of an input in it.
pub(super) struct Address {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Address of the store, which precedes the key: `s3://bucket/`.
    pub(super) place: String,
    /// Key as the user wrote it, which may be a pattern. A key that is empty or ends in `/` stands for all
    /// keys that begin with it.
    pub(super) key: String,
    /// Whether the store can list its objects.
    pub(super) lists: bool,
}

impl Address {
    /// Parses the address of an input, and opens its store.
    ///
    /// # Errors
    /// If the address is invalid, or the environment lacks a setting that the store needs.
    pub(super) fn parse(input: &str) -> anyhow::Result<Self> {
        doppel_contract::client::install_tls();
        let (scheme, rest) = input.split_once("://").unwrap_or_default();
        if let "https" | "http" = scheme {
            return web(input);
        }
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        anyhow::ensure!(!bucket.is_empty(), "the name of the bucket is missing");
        let store: Arc<dyn ObjectStore> = match scheme {
            "s3" => Arc::new(AmazonS3Builder::from_env().with_bucket_name(bucket).build()?),
            "gs" => Arc::new(GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).build()?),
            _ => Arc::new(MicrosoftAzureBuilder::from_env().with_container_name(bucket).build()?),
        };
        Ok(Self { store, place: format!("{scheme}://{bucket}/"), key: key.to_owned(), lists: true })
    }
}

/// Parses the address of a file on a web server.
fn web(input: &str) -> anyhow::Result<Address> {
    let url = Url::parse(input)?;
    anyhow::ensure!(url.query().is_none(), "an address with a query cannot be read; download the file");
    let place = format!("{}/", url.origin().ascii_serialization());
    let options = ClientOptions::new().with_allow_http(url.scheme() == "http");
    // No limit for the whole answer: a server that does not support ranges sends the whole file in one
    // answer.
    let options = options.with_timeout_disabled().with_read_timeout(READ_TIMEOUT);
    let store = HttpBuilder::new().with_url(&place).with_client_options(options).build()?;
    let mut key = object_store::path::Path::from_url_path(url.path())?.to_string();
    if url.path().ends_with('/') && !key.is_empty() {
        key.push('/');
    }
    anyhow::ensure!(!key.is_empty(), "the path of the file is missing");
    Ok(Address { store: Arc::new(store), place, key, lists: false })
}

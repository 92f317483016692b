//! Where an input in a store is: the store, with what its provider's variables in the environment say, and the key.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore};
use reqwest::Url;

/// How long a server may be silent in the middle of an answer. There is no limit for the answer as a whole, which may be a file of any size.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A store, and what is named in it.
pub(super) struct Address {
    pub(super) store: Arc<dyn ObjectStore>,
    /// The part in front of the key: `s3://bucket/`.
    pub(super) place: String,
    /// The key as it is written, which may be a pattern; ends in `/` where all keys with this beginning are meant, or is empty.
    pub(super) key: String,
    /// Whether the store can say what it has.
    pub(super) lists: bool,
}

impl Address {
    /// # Errors
    /// When the address is none, or the environment does not have what its store needs.
    pub(super) fn parse(input: &str) -> anyhow::Result<Self> {
        doppel_protocol::client::install_tls();
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

/// A file of a web server.
fn web(input: &str) -> anyhow::Result<Address> {
    let url = Url::parse(input)?;
    anyhow::ensure!(url.query().is_none(), "an address with a query cannot be read; download it");
    let place = format!("{}/", url.origin().ascii_serialization());
    let options = ClientOptions::new().with_allow_http(url.scheme() == "http");
    // A server that does not send parts of files sends the whole.
    let options = options.with_timeout_disabled().with_read_timeout(SILENCE_MAX);
    let store = HttpBuilder::new().with_url(&place).with_client_options(options).build()?;
    let mut key = object_store::path::Path::from_url_path(url.path())?.to_string();
    if url.path().ends_with('/') && !key.is_empty() {
        key.push('/');
    }
    anyhow::ensure!(!key.is_empty(), "the path of the file is missing");
    Ok(Address { store: Arc::new(store), place, key, lists: false })
}

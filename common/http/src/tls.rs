//! TLS of a listener: versions 1.2 and 1.3 by rustls, with ring, and HTTP/1.1 alone.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

/// What a listener shows of itself, and what it asks of clients, in files of PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Its certificate, and those that lead from it to one that clients know.
    pub certificate: PathBuf,
    /// The private key of its certificate.
    pub key: PathBuf,
    /// Certificates of whom clients need one from; without these they need none.
    pub client_ca: Option<PathBuf>,
}

/// Why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// One cannot be read, or is not PEM, or has no certificate or key in it.
    #[error("cannot read {what} in {}", path.display())]
    File {
        /// What was looked for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: pem::Error,
    },
    /// Certificate and key do not belong together, or are of a kind that is not taken.
    #[error("the certificate in {} and the key in {} cannot be used together", certificate.display(), key.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The reason.
        source: rustls::Error,
    },
    /// A certificate by which clients are to be known cannot be used.
    #[error("{} has a certificate that cannot be used", path.display())]
    ClientCa {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The TLS of a listener, which may be read anew while it answers. Cheap to clone; clones are the same.
#[derive(Debug, Clone)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(RwLock::new(configuration(files)?))))
    }

    /// Reads the files anew, for connections that come later. As it was where they cannot be used.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn reread(&self, files: &TlsFiles) -> Result<(), TlsError> {
        let read = configuration(files)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

fn configuration(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let TlsFiles { certificate, key, client_ca } = files;
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::File {
        what: "a private key",
        path: key.clone(),
        source,
    })?;
    let pair = |source| TlsError::Pair { certificate: certificate.clone(), key: key.clone(), source };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(pair)?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let unusable = |source: Box<dyn std::error::Error + Send + Sync>| TlsError::ClientCa {
                path: path.clone(),
                source,
            };
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| unusable(error.into()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(
                verifier.map_err(|error: VerifierBuilderError| unusable(error.into()))?,
            )
        }
    };
    let mut configuration = builder.with_single_cert(chain, private).map_err(pair)?;
    configuration.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(configuration))
}

/// All certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let some = read.and_then(|all| if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) });
    some.map_err(|source| TlsError::File { what: "a certificate", path: path.to_owned(), source })
}

//! TLS for a listener: versions 1.2 and 1.3 by rustls with the ring provider. ALPN offers HTTP/1.1 only.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

/// The PEM files that configure TLS for a listener.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The server certificate, followed by the intermediate certificates that link it to a root that clients
    /// trust.
    pub certificate: PathBuf,
    /// The private key of the server certificate.
    pub key: PathBuf,
    /// The certificates of the authorities for clients. If set, every client needs a certificate from one of
    /// these authorities. If `None`, clients need no certificate.
    pub client_ca: Option<PathBuf>,
}

/// Why the TLS files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, is not PEM, or contains no certificate or key.
    #[error("cannot read {what} in {}", path.display())]
    File {
        /// The kind of item that the reader looked for, such as `a private key`.
        what: &'static str,
        /// The file that was read.
        path: PathBuf,
        /// The error of the PEM reader.
        source: pem::Error,
    },
    /// The certificate and the key do not match, or rustls does not support their type.
    #[error(
        "the certificate in {} and the key in {} cannot be used together; check that they match",
        certificate.display(),
        key.display()
    )]
    Pair {
        /// The file of the server certificate.
        certificate: PathBuf,
        /// The file of the private key.
        key: PathBuf,
        /// The error that rustls reports.
        source: rustls::Error,
    },
    /// The certificate of an authority for clients cannot be used.
    #[error("a certificate of a client authority in {} cannot be used", path.display())]
    ClientCa {
        /// The file of the certificates of authorities for clients.
        path: PathBuf,
        /// The error that rustls reports.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The TLS configuration of a listener. The listener can reread its files while it runs. Clones are cheap and
/// share the configuration.
#[derive(Debug, Clone)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

impl Tls {
    /// Reads the TLS files.
    ///
    /// # Errors
    /// If a file cannot be used; see [`TlsError`].
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(RwLock::new(configuration(files)?))))
    }

    /// Reads the TLS files again, for all later connections. On an error, the present configuration stays in
    /// use.
    ///
    /// # Errors
    /// If a file cannot be used; see [`TlsError`].
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

/// Reads all certificates in a file. Fails if the file contains none.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let nonempty = read.and_then(|all| if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) });
    nonempty.map_err(|source| TlsError::File { what: "a certificate", path: path.to_owned(), source })
}

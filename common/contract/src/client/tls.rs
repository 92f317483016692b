//! Explains TLS failures between a client and a server in words that say what to do.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

/// Returns the TLS error inside an error, if there is one.
fn tls_error_in<'e>(mut error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    loop {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        // An `io::Error` does not return the wrapped error as its source.
        error = error.downcast_ref::<io::Error>()?.get_ref()?;
    }
}

/// Returns the TLS error among an error of reqwest and its causes.
pub(super) fn tls_error_among_causes(error: &reqwest::Error) -> Option<&rustls::Error> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |&error| error.source()).find_map(tls_error_in)
}

/// Whether an attempt to speak TLS shows that the server speaks TLS. A server without TLS sends other bytes,
/// or none.
pub(super) fn is_tls_spoken(attempt: &reqwest::Result<reqwest::blocking::Response>) -> bool {
    match attempt {
        Ok(_) => true,
        Err(error) => tls_error_among_causes(error)
            .is_some_and(|error| !matches!(error, rustls::Error::InvalidMessage(_))),
    }
}

/// Explains why a certificate is not trusted.
pub(super) fn distrust(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "its certificate was issued by an unknown authority; name the certificate of its authority with --ca FILE"
                .to_owned()
        }
        CertificateError::BadEncoding => "its certificate cannot be read".to_owned(),
        CertificateError::BadSignature => {
            "its certificate is not signed by the authority that it names; name the certificate of its authority \
             with --ca FILE"
                .to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is not for a server".to_owned()
        }
        // Errors of the `webpki` library, which have names but no messages.
        CertificateError::Other(other) => match other.to_string().as_str() {
            "CaUsedAsEndEntity" => {
                "its certificate belongs to an authority; a server's certificate needs \
                 basicConstraints=critical,CA:FALSE"
                    .to_owned()
            }
            "UnsupportedCertVersion" => "its certificate is not of X.509 version 3".to_owned(),
            name => format!("its certificate is refused ({name})"),
        },
        // The certificate was signed with another key than that of the authority with this name. Debian's
        // certificate of `localhost` is an example.
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its certificate is not signed by the authority that it names, or has an unsupported signature; name the \
             certificate of its authority with --ca FILE"
                .to_owned()
        }
        worded => worded.to_string(),
    }
}

/// Explains why a TLS connection failed although the server may be the right one.
pub(super) fn refusal(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => {
            "the server there does not speak TLS; use http:// instead of https://".to_owned()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server requires a client certificate; pass one with --client-cert FILE".to_owned()
        }
        rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::DecryptError,
        ) => "the server does not accept the certificate of --client-cert; it needs a valid certificate of X.509 \
              version 3 from an authority of its --tls-client-ca"
            .to_owned(),
        other => format!("the TLS connection failed: {other}; if the server has --tls-client-ca, pass --client-cert"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Named(&'static str);

    #[test]
    fn reasons_are_words_and_not_names_of_variants() {
        let other = |name| CertificateError::Other(OtherError(Arc::new(Named(name))));
        for (error, part) in [
            (CertificateError::UnknownIssuer, "--ca FILE"),
            (CertificateError::BadSignature, "--ca FILE"),
            (CertificateError::InvalidPurpose, "not for a server"),
            (other("CaUsedAsEndEntity"), "CA:FALSE"),
            (other("UnsupportedCertVersion"), "version 3"),
        ] {
            let reason = distrust(&error);
            assert!(reason.contains(part) && !reason.contains("CertificateError"), "{reason}");
            assert!(!reason.contains("UnknownIssuer") && !reason.contains("CaUsed"), "{reason}");
        }
        let alert = |alert| refusal(&rustls::Error::AlertReceived(alert));
        assert!(alert(AlertDescription::CertificateRequired).contains("--client-cert FILE"));
        assert!(alert(AlertDescription::CertificateUnknown).contains("version 3"));
    }
}

//! What stands between a client and a server whose TLS does not go together, in words that say what to do.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

/// What TLS says, if it is what an error is about.
fn of_tls<'e>(mut error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    loop {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        // What an error of input is about is not its source.
        error = error.downcast_ref::<io::Error>()?.get_ref()?;
    }
}

/// The same for an error of reqwest and its causes.
pub(super) fn among_causes(error: &reqwest::Error) -> Option<&rustls::Error> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |&error| error.source()).find_map(of_tls)
}

/// Whether an attempt to speak TLS shows that the other side speaks it: one that does not has sent something else, or nothing.
pub(super) fn is_spoken(attempt: &reqwest::Result<reqwest::blocking::Response>) -> bool {
    match attempt {
        Ok(_) => true,
        Err(error) => {
            among_causes(error).is_some_and(|error| !matches!(error, rustls::Error::InvalidMessage(_)))
        }
    }
}

/// Why a server's certificate is not believed.
pub(super) fn distrust(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "nobody who is known here vouches for its certificate; --ca FILE names the certificate of its authority".to_owned()
        }
        CertificateError::BadEncoding => "its certificate cannot be read".to_owned(),
        CertificateError::BadSignature => {
            "its certificate is not signed by the one that it names; --ca FILE names the certificate of its authority".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is not one of a server".to_owned()
        }
        // Of the library below, which names its errors and has no words for them.
        CertificateError::Other(other) => match other.to_string().as_str() {
            "CaUsedAsEndEntity" => {
                "its certificate is that of an authority; one of a server has basicConstraints=critical,CA:FALSE".to_owned()
            }
            "UnsupportedCertVersion" => "its certificate is not of X.509 version 3".to_owned(),
            named => format!("its certificate is refused ({named})"),
        },
        // A certificate of another key than that of an authority of the same name, as Debian's of `localhost`.
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its certificate is not signed by the one that it names, or in a way that is not taken; --ca FILE names the certificate of \
             its authority"
                .to_owned()
        }
        worded => worded.to_string(),
    }
}

/// Why TLS does not come about, with a server that may well be the right one.
pub(super) fn refusal(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => {
            "what answers there speaks no TLS; ask it with http:// in place of https://".to_owned()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it asks for a certificate of the client; --client-cert FILE shows one".to_owned()
        }
        rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::DecryptError,
        ) => "it does not take the certificate of --client-cert; one of X.509 version 3 is needed that has not expired, from an authority \
              of its --tls-client-ca"
            .to_owned(),
        other => format!("TLS does not come about: {other}; a server with --tls-client-ca needs --client-cert"),
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
    fn no_reason_is_the_name_of_a_variant() {
        let other = |name| CertificateError::Other(OtherError(Arc::new(Named(name))));
        for (error, part) in [
            (CertificateError::UnknownIssuer, "--ca FILE"),
            (CertificateError::BadSignature, "--ca FILE"),
            (CertificateError::InvalidPurpose, "not one of a server"),
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

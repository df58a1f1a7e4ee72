//! TLS towards the target: whom to trust.

use super::file;
use crate::plan::TlsBack;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;

/// The largest `ca_file` that is read, in bytes.
const CA_LIMIT: u64 = 1 << 20;

/// A target that cannot be spoken to in TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The plan's own certificates.
    #[error("`ca_file: {path}` cannot be read as PEM certificates: {problem}")]
    CaFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody to trust.
    #[error("this system has no trusted certificates: install them (Debian: ca-certificates), or give the plan a `ca_file`")]
    NoRoots,
    /// A host that no certificate can name.
    #[error("`{host}` is no name that a certificate can hold")]
    Name {
        /// The host.
        host: String,
    },
    /// The library refused its own settings.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// A client's settings for HTTP/1.1 over TLS, and the name that the server must prove: the system's certificates are
/// trusted, and those of `ca_file`.
///
/// # Errors
/// A file that cannot be read, nobody to trust, a host that is no name.
pub fn client(host: &str, ca_file: Option<&str>) -> Result<(Arc<ClientConfig>, ServerName<'static>), TlsError> {
    let ca_file = ca_file.map(ToString::to_string);
    client_for(host, &TlsBack { ca_file, server_name: None, insecure_accept_any_certificate: false })
}

/// The same, as a proxy's settings towards its upstream have it.
///
/// # Errors
/// As of [`client`].
pub fn client_for(host: &str, back: &TlsBack) -> Result<(Arc<ClientConfig>, ServerName<'static>), TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let mut config = if back.insecure_accept_any_certificate {
        let anybody = Anybody(provider.signature_verification_algorithms);
        builder.dangerous().with_custom_certificate_verifier(Arc::new(anybody)).with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(back.ca_file.as_deref())?).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let host = back.server_name.as_deref().unwrap_or(host);
    let name = ServerName::try_from(host.to_string()).map_err(|_| TlsError::Name { host: host.to_string() })?;
    Ok((Arc::new(config), name))
}

/// The system's certificates, and those of a file.
fn roots(ca_file: Option<&str>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let wrong = |problem: String| TlsError::CaFile { path: path.to_string(), problem };
        let mut found = 0;
        let bytes = file::read(path, CA_LIMIT).map_err(|error| wrong(error.to_string()))?;
        for certificate in CertificateDer::pem_slice_iter(&bytes) {
            roots.add(certificate.map_err(|error| wrong(error.to_string()))?).map_err(|error| wrong(error.to_string()))?;
            found += 1;
        }
        if found == 0 {
            return Err(wrong("it holds none".into()));
        }
    }
    if roots.is_empty() { Err(TlsError::NoRoots) } else { Ok(roots) }
}

/// Takes any certificate of anybody, for who asked for it by its loud name; that the other side holds its key is still checked.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

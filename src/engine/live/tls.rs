//! TLS towards the target: whom to trust.

use super::file;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
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
    if roots.is_empty() {
        return Err(TlsError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(host.to_string()).map_err(|_| TlsError::Name { host: host.to_string() })?;
    Ok((Arc::new(config), name))
}

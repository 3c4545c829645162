//! TLS to the runtime under test: whom the runner trusts, and the certificate that it shows.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// What `wss://` addresses are reached with.
#[derive(Clone)]
pub struct TlsClient(TlsConnector);

/// A certificate of a client and its key, both in PEM.
#[derive(Clone)]
pub struct ClientIdentity {
    /// The certificate, and those between it and an authority that the runtime trusts.
    pub certificates: Vec<u8>,
    /// The private key of the certificate.
    pub key: Vec<u8>,
}

/// Why TLS cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// There is no certificate of an authority that can be trusted.
    #[error("there is no certificate of an authority in PEM that can be trusted")]
    NoAuthority,
    /// The client has no certificate.
    #[error("the client has no certificate in PEM (`BEGIN CERTIFICATE`)")]
    NoCertificate,
    /// The client has no key.
    #[error("the client has no private key in PEM")]
    NoKey,
    /// The certificate of the client and its key cannot be used together.
    #[error("the certificate and the key of the client cannot be used together: {0}")]
    Mismatch(String),
}

impl TlsClient {
    /// Trusts these authorities, in PEM, or else those that the system trusts, and shows this certificate
    /// where the runtime asks for one.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(authorities: Option<&[u8]>, shown: Option<&ClientIdentity>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        match authorities {
            Some(pem) => {
                for authority in certificates(pem).ok_or(TlsError::NoAuthority)? {
                    roots.add(authority).map_err(|_| TlsError::NoAuthority)?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            return Err(TlsError::NoAuthority);
        }
        let mismatch = |error: tokio_rustls::rustls::Error| TlsError::Mismatch(error.to_string());
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(mismatch)?
            .with_root_certificates(roots);
        let config = match shown {
            Some(ClientIdentity { certificates: pem, key }) => {
                let chain = certificates(pem).filter(|chain| !chain.is_empty());
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
                let chain = chain.ok_or(TlsError::NoCertificate)?;
                builder.with_client_auth_cert(chain, key).map_err(mismatch)?
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Makes a connection to a host a secure one.
    pub(crate) async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsClient")
    }
}

/// The certificates in a text of PEM; none where one cannot be read.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()
}

//! TLS for the port that other machines reach: the certificate that the daemon shows, and those of clients.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::client_certificate::{ClientCertificate, machine_names};

/// Which certificates clients must or may show.
#[derive(Clone, Debug)]
pub struct ClientAuthority {
    /// The certificates of the authorities that sign those of clients, in PEM.
    pub pem: Vec<u8>,
    /// Whether a client without a certificate gets no connection.
    pub is_required: bool,
}

/// Why TLS cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The file has no certificate.
    #[error("it has no certificate in PEM (`BEGIN CERTIFICATE`)")]
    NoCertificate,
    /// The file has no key.
    #[error("it has no private key in PEM")]
    NoKey,
    /// The file has no certificate of an authority that can be used.
    #[error("it has no certificate of an authority in PEM that can be used")]
    NoAuthority,
    /// The key and the certificate do not belong together, or are of a kind that is not known.
    #[error("the certificate and the key cannot be used together: {0}")]
    Mismatch(String),
}

/// What the daemon serves TLS with.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    /// The names of machines that its certificate is for.
    names: Vec<String>,
}

impl Tls {
    /// Serves TLS with this chain of certificates and this key, both in PEM.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(chain: &[u8], key: &[u8], clients: Option<&ClientAuthority>) -> Result<Self, TlsError> {
        let chain = certificates(chain).filter(|chain| !chain.is_empty()).ok_or(TlsError::NoCertificate)?;
        let names = chain.first().map(|leaf| machine_names(leaf)).unwrap_or_default();
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
        let mismatch = |error: tokio_rustls::rustls::Error| TlsError::Mismatch(error.to_string());
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(mismatch)?;
        let verified = match clients {
            Some(clients) => builder.with_client_cert_verifier(verifier(clients)?),
            None => builder.with_no_client_auth(),
        };
        let mut config = verified.with_single_cert(chain, key).map_err(mismatch)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A session that is resumed has its certificates from before, and nobody would look at them again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), names })
    }

    /// The names of machines that its certificate is for, without those that stand for many.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Makes a connection a secure one; says which certificate its client has shown.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<ClientCertificate>)> {
        let stream = self.acceptor.accept(stream).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let certificate = shown.and_then(|shown| ClientCertificate::of_der(shown));
        Ok((stream, certificate))
    }
}

/// The certificates in a file; none where one of them cannot be read.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()
}

fn verifier(clients: &ClientAuthority) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(&clients.pem).ok_or(TlsError::NoAuthority)? {
        roots.add(authority).map_err(|_| TlsError::NoAuthority)?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()));
    let builder = if clients.is_required { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(|_| TlsError::NoAuthority)
}

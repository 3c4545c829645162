//! TLS for the port that other machines reach: the certificate that the daemon shows, and those of clients.
//! All of it can be replaced while it serves.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime,
};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::client_certificate::{ClientCertificate, machine_names};
use crate::cuttable_stream::CuttableStream;
use crate::shown_certificates::ShownCertificates;

/// Which certificates clients must or may show.
#[derive(Clone, Debug)]
pub struct ClientAuthority {
    /// The certificates of the authorities that sign those of clients, in PEM.
    pub pem: Vec<u8>,
    /// The lists of certificates that these authorities have revoked, in PEM. With lists, a certificate is
    /// refused whose authority has none.
    pub revocation_lists: Option<Vec<u8>>,
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
    /// The file has no list of revoked certificates that can be used.
    #[error("it has no list of revoked certificates in PEM (`BEGIN X509 CRL`) that can be used")]
    NoRevocationList,
    /// The key and the certificate do not belong together, or are of a kind that is not known.
    #[error("the certificate and the key cannot be used together: {0}")]
    Mismatch(String),
}

/// What the daemon serves TLS with. Its clones serve the same.
#[derive(Clone)]
pub struct Tls {
    served: Arc<RwLock<Served>>,
    shown: ShownCertificates,
}

/// What new connections are served with.
#[derive(Clone)]
struct Served {
    acceptor: TlsAcceptor,
    /// The names of machines that its certificate is for.
    names: Vec<String>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl Tls {
    /// Serves TLS with this chain of certificates and this key, both in PEM.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(chain: &[u8], key: &[u8], clients: Option<&ClientAuthority>) -> Result<Self, TlsError> {
        let served = Arc::new(RwLock::new(Served::new(chain, key, clients)?));
        Ok(Self { served, shown: ShownCertificates::default() })
    }

    /// Has it, and its clones, serve with something else from now on. A connection ends whose client has
    /// shown a certificate that is good no longer.
    pub fn replace(&self, other: &Self) {
        let served = other.served();
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = served.clone();
        self.shown.retain(|chain| served.takes(chain));
    }

    /// The names of machines that its certificate is for, without those that stand for many.
    pub fn names(&self) -> Vec<String> {
        self.served().names
    }

    /// Makes a connection a secure one; says which certificate its client has shown. It is cut once that is
    /// good no longer.
    pub(crate) async fn accept(
        &self,
        stream: CuttableStream<TcpStream>,
    ) -> io::Result<(TlsStream<CuttableStream<TcpStream>>, Option<ClientCertificate>)> {
        let acceptor = self.served().acceptor;
        let mut stream = acceptor.accept(stream).await?;
        let Some(chain) = stream.get_ref().1.peer_certificates().map(<[_]>::to_vec) else {
            return Ok((stream, None));
        };
        let carrier = stream.get_mut().0;
        carrier.hold(self.shown.register(&chain, carrier.cut().clone()));
        // What is served may have been replaced meanwhile.
        if !self.served().takes(&chain) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let certificate = chain.first().and_then(|shown| ClientCertificate::of_der(shown));
        Ok((stream, certificate))
    }

    fn served(&self) -> Served {
        self.served.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Served {
    fn new(chain: &[u8], key: &[u8], clients: Option<&ClientAuthority>) -> Result<Self, TlsError> {
        let chain = certificates(chain).filter(|chain| !chain.is_empty()).ok_or(TlsError::NoCertificate)?;
        let names = chain.first().map(|leaf| machine_names(leaf)).unwrap_or_default();
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
        let mismatch = |error: tokio_rustls::rustls::Error| TlsError::Mismatch(error.to_string());
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(mismatch)?;
        let verifier = clients.map(verifier).transpose()?;
        let verified = match &verifier {
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            None => builder.with_no_client_auth(),
        };
        let mut config = verified.with_single_cert(chain, key).map_err(mismatch)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A session that is resumed has its certificates from before, and nobody would look at them again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), names, verifier })
    }

    /// Whether a client may show this chain of certificates now.
    fn takes(&self, chain: &[CertificateDer<'static>]) -> bool {
        match (&self.verifier, chain.split_first()) {
            (Some(verifier), Some((own, others))) => {
                verifier.verify_client_cert(own, others, UnixTime::now()).is_ok()
            }
            (None, _) | (_, None) => false,
        }
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
    let builder = match &clients.revocation_lists {
        Some(pem) => builder.with_crls(revocation_lists(pem).ok_or(TlsError::NoRevocationList)?),
        None => builder,
    };
    builder.build().map_err(|error| match error {
        VerifierBuilderError::InvalidCrl(_) => TlsError::NoRevocationList,
        _ => TlsError::NoAuthority,
    })
}

/// The lists of revoked certificates in a file; none where there is none, or one cannot be read.
fn revocation_lists(pem: &[u8]) -> Option<Vec<CertificateRevocationListDer<'static>>> {
    let lists: Vec<_> = CertificateRevocationListDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    (!lists.is_empty()).then_some(lists)
}

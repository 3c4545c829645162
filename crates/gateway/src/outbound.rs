//! Requests to an issuer of tokens: small, bounded in time and size, over HTTPS with a certificate that is trusted. Nothing is followed.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::task::AbortOnDropHandle;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer of an issuer, in bytes.
const ANSWER_BYTES: usize = 1024 * 1024;

/// An address of an issuer: over HTTPS, or on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    is_secure: bool,
    /// As `Host` has it.
    authority: String,
    path: String,
}

/// Why an issuer cannot be asked, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The address is none that is asked.
    #[error("it must be an address that begins with `https://`, or with `http://` and is on this machine")]
    Address,
    /// The certificates that are trusted cannot be read.
    #[error("there is no certificate of an authority that can be trusted: {0}")]
    Trust(String),
    /// No connection, or it broke.
    #[error("it cannot be reached: {0}")]
    Connection(String),
    /// It did not answer in time.
    #[error("it does not answer")]
    Silent,
    /// The answer is an error.
    #[error("it answers {0}")]
    Status(StatusCode),
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// [`OutboundError::Address`].
    pub fn parse(text: &str) -> Result<Self, OutboundError> {
        let uri: Uri = text.parse().map_err(|_| OutboundError::Address)?;
        let authority = uri.authority().ok_or(OutboundError::Address)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if is_here => false,
            _ => return Err(OutboundError::Address),
        };
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(OutboundError::Address);
        }
        let port = authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { host, port, is_secure, authority: authority.to_string(), path })
    }
}

/// Asks issuers for what they publish and know.
#[derive(Clone)]
pub struct Outbound {
    connector: TlsConnector,
}

impl Outbound {
    /// Trusts the authorities in this text of PEM, or else those that the system trusts.
    ///
    /// # Errors
    /// [`OutboundError::Trust`].
    pub fn trusting(authorities: Option<&[u8]>) -> Result<Self, OutboundError> {
        let untrusted = |reason: &dyn ToString| OutboundError::Trust(reason.to_string());
        let mut roots = RootCertStore::empty();
        match authorities {
            Some(pem) => {
                for authority in CertificateDer::pem_slice_iter(pem) {
                    let authority = authority.map_err(|_| untrusted(&"it cannot be read"))?;
                    roots.add(authority).map_err(|error| untrusted(&error))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            return Err(untrusted(&"there is none"));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| untrusted(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)) })
    }

    /// What is at an address.
    ///
    /// # Errors
    /// [`OutboundError`].
    pub(crate) async fn get(&self, address: &Address) -> Result<Bytes, OutboundError> {
        self.answered(address, Request::builder().method(Method::GET), Bytes::new()).await
    }

    /// What an address answers to a form, which is sent with these credentials.
    ///
    /// # Errors
    /// [`OutboundError`].
    pub(crate) async fn post(
        &self,
        address: &Address,
        credentials: &HeaderValue,
        form: String,
    ) -> Result<Bytes, OutboundError> {
        let request = Request::builder()
            .method(Method::POST)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(AUTHORIZATION, credentials);
        self.answered(address, request, form.into()).await
    }

    async fn answered(
        &self,
        address: &Address,
        request: hyper::http::request::Builder,
        body: Bytes,
    ) -> Result<Bytes, OutboundError> {
        let request = request
            .uri(&address.path)
            .header(HOST, &address.authority)
            .header(ACCEPT, "application/json")
            .body(Full::new(body))
            .map_err(|_| OutboundError::Address)?;
        let answered = async {
            let stream =
                TcpStream::connect((address.host.as_str(), address.port)).await.map_err(unreachable)?;
            if !address.is_secure {
                return exchange(stream, request).await;
            }
            let name = ServerName::try_from(address.host.clone()).map_err(|_| OutboundError::Address)?;
            exchange(self.connector.connect(name, stream).await.map_err(unreachable)?, request).await
        };
        tokio::time::timeout(PATIENCE, answered).await.map_err(|_| OutboundError::Silent)?
    }
}

fn unreachable(error: io::Error) -> OutboundError {
    OutboundError::Connection(error.to_string())
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Bytes, OutboundError> {
    let broken = |error: hyper::Error| OutboundError::Connection(error.to_string());
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let answer = sender.send_request(request).await.map_err(broken)?;
    if answer.status() != StatusCode::OK {
        return Err(OutboundError::Status(answer.status()));
    }
    let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
    Ok(body.map_err(|error| OutboundError::Connection(error.to_string()))?.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_encrypted_or_on_this_machine_is_asked() {
        let parts = |text: &str| {
            let Address { host, port, is_secure, authority, path } = Address::parse(text).ok()?;
            Some(format!("{host} {port} {is_secure} {authority} {path}"))
        };
        assert_eq!(parts("https://id.example/keys?a=b").unwrap(), "id.example 443 true id.example /keys?a=b");
        assert_eq!(parts("http://127.0.0.1:8080/k").unwrap(), "127.0.0.1 8080 false 127.0.0.1:8080 /k");
        assert_eq!(parts("http://[::1]/").unwrap(), "::1 80 false [::1] /");
        for wrong in [
            "http://id.example/keys",
            "http://127.0.0.1.example/",
            "http://localhost.example/",
            "ftp://id.example/",
            "https://user@id.example/",
            "/keys",
            "",
            "file:///etc/passwd",
        ] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}

//! The connections whose clients have shown a certificate: they end where it is good no longer, as when its authority has revoked it.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The certificates of all clients that are connected.
#[derive(Clone, Default)]
pub(crate) struct ShownCertificates(Arc<Mutex<Connected>>);

#[derive(Default)]
struct Connected {
    last_id: u64,
    connections: HashMap<u64, ShownCertificate>,
}

#[derive(Clone)]
struct ShownCertificate {
    /// The certificate of the client, and those between it and an authority.
    chain: Arc<[CertificateDer<'static>]>,
    refused: CancellationToken,
}

/// One connection among them, until it is dropped.
struct Registration {
    id: u64,
    all: ShownCertificates,
}

/// A connection that breaks once the certificate of its client is good no longer.
pub(crate) struct RevocableStream<S> {
    stream: S,
    refused: Option<Refused>,
}

/// How a connection learns that its certificate is good no longer: a reader and a writer may each wait for that.
struct Refused {
    token: CancellationToken,
    told_reader: Pin<Box<WaitForCancellationFutureOwned>>,
    _registration: Registration,
}

impl ShownCertificates {
    /// A connection whose client has shown this chain of certificates, where it has.
    pub(crate) fn register<S>(
        &self,
        stream: S,
        chain: Option<&[CertificateDer<'static>]>,
    ) -> RevocableStream<S> {
        let refused = chain.map(|chain| {
            let shown = ShownCertificate { chain: chain.into(), refused: CancellationToken::new() };
            let token = shown.refused.clone();
            let told_reader = Box::pin(token.clone().cancelled_owned());
            let mut connected = self.lock();
            connected.last_id += 1;
            let id = connected.last_id;
            connected.connections.insert(id, shown);
            Refused { token, told_reader, _registration: Registration { id, all: self.clone() } }
        });
        RevocableStream { stream, refused }
    }

    /// Ends the connections whose chain of certificates is not good.
    pub(crate) fn retain(&self, is_good: impl Fn(&[CertificateDer<'static>]) -> bool) {
        // A certificate takes a while to be verified, and others connect meanwhile.
        let all: Vec<_> = self.lock().connections.values().cloned().collect();
        for shown in all.into_iter().filter(|shown| !is_good(&shown.chain)) {
            tracing::info!("a connection ends: the certificate of its client is good no longer");
            shown.refused.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Connected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.all.lock().connections.remove(&self.id);
    }
}

impl<S> RevocableStream<S> {
    /// Fails once the certificate is good no longer.
    fn check(&self) -> io::Result<()> {
        match &self.refused {
            Some(refused) if refused.token.is_cancelled() => {
                let error = "the certificate of the client is good no longer";
                Err(io::Error::new(io::ErrorKind::ConnectionAborted, error))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RevocableStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        // Whoever waits for the client is woken then, too; a writer is woken by the reader's end.
        if let Some(refused) = &mut self.refused
            && refused.told_reader.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(self.check());
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RevocableStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

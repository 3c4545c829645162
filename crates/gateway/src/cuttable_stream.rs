//! A connection that can be cut from elsewhere, whatever has become of it meanwhile: TLS, HTTP or a
//! WebSocket.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A stream that breaks once its token is cancelled.
pub(crate) struct CuttableStream<S> {
    stream: S,
    cut: CancellationToken,
    /// Wakes the reader. There always is one, which then ends the connection.
    told: Pin<Box<WaitForCancellationFutureOwned>>,
    /// What is there as long as the connection.
    held: Vec<Box<dyn Any + Send + Sync>>,
}

impl<S> CuttableStream<S> {
    /// The same stream, which breaks once the token is cancelled.
    pub(crate) fn new(stream: S, cut: CancellationToken) -> Self {
        let told = Box::pin(cut.clone().cancelled_owned());
        Self { stream, cut, told, held: Vec::new() }
    }

    /// What cuts the connection.
    pub(crate) fn cut(&self) -> &CancellationToken {
        &self.cut
    }

    /// Keeps a value until the connection ends.
    pub(crate) fn hold(&mut self, value: impl Send + Sync + 'static) {
        self.held.push(Box::new(value));
    }

    fn check(&self) -> io::Result<()> {
        match self.cut.is_cancelled() {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CuttableStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        if self.told.as_mut().poll(context).is_ready() {
            return Poll::Ready(self.check());
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CuttableStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test]
    async fn a_stream_that_is_cut_wakes_its_reader_and_takes_nothing_more() {
        let (near, mut far) = duplex(64);
        let (cut, kept) = (CancellationToken::new(), Arc::new(()));
        let mut stream = CuttableStream::new(near, cut.clone());
        stream.hold(Arc::clone(&kept));
        far.write_all(b"a").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'a');
        stream.write_all(b"b").await.unwrap();
        {
            let mut waiting = Box::pin(stream.read_u8());
            assert!(futures::poll!(&mut waiting).is_pending());
            cut.cancel();
            assert_eq!(waiting.await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        }
        assert!(stream.write_all(b"c").await.is_err());
        assert_eq!(Arc::strong_count(&kept), 2);
        drop(stream);
        assert_eq!(Arc::strong_count(&kept), 1);
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"b");
    }
}

//! Compression, for who asks for it with `Accept-Encoding: gzip`: of a stream piece by piece, each of which can be read at once, and of an
//! answer as a whole. Source: RFC 9110, 12.5.3.

use std::io::Write;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use mainstay_model::Error;
use tokio::sync::OwnedSemaphorePermit;

use mainstay_gateway::problem::Problem;

/// Smaller answers gain nothing.
const SMALLEST: u64 = 1024;
/// An answer of more bytes takes long enough to compress that others would wait.
const AT_ONCE: usize = 64 * 1024;

/// Whether someone takes gzip, and likes it as well as what is not compressed.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let mut named = None;
    let mut any = None;
    let mut plain = None;
    for (name, weight) in lines.flat_map(|line| line.split(',')).map(weighed) {
        if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
            named = Some(weight);
        } else if name.eq_ignore_ascii_case("identity") {
            plain = Some(weight);
        } else if name == "*" {
            any = Some(weight);
        }
    }
    let gzip: f32 = named.or(any).unwrap_or(0.0);
    gzip > 0.0 && plain.is_none_or(|plain| gzip >= plain)
}

/// A coding, and how much it is liked.
fn weighed(coding: &str) -> (&str, f32) {
    let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
    let weight = parameters.trim().strip_prefix("q=").map(str::trim);
    // What cannot be read is not wanted.
    (name.trim(), weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
}

/// A stream's own compression.
pub(super) struct Gzip {
    encoder: GzEncoder<Vec<u8>>,
    _place: OwnedSemaphorePermit,
}

impl Gzip {
    /// One that nothing went through yet.
    pub(super) fn new(place: OwnedSemaphorePermit) -> Self {
        Self { encoder: GzEncoder::new(Vec::new(), Compression::fast()), _place: place }
    }

    /// A piece, compressed so that all of it can be read before more comes.
    pub(super) fn piece(&mut self, piece: &[u8]) -> std::io::Result<Bytes> {
        self.encoder.write_all(piece)?;
        self.encoder.flush()?;
        Ok(std::mem::take(self.encoder.get_mut()).into())
    }

    /// Ends the stream and returns its last bytes.
    pub(super) fn end(self) -> std::io::Result<Bytes> {
        self.encoder.finish().map(Bytes::from)
    }
}

/// Says that an answer is compressed.
pub(super) fn mark(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
}

/// Compresses what is JSON and large enough, for who takes it.
pub(super) async fn compress(request: Request, next: Next) -> Response {
    let is_taken = takes_gzip(request.headers());
    let mut response = next.run(request).await;
    if !is_json(response.headers()) {
        return response;
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let is_large = response.body().size_hint().exact().is_some_and(|bytes| bytes >= SMALLEST);
    if !is_taken || !is_large || response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    // A body of a known size is bytes that are there.
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        let reason = "the answer cannot be read".to_owned();
        return Problem::from(Error::DaemonFailed { reason }).into_response();
    };
    let body = match whole(bytes.clone()).await {
        Some(compressed) => {
            mark(&mut head.headers);
            head.headers.remove(header::CONTENT_LENGTH);
            compressed
        }
        None => bytes,
    };
    Response::from_parts(head, Body::from(body))
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    media == "application/json" || media.ends_with("+json")
}

/// All of an answer, compressed; none where that does not work.
async fn whole(bytes: Bytes) -> Option<Bytes> {
    let is_quick = bytes.len() <= AT_ONCE;
    let compress = move || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes).ok()?;
        encoder.finish().ok().map(Bytes::from)
    };
    if is_quick { compress() } else { tokio::task::spawn_blocking(compress).await.ok()? }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_for_who_takes_it() {
        let takes = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, accept.parse().unwrap());
            takes_gzip(&headers)
        };
        for accept in
            ["gzip", "GZIP", "deflate, gzip;q=1.0", "*", "br, *;q=0.1", "identity;q=0.5, gzip", "x-gzip"]
        {
            assert!(takes(accept), "{accept}");
        }
        for accept in
            ["", "identity", "br", "gzip;q=0", "*;q=0", "gzip;q=0, *", "identity, gzip;q=0.5", "gzip;q=much"]
        {
            assert!(!takes(accept), "{accept}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}

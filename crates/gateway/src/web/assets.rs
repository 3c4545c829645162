//! What the page loads beside its HTML. Each file's address has its hash, so a browser keeps it for ever. `datastar.js` is Datastar 1.0.1; where
//! it is from stands in `datastar.md` beside it.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// A file, and what its address has of its content.
pub(super) struct Asset {
    name: &'static str,
    media: &'static str,
    bytes: &'static [u8],
    hash: LazyLock<String>,
}

macro_rules! asset {
    ($name:literal, $media:literal) => {
        Asset {
            name: $name,
            media: $media,
            bytes: include_bytes!(concat!("assets/", $name)),
            hash: LazyLock::new(|| hash_of(include_bytes!(concat!("assets/", $name)))),
        }
    };
}

pub(super) static STYLE: Asset = asset!("page.css", "text/css; charset=utf-8");
pub(super) static DATASTAR: Asset = asset!("datastar.js", "text/javascript; charset=utf-8");
pub(super) static SCRIPT: Asset = asset!("page.js", "text/javascript; charset=utf-8");
pub(super) static ICON: Asset = asset!("icon.svg", "image/svg+xml");

fn hash_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

impl Asset {
    /// Where it is.
    pub(super) fn address(&self) -> String {
        format!("/ui/assets/{}/{}", *self.hash, self.name)
    }
}

pub(super) async fn serve(Path((hash, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let assets = [&STYLE, &DATASTAR, &SCRIPT, &ICON];
    let Some(asset) = assets.into_iter().find(|asset| asset.name == name && *asset.hash == hash) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = format!("\"{hash}\"");
    let keep = [
        (header::ETAG, tag.clone()),
        (header::CACHE_CONTROL, "private, max-age=31536000, immutable".to_owned()),
    ];
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, keep).into_response();
    }
    (keep, [(header::CONTENT_TYPE, asset.media)], asset.bytes).into_response()
}

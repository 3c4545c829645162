//! What the page loads beside its HTML. The address of each file has the hash of all of them, so a browser keeps it for ever, and the scripts
//! import each other by relative paths.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// A file that the page needs.
pub(super) struct Asset {
    name: &'static str,
    media: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $media:literal) => {
        Asset { name: $name, media: $media, bytes: include_bytes!(concat!("assets/", $name)) }
    };
}

pub(super) static STYLE: Asset = asset!("page.css", "text/css; charset=utf-8");
static ORIGIN: Asset = asset!("origin.js", "text/javascript; charset=utf-8");
static LIVE: Asset = asset!("live.js", "text/javascript; charset=utf-8");
pub(super) static SCRIPT: Asset = asset!("page.js", "text/javascript; charset=utf-8");
pub(super) static ICON: Asset = asset!("icon.svg", "image/svg+xml");

/// Every file that the page needs.
static ALL: [&Asset; 5] = [&STYLE, &ORIGIN, &LIVE, &SCRIPT, &ICON];

/// The hash of all files.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let digest = ALL.iter().fold(Sha256::new(), |digest, asset| digest.chain_update(asset.bytes)).finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});

impl Asset {
    /// Returns the address at which the file is served.
    pub(super) fn address(&self) -> String {
        format!("/ui/assets/{}/{}", *HASH, self.name)
    }
}

pub(super) async fn serve(Path((hash, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let Some(asset) = ALL.iter().find(|asset| asset.name == name && *HASH == hash) else {
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

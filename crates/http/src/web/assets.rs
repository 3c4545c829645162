//! What the page loads beside its HTML. The address of each file has the hash of all of them, so a browser keeps it for ever, and the scripts
//! import each other by relative paths. A build for development reads them from the source tree, so that a change is tried by starting the
//! daemon again.

use std::borrow::Cow;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::Embed;
use sha2::{Digest, Sha256};

/// A file that the page needs.
pub(super) struct Asset {
    name: &'static str,
    media: &'static str,
}

/// The folder of the files.
#[derive(Embed)]
#[folder = "src/web/assets"]
struct Files;

pub(super) static STYLE: Asset = Asset { name: "page.css", media: "text/css; charset=utf-8" };
static ORIGIN: Asset = Asset { name: "origin.js", media: "text/javascript; charset=utf-8" };
static LIVE: Asset = Asset { name: "live.js", media: "text/javascript; charset=utf-8" };
pub(super) static SCRIPT: Asset = Asset { name: "page.js", media: "text/javascript; charset=utf-8" };
pub(super) static ICON: Asset = Asset { name: "icon.svg", media: "image/svg+xml" };

/// Every file that the page needs.
static ALL: [&Asset; 5] = [&STYLE, &ORIGIN, &LIVE, &SCRIPT, &ICON];

/// The hash of all files.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let digest =
        ALL.iter().fold(Sha256::new(), |digest, asset| digest.chain_update(asset.bytes())).finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});

impl Asset {
    /// The content of the file; nothing where it is not there, which a test excludes.
    fn bytes(&self) -> Cow<'static, [u8]> {
        Files::get(self.name).map(|file| file.data).unwrap_or_default()
    }

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
    (keep, [(header::CONTENT_TYPE, asset.media)], asset.bytes()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_there() {
        for asset in ALL {
            assert!(!asset.bytes().is_empty(), "{}", asset.name);
        }
    }
}

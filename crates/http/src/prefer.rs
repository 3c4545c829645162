//! What a client would like of an answer (RFC 7240): to wait for the outcome, or to be answered at once.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use mainstay_model::IdempotencyKey;

use mainstay_gateway::problem::Problem;

/// How long it waits for an outcome; none where it hears of it elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefer(pub(super) Option<Duration>);

impl<S: Sync> FromRequestParts<S> for Prefer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let values = parts.headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        Ok(values.flat_map(|value| value.split(',')).find_map(wait).map_or_else(Self::default, Self::seconds))
    }
}

impl Prefer {
    const fn seconds(seconds: u64) -> Self {
        Self(Some(Duration::from_secs(seconds)))
    }
}

/// The seconds of `wait=N`. What is not understood is no preference.
fn wait(preference: &str) -> Option<u64> {
    let (name, value) = preference.split_once('=')?;
    let value = value.split(';').next().unwrap_or_default().trim().trim_matches('"');
    name.trim().eq_ignore_ascii_case("wait").then(|| value.parse().ok()).flatten()
}

/// The key in the header, where there is one.
pub(super) struct Key(pub(super) Option<IdempotencyKey>);

impl<S: Sync> FromRequestParts<S> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let key = parts.headers.get("idempotency-key");
        // It may be a string as HTTP's structured fields have them.
        let text = key.map(|key| String::from_utf8_lossy(key.as_bytes()).trim_matches('"').to_owned());
        Ok(Self(text.map(IdempotencyKey::new).transpose()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn preferred(headers: &[&str]) -> Option<u64> {
        let mut request = axum::http::Request::builder();
        for header in headers {
            request = request.header("Prefer", *header);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let Prefer(wait) = Prefer::from_request_parts(&mut parts, &()).now_or_never().unwrap().unwrap();
        wait.map(|wait| wait.as_secs())
    }

    #[test]
    fn a_client_may_prefer_to_wait() {
        assert_eq!(preferred(&[]), None);
        assert_eq!(preferred(&["respond-async"]), None);
        assert_eq!(preferred(&["respond-async, wait=10"]), Some(10));
        assert_eq!(preferred(&["handling=lenient", "Wait = \"5\"; x=1"]), Some(5));
        assert_eq!(preferred(&["wait=soon"]), None);
    }
}

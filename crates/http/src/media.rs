//! In which of two ways something is written: JSON, or BARE for who names it. Source: RFC 9110, 12.5.1.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::bare;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Media {
    Json,
    Bare,
}

impl Media {
    pub(super) const JSON: &str = "application/json";
    pub(super) const BARE: &str = "application/bare";
    /// As it is named where it is sent.
    const BARE_SENT: &str = "application/bare; version=1";

    /// What a body is said to be; none of what is neither.
    pub(super) fn of_body(headers: &HeaderMap) -> Option<Self> {
        let (media, parameters) = parted(headers.get(header::CONTENT_TYPE)?.to_str().ok()?);
        match media.as_str() {
            Self::JSON => Some(Self::Json),
            Self::BARE => is_spoken(parameters).then_some(Self::Bare),
            _ => None,
        }
    }

    /// What someone takes; none where that is neither. Only who names BARE knows it, and has it where it is liked as well.
    pub(super) fn accepted(headers: &HeaderMap) -> Option<Self> {
        let (mut bare, mut json, mut any) = (None::<f32>, None::<f32>, None::<f32>);
        let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let mut is_said = false;
        for range in lines.flat_map(|line| line.split(',')).filter(|range| !range.trim().is_empty()) {
            is_said = true;
            let (media, parameters) = parted(range);
            let liked = match media.as_str() {
                Self::JSON => &mut json,
                Self::BARE if is_spoken(parameters) => &mut bare,
                "*/*" | "application/*" => &mut any,
                _ => continue,
            };
            let weight = weight(parameters);
            *liked = Some(liked.map_or(weight, |most| most.max(weight)));
        }
        let json = if is_said { json.or(any).unwrap_or(0.0) } else { 1.0 };
        match bare {
            Some(bare) if bare > 0.0 && bare >= json => Some(Self::Bare),
            _ => (json > 0.0).then_some(Self::Json),
        }
    }

    /// An answer that says this.
    pub(super) fn answer<T: Serialize + bare::Encode>(self, told: &T) -> Response {
        match self {
            Self::Json => Json(told).into_response(),
            Self::Bare => {
                let mut response = bare::message(told).into_response();
                let media = HeaderValue::from_static(Self::BARE_SENT);
                response.headers_mut().insert(header::CONTENT_TYPE, media);
                response
            }
        }
    }
}

/// A media type in lower case, and its parameters.
fn parted(media: &str) -> (String, &str) {
    let (name, parameters) = media.split_once(';').unwrap_or((media, ""));
    (name.trim().to_ascii_lowercase(), parameters)
}

/// The value of a parameter.
fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    parameters.split(';').find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"'))
    })
}

/// Whether a version of BARE is meant that is spoken here.
fn is_spoken(parameters: &str) -> bool {
    parameter(parameters, "version").is_none_or(|version| version == bare::VERSION)
}

/// How much something is liked. What cannot be read is not wanted.
fn weight(parameters: &str) -> f32 {
    parameter(parameters, "q").map_or(1.0, |weight| weight.parse().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn bare_is_for_who_names_it() {
        let accepted = |accept: &str| Media::accepted(&headers(header::ACCEPT, accept));
        for accept in [
            "application/bare",
            "Application/BARE; version=1",
            "application/json, application/bare",
            "*/*;q=0.1, application/bare;q=0.2",
            "text/html, application/bare;q=0.1",
        ] {
            assert_eq!(accepted(accept), Some(Media::Bare), "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "application/json",
            "application/*;q=0.1",
            "application/bare;q=0.5, application/json",
            "application/bare;q=0, */*",
            "application/bare;version=2, */*;q=0.1",
        ] {
            assert_eq!(accepted(accept), Some(Media::Json), "{accept}");
        }
        for accept in ["text/html", "application/bare;version=2", "*/*;q=0", "application/bare;q=much"] {
            assert_eq!(accepted(accept), None, "{accept}");
        }
        assert_eq!(Media::accepted(&HeaderMap::new()), Some(Media::Json));
        assert!(Media::BARE_SENT.ends_with(bare::VERSION));
    }

    #[test]
    fn a_body_is_what_it_is_said_to_be() {
        let said = |media: &str| Media::of_body(&headers(header::CONTENT_TYPE, media));
        assert_eq!(said("application/json; charset=utf-8"), Some(Media::Json));
        assert_eq!(said("application/bare"), Some(Media::Bare));
        assert_eq!(said("application/bare;version=\"1\""), Some(Media::Bare));
        for other in ["application/bare; version=2", "text/plain", "application/barely", ""] {
            assert_eq!(said(other), None, "{other}");
        }
    }
}

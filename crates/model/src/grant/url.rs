//! URLs of HTTP: the one form of each, and patterns of them. Source: RFC 3986, section 6; RFC 9110, section
//! 4.2.
//!
//! What browsers and libraries read differently is refused, not guessed: user information, backslashes, white
//! space, hosts that are not ASCII. A pattern says nothing of the query: what a URL may be asked is for its
//! host to say.

use std::net::Ipv6Addr;

use super::canonical::{Canonical, Reason};
use super::glob::SegmentGlob;
use super::path::segment_pattern;
use super::percent::{hides_traversal, normal};

const SCHEMES: [(&str, u16); 2] = [("http", 80), ("https", 443)];

/// The parts of a URL as they are written, without the fragment.
struct Parts<'a> {
    scheme: &'static str,
    default_port: u16,
    authority: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

/// The URL with scheme and host in lower case, without the default port, the dot after the host, `.`, `..`,
/// double slashes in the path, and the fragment. A slash at the end of the path stays, and makes no
/// difference to patterns.
pub(super) fn canonical(url: &str) -> Result<Canonical, Reason> {
    let Parts { scheme, default_port, authority, path, query } = parts(url)?;
    let (host, port) = host_and_port(authority)?;
    let (host, port) = (canonical_host(host)?, canonical_port(port, default_port)?);
    let mut names: Vec<String> = Vec::new();
    let mut ends_with_slash = false;
    for segment in path.split('/') {
        let segment = normal(segment)?;
        ends_with_slash = matches!(segment.as_str(), "" | "." | "..");
        match segment.as_str() {
            "" | "." => {}
            ".." => drop(names.pop()),
            _ if hides_traversal(&segment) => return Err("a segment hides `.`, `..` or a NUL"),
            _ => names.push(segment),
        }
    }
    let mut text = format!("{scheme}://{host}");
    if port != default_port {
        text.push_str(&format!(":{port}"));
    }
    for name in &names {
        text.push('/');
        text.push_str(name);
    }
    if ends_with_slash || names.is_empty() {
        text.push('/');
    }
    if let Some(query) = query {
        text.push('?');
        text.push_str(&normal_query(query));
    }
    let segments = [scheme.to_owned(), host, port.to_string()].into_iter().chain(names).collect();
    Ok(Canonical { text, segments })
}

/// A pattern of URLs: `scheme://host`, `scheme://host:port` and a path after either, or `scheme://**`.
///
/// Of a host, a `*` stands for characters that a dot follows, or for all of it: `https://api.*` would be
/// anybody's. For a port, `*` is any. Without a path it is that of `/`.
pub(super) fn pattern(text: &str) -> Result<Vec<SegmentGlob>, Reason> {
    if text.contains(['?', '#']) {
        return Err("a pattern of URLs has no query and no fragment; any query is covered");
    }
    let Parts { scheme, default_port, authority, path, .. } = parts(text)?;
    let scheme = SegmentGlob::One(scheme.to_owned());
    if authority == "**" && path.is_empty() {
        return Ok(vec![scheme, SegmentGlob::AnySegments]);
    }
    let (host, port) = host_and_port(authority)?;
    let host = if host.contains('*') { host_pattern(host)? } else { canonical_host(host)? };
    let port = match port {
        Some("*") => "*".to_owned(),
        port => canonical_port(port, default_port)?.to_string(),
    };
    let names = path.split('/').filter(|segment| !segment.is_empty());
    let names = names.map(|segment| segment_pattern(&normal(segment)?));
    [Ok(scheme), Ok(SegmentGlob::One(host)), Ok(SegmentGlob::One(port))].into_iter().chain(names).collect()
}

fn parts(url: &str) -> Result<Parts<'_>, Reason> {
    if url.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err("a URL has no white space and no control characters");
    }
    let (scheme, rest) = url.split_once("://").ok_or("a URL begins with `http://` or `https://`")?;
    let known = SCHEMES.into_iter().find(|(known, _)| scheme.eq_ignore_ascii_case(known));
    let (scheme, default_port) = known.ok_or("a URL begins with `http://` or `https://`")?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    if rest.contains('\\') {
        return Err("a URL has no backslash");
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Ok(Parts { scheme, default_port, authority, path, query })
}

/// Splits what stands between the slashes.
fn host_and_port(authority: &str) -> Result<(&str, Option<&str>), Reason> {
    if authority.contains('@') {
        return Err("a URL has no user information");
    }
    let from = authority.rfind(']').unwrap_or(0);
    match authority[from..].rfind(':') {
        Some(colon) => Ok((&authority[..from + colon], Some(&authority[from + colon + 1..]))),
        None => Ok((authority, None)),
    }
}

/// A host in lower case, without a dot at its end. An address of IPv6 is written as RFC 5952 has it.
fn canonical_host(host: &str) -> Result<String, Reason> {
    if let Some(address) = host.strip_prefix('[') {
        let address: Option<Ipv6Addr> = address.strip_suffix(']').and_then(|address| address.parse().ok());
        return address.map(|address| format!("[{address}]")).ok_or("the host is no address of IPv6");
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if host.split('.').all(|label| is_label(label, false)) {
        Ok(host)
    } else {
        Err("a host has ASCII letters, digits, `-`, `_` and dots; others are written as `xn--`")
    }
}

fn host_pattern(host: &str) -> Result<String, Reason> {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let starred = |label: &str| label.contains('*');
    let is_safe = |label: &str| !starred(label) || label.find('*') == Some(label.len() - 1);
    let ends_literally = !host.rsplit('.').next().is_some_and(starred);
    let labels_are_valid = host.split('.').all(|label| is_label(label, true) && is_safe(label));
    if host == "*" || (labels_are_valid && ends_literally) {
        Ok(host)
    } else {
        Err("of a host, `*` stands before a dot, or is all of it")
    }
}

fn is_label(label: &str, with_stars: bool) -> bool {
    let in_label = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (with_stars && byte == b'*')
    };
    !label.is_empty() && label.bytes().all(in_label)
}

fn canonical_port(port: Option<&str>, default_port: u16) -> Result<u16, Reason> {
    match port {
        None | Some("") => Ok(default_port),
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => match port.parse() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err("a port is between 1 and 65535"),
        },
        Some(_) => Err("a port is a number"),
    }
}

/// A query in ASCII. What its escapes mean is for the host to say.
fn normal_query(query: &str) -> String {
    query
        .bytes()
        .map(|byte| if byte.is_ascii() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

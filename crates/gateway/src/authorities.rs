//! By which names and at which port a listener is reached: what `Host` and `Origin` of a request may say.

use axum::http::{HeaderMap, header};

/// The names of this machine that a request to a loopback port may be addressed to.
pub const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The port that a name without one means over HTTPS.
const HTTPS_PORT: u16 = 443;

/// The names and the port by which a listener is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorities {
    names: Vec<String>,
    port: u16,
    is_secure: bool,
}

impl Authorities {
    /// Those of a loopback port.
    pub fn loopback(port: u16) -> Self {
        Self { names: OWN_NAMES.map(str::to_owned).to_vec(), port, is_secure: false }
    }

    /// Those of a port that other machines reach over TLS.
    pub fn remote(names: impl IntoIterator<Item = String>, port: u16) -> Self {
        Self { names: names.into_iter().collect(), port, is_secure: true }
    }

    /// Each name as `Host` has it.
    pub fn hosts(&self) -> Vec<String> {
        let with_port = self.names.iter().map(|name| format!("{name}:{}", self.port));
        let alone = self.names.iter().filter(|_| self.has_default_port()).cloned();
        with_port.chain(alone).collect()
    }

    fn has_default_port(&self) -> bool {
        self.is_secure && self.port == HTTPS_PORT
    }

    /// The Host or Origin that is none of these, if there is one.
    pub(crate) fn foreign_name(&self, headers: &HeaderMap) -> Option<String> {
        // Of a header that is there twice nobody knows which the other side meant.
        let all = |name| -> Vec<_> {
            headers
                .get_all(name)
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect()
        };
        let (hosts, origins) = (all(header::HOST), all(header::ORIGIN));
        if hosts.is_empty() {
            return Some(String::new());
        }
        let scheme = if self.is_secure { "https://" } else { "http://" };
        let is_own_origin =
            |origin: &String| origin.strip_prefix(scheme).is_some_and(|own| self.is_own_authority(own));
        let foreign_host = hosts.into_iter().find(|host| !self.is_own_authority(host));
        foreign_host.or_else(|| origins.into_iter().find(|origin| !is_own_origin(origin)))
    }

    fn is_own_authority(&self, authority: &str) -> bool {
        self.names.iter().any(|name| {
            let (head, rest) = authority.split_at_checked(name.len()).unwrap_or_default();
            let has_port = || rest.strip_prefix(':').is_some_and(|port| port.parse() == Ok(self.port));
            let has_none = rest.is_empty() && self.has_default_port();
            !name.is_empty() && head.eq_ignore_ascii_case(name) && (has_none || has_port())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(authorities: &Authorities, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        authorities.foreign_name(&headers).is_some()
    }

    #[test]
    fn only_this_machine_by_its_own_names_is_let_in() {
        let own = Authorities::loopback(37749);
        assert!(!foreign(&own, "127.0.0.1:37749", None));
        assert!(!foreign(&own, "localhost:37749", Some("http://localhost:37749")));
        for host in [
            "evil.example:37749",
            "127.0.0.1.evil.example:37749",
            "127.0.0.1:1",
            "127.0.0.1",
            "",
            "localhost:377490",
        ] {
            assert!(foreign(&own, host, None), "{host}");
        }
        for origin in ["http://evil.example", "null", "https://localhost:37749", "http://localhost:8080"] {
            assert!(foreign(&own, "localhost:37749", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn a_port_for_other_machines_is_reached_by_its_names_over_https_alone() {
        let own = Authorities::remote(["box.example".to_owned()], 443);
        for host in ["box.example", "BOX.example:443"] {
            assert!(!foreign(&own, host, Some("https://box.example")), "{host}");
        }
        for host in ["127.0.0.1:443", "box.example:1", "box.example.", "a.box.example", "box.examplé"] {
            assert!(foreign(&own, host, None), "{host}");
        }
        assert!(foreign(&own, "box.example", Some("http://box.example")));
        assert!(foreign(&Authorities::remote(["box.example".to_owned()], 8443), "box.example", None));
        assert_eq!(own.hosts(), ["box.example:443", "box.example"]);
    }
}

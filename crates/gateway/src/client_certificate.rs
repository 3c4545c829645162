//! The certificate that a client has shown for a TLS connection, and the names by which settings may mean it.

use mainstay_model::Timestamp;
use sha2::{Digest, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use crate::identities::IssuedName;

/// A certificate that TLS has verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its SHA-256, as `sha256:` and 64 hexadecimal digits.
    pub fingerprint: String,
    /// When it is good no longer.
    pub expires_at: Timestamp,
    /// Every name that it has.
    pub names: Vec<IssuedName>,
}

impl ClientCertificate {
    /// The kinds of names that settings may mean a certificate by, as in `dns:build.example.com`.
    pub const KINDS: [&str; 5] = ["sha256", "uri", "email", "dns", "cn"];

    /// What is known of a certificate in DER; none where it cannot be read.
    pub fn of_der(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let hash: String = Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect();
        let named = |kind: &str, name: &str| IssuedName { issuer: kind.to_owned(), name: name.to_owned() };
        let mut names = vec![named("sha256", &hash)];
        for name in alternative_names(&certificate) {
            match name {
                GeneralName::URI(name) => names.push(named("uri", name)),
                GeneralName::RFC822Name(name) => names.push(named("email", name)),
                GeneralName::DNSName(name) => names.push(named("dns", name)),
                _ => {}
            }
        }
        let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        names.extend(common.map(|name| named("cn", name)));
        let expires_at = Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()?;
        Some(Self { fingerprint: format!("sha256:{hash}"), expires_at, names })
    }

    /// Whether a client means this certificate by a fingerprint.
    pub fn has_fingerprint(&self, said: &str) -> bool {
        self.fingerprint.eq_ignore_ascii_case(said)
    }
}

/// The names of machines that a certificate in DER is for, as an address has them.
pub(crate) fn machine_names(der: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Vec::new() };
    let named = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) if !name.contains('*') => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes),
        _ => None,
    };
    alternative_names(&certificate).iter().filter_map(named).collect()
}

fn alternative_names<'a>(certificate: &'a X509Certificate<'_>) -> &'a [GeneralName<'a>] {
    match certificate.subject_alternative_name() {
        Ok(Some(names)) => &names.value.general_names,
        Ok(None) | Err(_) => &[],
    }
}

fn address(bytes: &[u8]) -> Option<String> {
    let four = <[u8; 4]>::try_from(bytes).map(|bytes| std::net::Ipv4Addr::from(bytes).to_string());
    let sixteen =
        || <[u8; 16]>::try_from(bytes).map(|bytes| format!("[{}]", std::net::Ipv6Addr::from(bytes)));
    four.or_else(|_| sixteen()).ok()
}

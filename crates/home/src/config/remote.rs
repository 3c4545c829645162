//! The port that other machines reach.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use mainstay_gateway::tls::Tls;
use mainstay_gateway::tokens::Tokens;
use mainstay_model::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::remote_files::RemoteFiles;

/// The port that other machines reach, over TLS alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RemoteConfig {
    /// The address and port to listen on, as in `0.0.0.0:37750`; port 0 takes any free port. Without it only this machine reaches the daemon.
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
    /// The file with the daemon's certificate, and those between it and an authority that clients trust, in PEM. A path that is not absolute is one in Mainstay's home.
    pub certificate_file: Option<PathBuf>,
    /// The file with the private key of the certificate, in PEM, which only you can read.
    pub key_file: Option<PathBuf>,
    /// The names and addresses by which clients reach the daemon; others are rejected. Without them those of the certificate, except for wildcards.
    pub names: Vec<String>,
    /// The file with the certificates of the authorities that sign the certificates of clients, in PEM. Without it no client's certificate is asked for.
    pub client_ca_file: Option<PathBuf>,
    /// The file with the lists of certificates that these authorities have revoked, in PEM. With it, a certificate is refused whose authority has no list in it. A list counts until the file has a newer one.
    pub client_crl_file: Option<PathBuf>,
    /// Whether a client without a certificate is refused. Otherwise it may show a token instead.
    pub client_certificate_required: bool,
}

/// What is needed to serve other machines.
pub struct Remote {
    /// The address to listen on.
    pub address: SocketAddr,
    /// What TLS is served with.
    pub tls: Tls,
    /// The names by which clients reach the daemon.
    pub names: Vec<String>,
    /// The files with what TLS is served with.
    pub files: RemoteFiles,
}

/// What a command line asks for in place of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteOptions {
    /// The address and port to listen on.
    pub listen: Option<SocketAddr>,
    /// The file with the daemon's certificate.
    pub certificate_file: Option<PathBuf>,
    /// The file with the key of the certificate.
    pub key_file: Option<PathBuf>,
}

impl RemoteOptions {
    /// How another process of this program is asked for them.
    pub fn arguments(&self) -> impl Iterator<Item = String> {
        let listen = self.listen.map(|address| format!("--listen={address}"));
        let file = |name: &str, file: &Option<PathBuf>| {
            file.as_ref().map(|file| format!("--{name}={}", file.display()))
        };
        [listen, file("certificate", &self.certificate_file), file("key", &self.key_file)]
            .into_iter()
            .flatten()
    }

    /// The settings, with these in their place where they were asked for.
    pub fn or(&self, config: &RemoteConfig) -> RemoteConfig {
        let absolute = |file: &PathBuf| std::path::absolute(file).unwrap_or_else(|_| file.clone());
        RemoteConfig {
            listen: self.listen.or(config.listen),
            certificate_file: self
                .certificate_file
                .as_ref()
                .map(absolute)
                .or(config.certificate_file.clone()),
            key_file: self.key_file.as_ref().map(absolute).or(config.key_file.clone()),
            ..config.clone()
        }
    }
}

impl RemoteConfig {
    /// What is needed to serve other machines; none where that is not wanted.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no certificate, or nobody could come in.
    pub fn read(&self, home: &Path, tokens: &Tokens) -> Result<Option<Remote>, Error> {
        let Some(address) = self.listen else { return Ok(None) };
        let (Some(certificate), Some(key)) = (&self.certificate_file, &self.key_file) else {
            return Err(refused(
                "other machines reach the daemon over TLS alone: name a certificate and its key, by `--certificate` and `--key`, or \
                 `certificate-file` and `key-file` in `[remote]`",
            ));
        };
        if !tokens.has_others() {
            return Err(refused(
                "nobody on another machine could come in, since the daemon's own token is for this one: add a principal with \
                 `mainstay principal new`",
            ));
        }
        let mut files = RemoteFiles {
            home: home.to_owned(),
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca: self.client_ca_file.clone(),
            client_crl: self.client_crl_file.clone(),
            is_client_certificate_required: self.client_certificate_required,
            has_names_of_certificate: self.names.is_empty(),
            last_read: None,
        };
        let tls = files.read()?;
        let names = if self.names.is_empty() { tls.names() } else { self.hosts() };
        if names.is_empty() {
            return Err(refused(
                "the certificate has no name of a machine: say by `names` in `[remote]` how clients reach it",
            ));
        }
        Ok(Some(Remote { address, tls, names, files }))
    }

    /// The names as `Host` has them.
    fn hosts(&self) -> Vec<String> {
        let host = |name: &String| match name.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            Ok(IpAddr::V4(_)) | Err(_) => name.clone(),
        };
        self.names.iter().map(host).collect()
    }

    /// Rejects settings that contradict each other.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.client_certificate_required && self.client_ca_file.is_none() {
            return Err("`client-certificate-required` needs `client-ca-file`".to_owned());
        }
        if self.client_crl_file.is_some() && self.client_ca_file.is_none() {
            return Err("`client-crl-file` needs `client-ca-file`".to_owned());
        }
        Ok(())
    }
}

fn refused(reason: &str) -> Error {
    Error::InvalidArgument { argument: "remote".to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{Access, Principal, Rights};
    use mainstay_test_support::tls::Authority;
    use std::os::unix::fs::PermissionsExt;

    use mainstay_gateway::tokens::TokenHash;

    #[test]
    fn other_machines_are_served_only_with_a_certificate_and_somebody_to_come_in() {
        let folder = tempfile::tempdir().unwrap();
        let alone = Tokens::new("secret", []);
        let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
        let ada = Access { principal: Principal::new("ada").unwrap(), rights };
        let others = Tokens::new("secret", [(TokenHash::of("hers"), ada)]);
        let said = |config: &RemoteConfig, tokens| match config.read(folder.path(), tokens) {
            Ok(remote) => remote.map(|remote| remote.names.join(" ")).unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        let nothing = RemoteConfig::default();
        assert_eq!(said(&nothing, &others), "");
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let bare = RemoteConfig { listen, ..nothing };
        assert!(said(&bare, &others).contains("name a certificate and its key"));
        let files = RemoteConfig {
            certificate_file: Some("certificate.pem".into()),
            key_file: Some("key.pem".into()),
            ..bare
        };
        assert!(said(&files, &alone).contains("add a principal"));
        assert!(said(&files, &others).contains("certificate.pem"), "it is not there");
        let made = Authority::new().machine(&["box.example", "10.0.0.1", "::1"]);
        std::fs::write(folder.path().join("certificate.pem"), &made.pem).unwrap();
        let key = folder.path().join("key.pem");
        std::fs::write(&key, &made.key).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(said(&files, &others).contains("others can read this secret"));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(said(&files, &others), "box.example 10.0.0.1 [::1]");
        let named =
            RemoteConfig { names: vec!["other.example".to_owned(), "::1".to_owned()], ..files.clone() };
        assert_eq!(said(&named, &others), "other.example [::1]");
        let strict = RemoteConfig { client_certificate_required: true, ..files.clone() };
        assert!(strict.check().unwrap_err().contains("client-ca-file"));
        let revoking = RemoteConfig { client_crl_file: Some("crl.pem".into()), ..files };
        assert!(revoking.check().unwrap_err().contains("client-ca-file"));
    }

    #[test]
    fn what_a_command_line_asks_for_stands_before_the_settings_and_reaches_another_process() {
        let listen = "0.0.0.0:1".parse().unwrap();
        let asked =
            RemoteOptions { listen: Some(listen), key_file: Some("/k".into()), certificate_file: None };
        assert_eq!(asked.arguments().collect::<Vec<_>>(), ["--listen=0.0.0.0:1", "--key=/k"]);
        let config = RemoteConfig {
            key_file: Some("a".into()),
            certificate_file: Some("b".into()),
            ..RemoteConfig::default()
        };
        let both = asked.or(&config);
        assert_eq!(
            (both.listen, both.key_file, both.certificate_file),
            (Some(listen), Some("/k".into()), Some("b".into()))
        );
        assert_eq!(RemoteOptions::default().or(&config), config);
    }
}

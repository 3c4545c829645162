//! A runtime behind TLS: whom the runner trusts, and what it shows.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::process::Command;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::{dialect_b, server};

/// An authority, and its certificate in PEM.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for `localhost` and its key, in PEM.
    fn sign(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// What serves TLS with a certificate of this authority, and asks its clients for one.
    fn acceptor(&self) -> TlsAcceptor {
        let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate(&self.pem)).unwrap();
        let provider = Arc::new(default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let (chain, key) = self.sign();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(
                vec![certificate(&chain)],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// The exit code of the command against this address, and what it prints.
async fn tried(folder: &Path, url: &str, options: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_arcp-conformance"))
        .args(["--url", url, "--token", "t", "--dialect", "b", "--only", "b.6.2.welcome"])
        .args(options)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[tokio::test]
async fn a_runtime_behind_tls_is_tried_where_both_sides_trust_each_other() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let url = server::serve_tls(dialect_b::Runtime::new(""), authority.acceptor()).await;
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.sign();
    let (other, other_key) = stranger.sign();
    for (name, text) in [
        ("ca.pem", &authority.pem),
        ("stranger.pem", &stranger.pem),
        ("client.pem", &certificate),
        ("client.key", &key),
        ("other.pem", &other),
        ("other.key", &other_key),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let shown = ["--client-certificate", "client.pem", "--client-key", "client.key"];
    let with = |authority: &'static str, shown: &[&'static str]| [&["--ca", authority], shown].concat();
    let (code, said) = tried(folder.path(), &url, &with("ca.pem", &shown)).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 passed"), "{said}");
    let of_stranger = ["--client-certificate", "other.pem", "--client-key", "other.key"];
    for options in [with("stranger.pem", &shown), with("ca.pem", &[]), with("ca.pem", &of_stranger)] {
        let (code, said) = tried(folder.path(), &url, &options).await;
        assert_eq!(code, Some(1), "{options:?}: {said}");
    }
    let mismatched = ["--client-certificate", "client.pem", "--client-key", "other.key"];
    for (options, why) in [
        (with("ca.pem", &mismatched), "cannot be used together"),
        (with("client.key", &[]), "no certificate of an authority"),
        (with("missing.pem", &[]), "missing.pem"),
        (with("ca.pem", &shown[..2]), "--client-key"),
    ] {
        let (code, said) = tried(folder.path(), &url, &options).await;
        assert_eq!(code, Some(2), "{options:?}: {said}");
        assert!(said.contains(why), "{said}");
    }
}

//! Certificates that a test makes, and clients that connect with them.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SanType, SerialNumber,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// An authority that signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, in PEM.
    pub pem: String,
}

/// A certificate and its key, both in PEM.
#[derive(Clone)]
pub struct Certificate {
    /// The certificate with its public key.
    pub pem: String,
    /// The private key of the certificate.
    pub key: String,
}

impl Authority {
    /// A new authority, which nobody trusts yet.
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for a machine of these names.
    pub fn machine(&self, names: &[&str]) -> Certificate {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate for a client that is called this, with this address of mail, which is good until so many seconds from now.
    pub fn client(&self, name: &str, mail: &str, seconds: i64) -> Certificate {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = vec![SanType::Rfc822Name(mail.try_into().unwrap())];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after =
            (std::time::SystemTime::now() + std::time::Duration::from_secs(seconds.unsigned_abs())).into();
        self.sign(params)
    }

    /// A list of these certificates, which the authority has revoked, in PEM.
    pub fn revocation_list(&self, certificates: &[&Certificate]) -> String {
        let now = std::time::SystemTime::now();
        let revoked = |certificate: &&Certificate| RevokedCertParams {
            serial_number: certificate.serial(),
            revocation_time: now.into(),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: now.into(),
            next_update: (now + std::time::Duration::from_secs(3600)).into(),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: certificates.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    fn sign(&self, params: CertificateParams) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        Certificate { pem: signed.pem(), key: key.serialize_pem() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Certificate {
    /// The certificate in DER.
    pub fn der(&self) -> Vec<u8> {
        CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap().to_vec()
    }

    fn serial(&self) -> SerialNumber {
        let der = self.der();
        let (_, certificate) = X509Certificate::from_der(&der).unwrap();
        certificate.raw_serial().to_vec().into()
    }
}

/// Connects over TLS to a loopback port, as a client that trusts this authority and shows this certificate.
pub async fn connect(
    port: u16,
    trusted: &Authority,
    shown: Option<&Certificate>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        Some(Certificate { pem, key }) => {
            let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
            config
                .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
                .unwrap()
        }
        None => config.with_no_client_auth(),
    };
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

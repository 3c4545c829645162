//! The files with what TLS is served with: the certificate of the daemon and its key, the authorities of
//! clients, and what those have revoked. They are read again once they have changed, however that came about:
//! written in place, renamed, or by a link that leads elsewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mainstay_gateway::tls::{ClientAuthority, Tls};
use mainstay_model::Error;

use super::files::read_file;

/// The files with what TLS is served with, and what was read of them last.
pub struct RemoteFiles {
    pub(super) home: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) client_ca: Option<PathBuf>,
    pub(super) client_crl: Option<PathBuf>,
    pub(super) is_client_certificate_required: bool,
    /// Whether clients reach the daemon by the names in its certificate.
    pub(super) has_names_of_certificate: bool,
    pub(super) last_read: Option<Result<Contents, Error>>,
}

/// What the files have.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
    client_crl: Option<Vec<u8>>,
}

/// What came of another look at the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// They are as they were at the last look.
    Unchanged,
    /// TLS is served with what they have now.
    Renewed {
        /// Whether clients reach the daemon by the same names as before.
        has_same_names: bool,
    },
    /// They cannot be used as they are now, and TLS is served with what they had before.
    Unusable(Error),
}

impl RemoteFiles {
    /// What TLS is served with.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the file that cannot be used.
    pub(super) fn read(&mut self) -> Result<Tls, Error> {
        let contents = self.contents();
        self.last_read = Some(contents.clone());
        self.tls(&contents?)
    }

    /// Has TLS served with what the files have now, where they have changed since they were read last. What
    /// cannot be used changes nothing: a certificate may be there before its key.
    pub fn renew(&mut self, served: &Tls) -> Renewal {
        let contents = self.contents();
        if self.last_read.as_ref() == Some(&contents) {
            return Renewal::Unchanged;
        }
        self.last_read = Some(contents.clone());
        match contents.and_then(|contents| self.tls(&contents)) {
            Ok(tls) => {
                let names = |tls: &Tls| tls.names().into_iter().collect::<BTreeSet<_>>();
                let has_same_names = !self.has_names_of_certificate || names(served) == names(&tls);
                served.replace(&tls);
                Renewal::Renewed { has_same_names }
            }
            Err(error) => Renewal::Unusable(error),
        }
    }

    fn contents(&self) -> Result<Contents, Error> {
        let read = |file: &Path| read_file(&self.home, file, false);
        Ok(Contents {
            certificate: read(&self.certificate)?,
            key: read_file(&self.home, &self.key, true)?,
            client_ca: self.client_ca.as_deref().map(read).transpose()?,
            client_crl: self.client_crl.as_deref().map(read).transpose()?,
        })
    }

    fn tls(&self, contents: &Contents) -> Result<Tls, Error> {
        let clients = contents.client_ca.as_ref().map(|pem| ClientAuthority {
            pem: pem.clone(),
            revocation_lists: contents.client_crl.clone(),
            is_required: self.is_client_certificate_required,
        });
        Tls::new(&contents.certificate, &contents.key, clients.as_ref()).map_err(|error| {
            Error::InvalidArgument { argument: "remote".to_owned(), reason: error.to_string() }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use mainstay_test_support::tls::{Authority, Certificate};
    use tempfile::TempDir;

    use super::*;

    /// Writes a file beside the one that it is to be, and renames it.
    fn put(folder: &TempDir, name: &str, text: &str) {
        let made = folder.path().join("new");
        std::fs::write(&made, text).unwrap();
        std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::rename(&made, folder.path().join(name)).unwrap();
    }

    fn files(folder: &TempDir) -> RemoteFiles {
        RemoteFiles {
            home: folder.path().to_owned(),
            certificate: "box.pem".into(),
            key: "box.key".into(),
            client_ca: Some("ca.pem".into()),
            client_crl: Some("crl.pem".into()),
            is_client_certificate_required: false,
            has_names_of_certificate: true,
            last_read: None,
        }
    }

    #[test]
    fn files_that_have_changed_are_read_again_and_broken_ones_change_nothing() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let put_pair = |Certificate { pem, key }: &Certificate| {
            put(&folder, "box.pem", pem);
            put(&folder, "box.key", key);
        };
        put_pair(&authority.machine(&["box.example"]));
        put(&folder, "ca.pem", &authority.pem);
        put(&folder, "crl.pem", &authority.revocation_list(&[]));
        let mut files = files(&folder);
        let served = files.read().unwrap();
        assert_eq!(files.renew(&served), Renewal::Unchanged);
        // The certificate is there before its key.
        let next = authority.machine(&["box.example", "other.example"]);
        put(&folder, "box.pem", &next.pem);
        let said = |renewal| match renewal {
            Renewal::Unusable(error) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(said(files.renew(&served)).contains("cannot be used together"));
        assert_eq!(files.renew(&served), Renewal::Unchanged, "that is said once");
        assert_eq!(served.names(), ["box.example"], "what was served is");
        put_pair(&next);
        assert_eq!(files.renew(&served), Renewal::Renewed { has_same_names: false });
        assert_eq!(served.names(), ["box.example", "other.example"]);
        put(&folder, "crl.pem", "-----BEGIN X509 CRL-----\nAA==\n-----END X509 CRL-----\n");
        assert!(said(files.renew(&served)).contains("list of revoked certificates"));
        let revoked = authority.client("ada", "ada@example.com", 600);
        put(&folder, "crl.pem", &authority.revocation_list(&[&revoked]));
        assert_eq!(files.renew(&served), Renewal::Renewed { has_same_names: true });
        std::fs::remove_file(folder.path().join("ca.pem")).unwrap();
        assert!(said(files.renew(&served)).contains("ca.pem"));
        // As a link that leads elsewhere.
        put(&folder, "elsewhere.pem", &Authority::new().pem);
        symlink("elsewhere.pem", folder.path().join("ca.pem")).unwrap();
        assert_eq!(files.renew(&served), Renewal::Renewed { has_same_names: true });
    }
}

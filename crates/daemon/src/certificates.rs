//! Looks at the files with the certificates of the remote port from time to time, and has it served with what
//! they have.

use std::time::Duration;

use mainstay_gateway::tls::Tls;
use mainstay_home::config::{RemoteFiles, Renewal};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How long it takes at most until a change is seen. The files are few and small, and reading them sees every
/// way in which they may change.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);

/// Has the port served with what the files have, for ever.
pub(crate) async fn renew(mut files: RemoteFiles, served: Tls) {
    loop {
        sleep(BETWEEN_LOOKS).await;
        let tls = served.clone();
        let looked = spawn_blocking(move || {
            let renewal = files.renew(&tls);
            (files, renewal)
        });
        // It does not panic.
        let Ok((same, renewal)) = looked.await else { return };
        files = same;
        match renewal {
            Renewal::Unchanged => {}
            Renewal::Renewed { has_same_names: true } => {
                tracing::info!("other machines are served with the certificates that the files have now");
            }
            Renewal::Renewed { has_same_names: false } => tracing::warn!(
                "the new certificate is for other names than the one before; the daemon learns them when it is restarted"
            ),
            Renewal::Unusable(error) => {
                tracing::warn!(%error, "the files with certificates have changed and cannot be used; the previous ones stay in use");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use mainstay_gateway::tokens::{TokenHash, Tokens};
    use mainstay_home::config::RemoteConfig;
    use mainstay_model::{Access, Principal, Rights};
    use mainstay_test_support::tls::{Authority, Certificate};

    use super::*;

    fn put(folder: &Path, Certificate { pem, key }: &Certificate) {
        for (name, text) in [("box.pem", pem), ("box.key", key)] {
            let made = folder.join("new");
            std::fs::write(&made, text).unwrap();
            std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o600)).unwrap();
            std::fs::rename(&made, folder.join(name)).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_that_is_renewed_is_served_without_a_restart() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        put(folder.path(), &authority.machine(&["box.example"]));
        let ada = Access { principal: Principal::new("ada").unwrap(), rights: Rights::All };
        let config = RemoteConfig {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            certificate_file: Some("box.pem".into()),
            key_file: Some("box.key".into()),
            ..RemoteConfig::default()
        };
        let remote = config.read(folder.path(), &Tokens::new("secret", [(TokenHash::of("hers"), ada)]));
        let remote = remote.unwrap().unwrap();
        let renewing = tokio::spawn(renew(remote.files, remote.tls.clone()));
        for names in [&["box.example", "next.example"], &["box.example", "third.example"]] {
            put(folder.path(), &authority.machine(names));
            sleep(2 * BETWEEN_LOOKS).await;
            // The files are read in another thread.
            for _ in 0..10_000 {
                if remote.tls.names() == names {
                    break;
                }
                sleep(BETWEEN_LOOKS).await;
            }
            assert_eq!(remote.tls.names(), names);
        }
        renewing.abort();
    }
}

//! The paths by which clients of the protocol load sessions that are stored. A session of ours has one whether or not pi has written a file
//! there: its transcript is in the log.

use std::path::{Path, PathBuf};

use mainstay_model::SessionId;

/// Where the sessions' folders are, below the daemon's home.
const FOLDERS: &str = "agents/pi/sessions";

/// The folder in which pi has files of its own of a session.
pub(super) fn folder(home: &Path, session: SessionId) -> PathBuf {
    home.join(FOLDERS).join(session.to_string())
}

/// The path of a session of which pi has no file.
pub(super) fn of(home: &Path, session: SessionId) -> PathBuf {
    folder(home, session).join("session.jsonl")
}

/// The session whose path this is; none where it is that of any other file.
pub(super) fn session_of(home: &Path, path: &str) -> Option<SessionId> {
    let mut names = Path::new(path).strip_prefix(home.join(FOLDERS)).ok()?.iter();
    let session = names.next()?.to_str()?.parse().ok()?;
    (names.next().is_some() && names.next().is_none()).then_some(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_in_the_folder_of_a_session_is_its_path() {
        let home = Path::new("/home/ada/.mainstay");
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let session = id.parse().unwrap();
        assert_eq!(session_of(home, &of(home, session).display().to_string()), Some(session));
        let others = [
            format!("{}/{FOLDERS}/{id}", home.display()),
            format!("{}/{FOLDERS}/{id}/deeper/session.jsonl", home.display()),
            format!("{}/{FOLDERS}/other/session.jsonl", home.display()),
            format!("/elsewhere/{FOLDERS}/{id}/session.jsonl"),
        ];
        assert_eq!(others.map(|path| session_of(home, &path)), [None; 4]);
    }
}

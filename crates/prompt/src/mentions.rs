//! Files that are mentioned to an agent: `@path`, or `@"a path"` where it has blanks. The agent gets the words as they are, and reads the file
//! where it thinks that it should.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

/// So many files are proposed; what is typed further gets others.
const MOST: usize = 50;
/// So many are looked through where git does not list them.
const WALKED: usize = 20_000;

/// The mention that a line ends with: where it begins, and what of its path is typed.
pub(crate) fn begun(line: &str) -> Option<(usize, &str)> {
    let starts_word = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
    if let Some(at) = line.rfind("@\"").filter(|at| starts_word(*at) && !line[at + 2..].contains('"')) {
        return Some((at, &line[at + 2..]));
    }
    let at = line
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + line[at..].chars().next().map_or(0, char::len_utf8));
    let path = line[at..].strip_prefix('@')?;
    (!path.contains('"')).then_some((at, path))
}

/// The mention of a path.
pub(crate) fn mention(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("@\"{path}\"") } else { format!("@{path}") }
}

/// The files and folders of a folder that fit what is typed of a path, the best first. Of a git repository what it ignores is left out.
pub(crate) async fn found(folder: &Path, typed: &str) -> Vec<String> {
    if typed.starts_with(['/', '.']) {
        return listed(folder, typed);
    }
    let mut files = match of_git(folder).await {
        Some(files) => files,
        None => {
            let folder = folder.to_owned();
            tokio::task::spawn_blocking(move || walked(&folder)).await.unwrap_or_default()
        }
    };
    files.retain(|file| is_typed(file));
    best(&files, typed)
}

/// Whether it can stand in a line as it is.
fn is_typed(path: &str) -> bool {
    !path.contains(|c: char| c.is_control() || c == '"')
}

/// What git knows there, or would: none where it is no repository, or there is no git. A repository's own programs are not run.
async fn of_git(folder: &Path) -> Option<Vec<String>> {
    let listed = Command::new("git")
        .args(["-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(folder)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .ok()
        .filter(|listed| listed.status.success())?;
    let names = listed.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Some(names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect())
}

/// The files below a folder, hidden ones and what links lead to left out.
fn walked(folder: &Path) -> Vec<String> {
    let (mut files, mut folders, mut seen) = (Vec::new(), vec![String::new()], 0);
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(folder.join(&below)).into_iter().flatten().flatten() {
            seen += 1;
            if seen > WALKED {
                return files;
            }
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            if name.starts_with('.') {
                continue;
            }
            let path = format!("{below}{name}");
            if kind.is_dir() {
                folders.push(format!("{path}/"));
            } else {
                files.push(path);
            }
        }
    }
    files
}

/// What stands in one folder, of a path that leads out of the session's or to what is hidden.
fn listed(folder: &Path, typed: &str) -> Vec<String> {
    let (parent, begun) = typed.split_at(typed.rfind('/').map_or(0, |at| at + 1));
    let entries = std::fs::read_dir(folder.join(parent)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(begun))?;
        let end = if entry.path().is_dir() { "/" } else { "" };
        Some(format!("{parent}{name}{end}"))
    });
    let mut names: Vec<String> = names.filter(|name| is_typed(name)).collect();
    names.sort();
    names.truncate(MOST);
    names
}

/// Those that fit, and the folders they are in: first those whose path begins so, then those whose name does, then those that have it
/// anywhere. Where nothing is typed, what stands in the folder itself.
fn best(files: &[String], typed: &str) -> Vec<String> {
    let folders = files.iter().flat_map(|file| file.match_indices('/').map(|(at, _)| &file[..=at]));
    let all: BTreeSet<&str> = files.iter().map(String::as_str).chain(folders).collect();
    let wanted = typed.to_lowercase();
    let rank = |path: &str| {
        let path = path.to_lowercase();
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let is_deep = path.trim_end_matches('/').contains('/');
        match () {
            () if wanted.is_empty() => (!is_deep).then_some(0),
            () if path.starts_with(&wanted) => Some(0),
            () if name.starts_with(&wanted) => Some(1),
            () => path.contains(&wanted).then_some(2),
        }
    };
    let mut fitting: Vec<_> = all
        .into_iter()
        .filter_map(|path| Some((rank(path)?, path.trim_end_matches('/').matches('/').count(), path)))
        .collect();
    fitting.sort_unstable();
    fitting.into_iter().take(MOST).map(|(_, _, path)| path.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_a_word_that_begins_with_its_sign() {
        assert_eq!(begun("look at @src/ma"), Some((8, "src/ma")));
        assert_eq!(begun("@"), Some((0, "")));
        assert_eq!(begun("see\n@\"my notes/a b"), Some((4, "my notes/a b")));
        for line in ["a@b.c", "@a b", "", "@\"a b\" and", "@\"a b\""] {
            assert_eq!(begun(line), None, "{line}");
        }
        assert_eq!([mention("a/b"), mention("a b")], ["@a/b", "@\"a b\""]);
    }

    #[test]
    fn what_begins_so_comes_before_what_has_it_somewhere() {
        let files = ["src/main.rs", "main.fsx", "docs/remain.md", "src/util/Main.rs"].map(str::to_owned);
        assert_eq!(best(&files, "main"), ["main.fsx", "src/main.rs", "src/util/Main.rs", "docs/remain.md"]);
        assert_eq!(best(&files, ""), ["docs/", "main.fsx", "src/"]);
        assert_eq!(best(&files, "src/u"), ["src/util/", "src/util/Main.rs"]);
        assert_eq!(best(&files, "x"), ["main.fsx"]);
    }

    #[tokio::test]
    async fn without_git_hidden_files_are_left_out_and_paths_lead_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/b", ".hidden"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("file"), "").unwrap();
        }
        assert_eq!(walked(folder.path()), ["a/b/file"]);
        assert_eq!(found(&folder.path().join("a"), "../.h").await, ["../.hidden/"]);
        assert_eq!(found(&folder.path().join("a"), "./").await, ["./b/"]);
    }
}

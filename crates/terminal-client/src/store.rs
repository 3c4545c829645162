//! Backing the store up and removing what deleted sessions have left, with how far it is.

use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use mainstay_client::Client;
use mainstay_model::Error;
use mainstay_model::store::{Collected, Collection, Manifest};
use mainstay_protocol::operations::{BackUp, Collect, CollectedPart};
use mainstay_terminal::{bytes, counted, note};
use tokio::time::{Instant, interval_at};

/// How often a long backup says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Writes a backup, and says every second how far it is; gives what it holds, and the folder's whole path.
pub async fn back_up(client: &Client, folder: &Path) -> Result<(Manifest, PathBuf), Error> {
    let folder = absolute(folder).map_err(|error| Error::InvalidArgument {
        argument: "folder".to_owned(),
        reason: format!("`{}`: {error}", folder.display()),
    })?;
    let back_up = client.call(BackUp { folder: folder.display().to_string() });
    tokio::pin!(back_up);
    let mut looks = interval_at(Instant::now() + TOLD_EVERY, TOLD_EVERY);
    loop {
        tokio::select! {
            made = &mut back_up => return Ok((made?, folder)),
            _ = looks.tick() => note(&format!("{} written …", bytes(written(&folder)))),
        }
    }
}

/// What a backup holds, and where it is.
pub fn backup_text(made: &Manifest, folder: &Path) -> String {
    let Manifest { sessions, files, bytes: count, .. } = made;
    format!(
        "{} and {} of objects, {}, are in {}",
        counted(*sessions, "session"),
        counted(*files, "file"),
        bytes(*count),
        folder.display()
    )
}

/// How large the files in a folder are by now.
fn written(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => written(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Collects all there is, and says every second how far it is.
pub async fn collect(client: &Client) -> Result<Collected, Error> {
    let (mut all, mut next) = (Collected::default(), Some(Collection::default()));
    let mut due = Instant::now() + TOLD_EVERY;
    while let Some(from) = next {
        let CollectedPart { collected, next: further } = client.call(Collect { from }).await?;
        all += collected;
        next = further;
        if Instant::now() >= due {
            due += TOLD_EVERY;
            note(&format!(
                "collecting: {}, {} …",
                counted(all.events, "event"),
                counted(all.entries, "entry")
            ));
        }
    }
    Ok(all)
}

/// What was removed, on one line.
pub fn collected_text(collected: &Collected) -> String {
    if collected.is_empty() {
        return "there was nothing to collect\n".to_owned();
    }
    let Collected { events, entries, objects, outcomes, bytes: count } = collected;
    let removed = [
        counted(*events, "event"),
        counted(*entries, "entry"),
        counted(*objects, "object"),
        counted(*outcomes, "outcome"),
    ];
    format!("collected {}: {}\n", removed.join(", "), bytes(*count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_counted() {
        assert_eq!(collected_text(&Collected::default()), "there was nothing to collect\n");
        let collected = Collected { events: 12, entries: 4, objects: 1, outcomes: 3, bytes: 123_456 };
        insta::assert_snapshot!(collected_text(&collected), @"collected 12 events, 4 entries, 1 object, 3 outcomes: 123.5 kB");
    }
}

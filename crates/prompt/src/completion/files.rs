//! The completion of files and folders.

use super::proposal::{Choice, Proposal};

/// The files and folders whose paths begin with `path`, which ends at `end`.
pub(super) fn files(path: &str, endings: &[&str], end: usize) -> Proposal {
    let split = path.rfind('/').map_or(0, |at| at + 1);
    let (folder, begun) = path.split_at(split);
    let listed = std::fs::read_dir(if folder.is_empty() { "." } else { folder });
    let mut choices: Vec<_> = listed
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let is_folder = entry.path().is_dir();
            let is_wanted = name.starts_with(begun) && (!name.starts_with('.') || begun.starts_with('.'));
            let value = if is_folder { format!("{name}/") } else { name };
            let is_shown = is_folder || endings.iter().any(|end| value.ends_with(end));
            (is_wanted && is_shown).then_some(Choice { value, note: String::new(), documentation: None })
        })
        .collect();
    choices.sort_by(|a, b| a.value.cmp(&b.value));
    Proposal::whole(end - begun.len(), choices)
}

//! Which tools a worker offers: as its welcome lists them, and as they are remembered for those who ask while no worker runs.

use std::io::Write;
use std::path::{Path, PathBuf};

use mainstay_arcp_protocol::b::InventoryEntry;
use mainstay_model::SessionKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that a worker offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name of the tool.
    pub name: String,
    /// The versions that the tool is there in; none where it has no versions.
    #[serde(default)]
    pub versions: Vec<String>,
    /// The version that its bare name means, where it has versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether its input is an object, as that of each tool of an MCP server is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_objects: bool,
}

/// Where an entry of a welcome says which form the input of a tool has: a field of this runtime.
const INPUT: &str = "x-mainstay.input";

/// The version of a tool that has no versions.
pub(crate) const ONLY_VERSION: &str = "1";

impl Tool {
    /// Whether the tool is there in this version.
    pub(crate) fn is_there_in(&self, version: &String) -> bool {
        self.versions.contains(version) || (self.versions.is_empty() && version == ONLY_VERSION)
    }
}

/// The tools in a welcome, which has names, or entries with versions. What is neither is left out. Source: draft-arcp-1.1, 6.2.
pub(crate) fn tools_of(agents: Option<&Value>) -> Vec<Tool> {
    let all = agents.and_then(Value::as_array).into_iter().flatten();
    let tool = |entry: &Value| match entry {
        Value::String(name) => {
            Some(Tool { name: name.clone(), versions: Vec::new(), default: None, takes_objects: false })
        }
        other => {
            let entry = InventoryEntry::deserialize(other).ok()?;
            let InventoryEntry { name, versions, default } = entry;
            Some(Tool { name, versions, default, takes_objects: other[INPUT] == "object" })
        }
    };
    all.filter_map(tool).collect()
}

/// The tools that a worker of this kind offered when it was started last; none where it never was.
pub fn known_tools(folder: &Path, kind: &SessionKind) -> Vec<Tool> {
    let text = std::fs::read(file(folder, kind)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Remembers the tools of a worker that has just started.
pub(crate) fn remember(folder: &Path, kind: &SessionKind, tools: &[Tool]) -> std::io::Result<()> {
    if known_tools(folder, kind) == tools {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    let file = file(folder, kind);
    // Another session's worker may do the same at this moment: each writes a file of its own, and the last that is moved there counts.
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    std::fs::File::create(&beside)?.write_all(&serde_json::to_vec(tools)?)?;
    std::fs::rename(beside, file)
}

fn file(folder: &Path, kind: &SessionKind) -> PathBuf {
    folder.join(format!("{kind}.json"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_entries_are_read_and_what_is_neither_is_left_out() {
        let agents = json!(["quote", 7, { "name": "search", "versions": ["1", "2"], "default": "2", "x-mainstay.input": "object" }, { "versions": [] }]);
        let tools = tools_of(Some(&agents));
        let search = Tool {
            name: "search".to_owned(),
            versions: vec!["1".to_owned(), "2".to_owned()],
            default: Some("2".to_owned()),
            takes_objects: true,
        };
        let quote =
            Tool { name: "quote".to_owned(), versions: Vec::new(), default: None, takes_objects: false };
        assert_eq!(tools, [quote, search]);
        assert_eq!(tools_of(None), []);
    }

    #[test]
    fn what_is_remembered_is_known_later() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("tools");
        let kind = SessionKind::new("pricing").unwrap();
        assert_eq!(known_tools(&folder, &kind), []);
        let tools = tools_of(Some(&json!(["quote"])));
        remember(&folder, &kind, &tools).unwrap();
        assert_eq!(known_tools(&folder, &kind), tools);
        remember(&folder, &kind, &[]).unwrap();
        assert_eq!(known_tools(&folder, &kind), []);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }
}

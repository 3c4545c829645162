//! Whether a client trusts a folder: two of them start no servers, or read no configuration of a project, in one that it does not.

use std::path::Path;

use serde_json::Value;

use crate::commands::mcp::clients::{McpClient, Places, Scope};

/// What is wrong with the trust that a client has in the project's folder, and what to do; nothing where all is well or it needs none.
pub(super) fn doubt(client: McpClient, scope: Scope, places: &Places) -> Option<(String, &'static str)> {
    match (client, scope) {
        (McpClient::Gemini, _) => {
            let rules = std::fs::read_to_string(places.home.join(".gemini/trustedFolders.json"));
            let is_trusted = is_trusted_by_gemini(&rules.unwrap_or_default(), &places.project);
            (!is_trusted).then(|| {
                let what = format!("Gemini CLI does not trust {}, and starts no servers there", places.project.display());
                (what, "Run `/permissions` there in Gemini CLI and trust the folder, or start it with `--skip-trust`.")
            })
        }
        (McpClient::Codex, Scope::Project) => {
            let settings = std::fs::read_to_string(places.codex.join("config.toml"));
            let is_trusted = is_trusted_by_codex(&settings.unwrap_or_default(), &places.project);
            (!is_trusted).then(|| {
                let what =
                    format!("Codex does not trust {}, and does not read this file", places.project.display());
                (what, "Start `codex` there and trust the folder, or leave out `--scope project` when installing.")
            })
        }
        (_, _) => None,
    }
}

/// Whether the rules (folder to `TRUST_FOLDER`, `TRUST_PARENT` or `DO_NOT_TRUST`) have a folder trusted: the longest that is about it counts.
fn is_trusted_by_gemini(rules: &str, folder: &Path) -> bool {
    let Ok(Value::Object(rules)) = serde_json::from_str(rules) else { return false };
    let about = rules.iter().filter_map(|(named, rule)| {
        let named = Path::new(named);
        let (top, is_trusted) = match rule.as_str()? {
            "TRUST_FOLDER" => (named, true),
            "TRUST_PARENT" => (named.parent().unwrap_or(named), true),
            _ => (named, false),
        };
        folder.starts_with(top).then(|| (top.components().count(), is_trusted))
    });
    // Where two are as long, the one that forbids counts.
    about.max_by_key(|(length, is_trusted)| (*length, !is_trusted)).is_some_and(|(_, is_trusted)| is_trusted)
}

/// Whether the settings say that a folder, or one that it is in, is trusted.
fn is_trusted_by_codex(settings: &str, folder: &Path) -> bool {
    let Ok(settings) = ::toml::from_str::<Value>(settings) else { return false };
    let projects = settings.get("projects").and_then(Value::as_object).into_iter().flatten();
    let about = projects.filter(|(named, _)| folder.starts_with(named.as_str()));
    let nearest = about.max_by_key(|(named, _)| named.len());
    nearest.is_some_and(|(_, project)| project.get("trust_level").and_then(Value::as_str) == Some("trusted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_says_whether_gemini_trusts_a_folder() {
        let rules =
            r#"{ "/code": "TRUST_FOLDER", "/code/bad": "DO_NOT_TRUST", "/other/one": "TRUST_PARENT" }"#;
        let trusted = |folder: &str| is_trusted_by_gemini(rules, Path::new(folder));
        assert!(trusted("/code") && trusted("/code/shop") && trusted("/other/two"));
        assert!(!trusted("/code/bad") && !trusted("/code/bad/in") && !trusted("/") && !trusted("/codeshop"));
        assert!(!is_trusted_by_gemini("", Path::new("/code")));
    }

    #[test]
    fn codex_says_in_its_settings_which_folders_it_trusts() {
        let settings = "[projects.\"/code\"]\ntrust_level = \"trusted\"\n[projects.\"/code/bad\"]\ntrust_level = \"untrusted\"\n";
        let trusted = |folder: &str| is_trusted_by_codex(settings, Path::new(folder));
        assert!(trusted("/code") && trusted("/code/shop"));
        assert!(!trusted("/code/bad") && !trusted("/else"));
    }
}

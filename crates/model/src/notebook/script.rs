//! Scripts in cells, as editors part them: by `// %%`, or by a comment of dashes alone.

use super::{CellKind, Language, Text};

/// What a cell begins with.
pub(crate) const MARK: &str = "// %%";

/// Reads a script; one without marks is one cell. A mark is one wherever its line stands, even in a text of the language.
pub(super) fn read(text: &str) -> Text {
    let code = || CellKind::Code(Some(Language::named("fsharp")));
    Text::read(text, code(), |line| {
        if is_ruler(line) {
            return Some(code());
        }
        let title = line.strip_prefix("//")?.trim_start().strip_prefix("%%")?;
        Some(if title.contains("[markdown]") { CellKind::Markdown } else { code() })
    })
}

/// Whether a line is `(* --- *)`, of at least three dashes.
fn is_ruler(line: &str) -> bool {
    let comment = line.strip_prefix("(*").and_then(|line| line.strip_suffix("*)"));
    comment.map(str::trim).is_some_and(|dashes| dashes.len() >= 3 && dashes.chars().all(|c| c == '-'))
}

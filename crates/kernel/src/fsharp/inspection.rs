//! What a name in F# code stands for, in words: which name it is, and what is said of it.

use mainstay_model::TextPosition;
use mainstay_runner::query::{Member, Members, Symbol};

/// So many names that fit are asked for; which one is meant is seen by its full name.
pub(crate) const CANDIDATES: u32 = 20;
/// So many members are told of unless all are asked for.
const MEMBERS: usize = 20;

/// The name, with what it is qualified by, that stands around a place or ends there.
pub(crate) fn name_at(code: &str, TextPosition { line, column }: TextPosition) -> Option<String> {
    let line = code.split('\n').nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let mut units = 1;
    let before = line.char_indices().find(|(_, c)| {
        let is_behind = units >= column;
        units += c.len_utf16() as u32;
        is_behind
    });
    let (before, behind) = line.split_at(before.map_or(line.len(), |(at, _)| at));
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    let begins = before
        .rfind(|c| !is_part(c) && c != '.')
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let ends = behind.find(|c| !is_part(c)).unwrap_or(behind.len());
    let name = format!("{}{}", &before[begins..], &behind[..ends]);
    let name = name.trim_matches('.');
    name.starts_with(|c: char| c.is_alphabetic() || c == '_').then(|| name.to_owned())
}

/// What is said of the symbol that a name means, where one of those found is it. What the session defined comes first.
pub(crate) fn symbol_text(found: &[Symbol], name: &str) -> Option<String> {
    let is_meant = |symbol: &&Symbol| {
        symbol.full_name.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let symbol = found.iter().find(is_meant)?;
    let heading = match &symbol.signature {
        Some(signature) => format!("{} {}: {signature}", symbol.kind, symbol.full_name),
        None => format!("{} {}", symbol.kind, symbol.full_name),
    };
    Some(with_documentation(heading, symbol.documentation.as_deref()))
}

/// What is said of a namespace, a module or a type.
pub(crate) fn members_text(members: &Members, in_detail: bool) -> String {
    let shown = if in_detail { members.members.len() } else { MEMBERS.min(members.members.len()) };
    let heading = format!("{} {}", members.kind, members.name);
    let mut text = with_documentation(heading, members.documentation.as_deref());
    for Member { name, signature, .. } in &members.members[..shown] {
        text.push_str(&match signature {
            Some(signature) => format!("\n  {name}: {signature}"),
            None => format!("\n  {name}"),
        });
    }
    if shown < members.members.len() {
        text.push_str(&format!("\n  … {} more", members.members.len() - shown));
    }
    text
}

fn with_documentation(heading: String, documentation: Option<&str>) -> String {
    match documentation {
        Some(documentation) => format!("{heading}\n\n{documentation}\n"),
        None => heading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(code: &str) -> Option<String> {
        let (before, _) = code.split_once('|').unwrap();
        let line = before.matches('\n').count() as u32 + 1;
        let column = before.rsplit('\n').next().unwrap().encode_utf16().count() as u32 + 1;
        name_at(&code.replacen('|', "", 1), TextPosition { line, column })
    }

    #[test]
    fn the_name_is_the_one_that_stands_there() {
        assert_eq!(at("List.ma|p f xs").as_deref(), Some("List.map"));
        assert_eq!(at("List|.map f xs").as_deref(), Some("List"));
        assert_eq!(at("let x' = 1\nprintfn \"🙂é\" größe|").as_deref(), Some("größe"));
        assert_eq!(at("f(|x')").as_deref(), Some("x'"));
        assert_eq!(at("1 |+ 1"), None);
        assert_eq!(at("12|"), None);
        assert_eq!(name_at("x", TextPosition { line: 7, column: 1 }), None);
        assert_eq!(name_at("x", TextPosition { line: 1, column: 70 }).as_deref(), Some("x"));
    }

    #[test]
    fn of_several_symbols_the_one_that_is_meant_is_told() {
        let symbol = |full_name: &str, signature: Option<&str>| Symbol {
            name: "map".to_owned(),
            full_name: full_name.to_owned(),
            kind: "function".to_owned(),
            signature: signature.map(str::to_owned),
            documentation: Some("Builds.".to_owned()),
            assembly: None,
        };
        let found = [symbol("A.Unlist.map", None), symbol("A.List.map", Some("'a -> 'b"))];
        insta::assert_snapshot!(symbol_text(&found, "List.map").unwrap(), @"
        function A.List.map: 'a -> 'b

        Builds.
        ");
        assert_eq!(symbol_text(&found, "ist.map"), None);
    }

    #[test]
    fn of_many_members_the_first_are_told() {
        let member = |number: usize| Member {
            name: format!("m{number}"),
            kind: "value".to_owned(),
            signature: None,
            documentation: None,
        };
        let members = Members {
            name: "A".to_owned(),
            kind: "module".to_owned(),
            members: (0..MEMBERS + 2).map(member).collect(),
            ..Members::default()
        };
        assert!(members_text(&members, false).ends_with("\n  … 2 more"));
        assert!(members_text(&members, true).ends_with("\n  m21"));
    }
}

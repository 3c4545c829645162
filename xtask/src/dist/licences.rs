//! The file `THIRD-PARTY.txt`: the crates that are part of the program, with their licences.

use std::collections::BTreeMap;

use super::dependencies::{CrateId, Dependency};
use super::facts::Facts;
use super::spdx::is_satisfied;

/// Returns the text of `THIRD-PARTY.txt`. The error names the crates that have no known licence.
pub(crate) fn third_party(
    facts: &Facts,
    dependencies: &BTreeMap<CrateId, Dependency>,
) -> Result<String, Vec<String>> {
    let parts: Vec<_> = dependencies.iter().filter(|(_, one)| one.is_part && !one.is_own).collect();
    let titled = |(name, version): &CrateId| format!("{name} {version}");
    let without: Vec<_> =
        parts.iter().filter(|(_, one)| one.licence.is_none()).map(|(id, _)| titled(id)).collect();
    if !without.is_empty() {
        return Err(without);
    }
    let mut text = format!(
        "{} contains the following {} crates.\nThe list names each with its licence; the texts of the licences follow.\n\n",
        facts.name,
        parts.len()
    );
    let mut crates_of: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (id, dependency) in &parts {
        let licence = dependency.licence.as_deref().unwrap_or_default();
        let note = match dependency.texts.is_empty() {
            true if dependency.authors.is_empty() => " (the crate has no text of it)".to_owned(),
            true => format!(" (the crate has no text of it; by {})", dependency.authors.join(", ")),
            false => String::new(),
        };
        text.push_str(&format!("{}: {licence}{note}\n", titled(id)));
        for (_, licence_text) in &dependency.texts {
            crates_of.entry(licence_text).or_default().push(titled(id));
        }
    }
    for (licence_text, crates) in crates_of {
        let line = "-".repeat(80);
        text.push_str(&format!("\n{line}\n{}\n{line}\n\n{licence_text}", crates.join(", ")));
    }
    Ok(text)
}

/// Returns the crates of the program that no allowed licence covers, each with its own.
pub(crate) fn refused(dependencies: &BTreeMap<CrateId, Dependency>, allowed: &[&str]) -> Vec<String> {
    let parts = dependencies.iter().filter(|(_, one)| one.is_part);
    let licence = |one: &Dependency| one.licence.clone().unwrap_or_default();
    let outside = parts.filter(|(_, one)| !is_satisfied(&licence(one), allowed));
    outside.map(|((name, version), one)| format!("{name} {version} ({})", licence(one))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::facts::sample;
    use super::*;
    use std::collections::BTreeSet;

    fn dependency(licence: Option<&str>, text: &str) -> Dependency {
        Dependency {
            licence: licence.map(str::to_owned),
            checksum: None,
            is_part: true,
            is_own: false,
            uses: BTreeSet::new(),
            authors: vec!["Ada".to_owned()],
            texts: vec![("LICENSE".to_owned(), text.to_owned())],
        }
    }

    #[test]
    fn crates_with_one_text_share_it() {
        let id = |name: &str| (name.to_owned(), "1.0.0".to_owned());
        let of_build = Dependency { is_part: false, ..dependency(None, "other\n") };
        let all = BTreeMap::from([
            (id("a"), dependency(Some("MIT"), "may be used\n")),
            (id("b"), dependency(Some("MIT"), "may be used\n")),
            (id("build"), of_build),
        ]);
        let text = third_party(&sample(), &all).unwrap();
        assert!(text.contains("a 1.0.0: MIT\nb 1.0.0: MIT\n"), "{text}");
        assert!(text.contains("a 1.0.0, b 1.0.0\n"), "{text}");
        assert_eq!((text.matches("may be used").count(), text.matches("other").count()), (1, 0), "{text}");
    }

    #[test]
    fn a_crate_without_a_text_is_listed_with_its_authors() {
        let bare = Dependency { texts: Vec::new(), ..dependency(Some("MIT"), "") };
        let text =
            third_party(&sample(), &BTreeMap::from([(("a".to_owned(), "1.0.0".to_owned()), bare)])).unwrap();
        assert!(text.ends_with("a 1.0.0: MIT (the crate has no text of it; by Ada)\n"), "{text}");
    }

    #[test]
    fn a_part_whose_licence_is_not_allowed_is_refused() {
        let id = |name: &str| (name.to_owned(), "1.0.0".to_owned());
        let of_build = Dependency { is_part: false, ..dependency(Some("GPL-3.0-only"), "") };
        let all = BTreeMap::from([
            (id("a"), dependency(Some("MIT OR GPL-3.0-only"), "")),
            (id("b"), dependency(Some("GPL-3.0-only"), "")),
            (id("build"), of_build),
        ]);
        assert_eq!(refused(&all, &["MIT"]), ["b 1.0.0 (GPL-3.0-only)"]);
    }

    #[test]
    fn a_crate_without_a_licence_is_an_error() {
        let all = BTreeMap::from([(("a".to_owned(), "1.0.0".to_owned()), dependency(None, "text\n"))]);
        assert_eq!(third_party(&sample(), &all), Err(vec!["a 1.0.0".to_owned()]));
    }
}

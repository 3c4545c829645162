//! Which principal somebody is whom others vouch for: an issuer of tokens, or of certificates.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use mainstay_model::{Access, Error, NamePattern, Principal, Rights};
use serde::{Deserialize, Serialize};

/// A name that an issuer gave: `ISSUER:NAME`. The issuer is named as the settings name it.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct IssuedName {
    /// The issuer that vouches for the name.
    pub issuer: String,
    /// The name that it gave.
    pub name: String,
}

impl FromStr for IssuedName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            Some((issuer, name)) if !issuer.is_empty() && !name.is_empty() => {
                Ok(Self { issuer: issuer.to_owned(), name: name.to_owned() })
            }
            _ => Err(Error::InvalidArgument {
                argument: "subject or member".to_owned(),
                reason: format!("`{text}` must be written as `ISSUER:NAME`"),
            }),
        }
    }
}

impl TryFrom<String> for IssuedName {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<IssuedName> for String {
    fn from(name: IssuedName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for IssuedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.issuer, self.name)
    }
}

/// Who the principals are that others vouch for.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    subjects: BTreeMap<IssuedName, Access>,
    groups: BTreeMap<IssuedName, Rights>,
}

impl Identities {
    /// Subjects that are principals of the settings, and groups whose members are principals of their own.
    pub fn new(
        subjects: impl IntoIterator<Item = (IssuedName, Access)>,
        groups: impl IntoIterator<Item = (IssuedName, Rights)>,
    ) -> Self {
        let mut by_group: BTreeMap<IssuedName, Rights> = BTreeMap::new();
        for (group, rights) in groups {
            let rights = match by_group.remove(&group) {
                Some(other) => both(other, rights),
                None => rights,
            };
            by_group.insert(group, rights);
        }
        Self { subjects: subjects.into_iter().collect(), groups: by_group }
    }

    /// Whether it knows nobody.
    pub(crate) fn is_empty(&self) -> bool {
        self.subjects.is_empty() && self.groups.is_empty()
    }

    /// How many groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Whom a subject stands for. One that the settings name has the rights that they give it; any other has those of its groups, and is nobody where it
    /// is in none.
    pub fn access_of(&self, issuer: &str, subject: &str, groups: &[String]) -> Option<Access> {
        let issued = |name: &str| IssuedName { issuer: issuer.to_owned(), name: name.to_owned() };
        if let Some(access) = self.subjects.get(&issued(subject)) {
            return Some(access.clone());
        }
        let rights = groups.iter().filter_map(|group| self.groups.get(&issued(group)).cloned());
        let rights = rights.reduce(both)?;
        Some(Access { principal: principal_of(issuer, subject)?, rights })
    }
}

/// The principal that a subject is which the settings do not name: no other subject has it. A subject that no principal can be called has a hash for its
/// name; the second colon, which no other begins with, tells the two apart.
fn principal_of(issuer: &str, subject: &str) -> Option<Principal> {
    let plain = Principal::new(format!("{issuer}:{subject}")).ok().filter(|_| !subject.starts_with(':'));
    plain.or_else(|| {
        let hash = blake3::hash(subject.as_bytes()).to_hex();
        Principal::new(format!("{issuer}::{}", &hash.as_str()[..32])).ok()
    })
}

/// What somebody may do who may do either.
fn both(one: Rights, other: Rights) -> Rights {
    match (one, other) {
        (Rights::All, _) | (_, Rights::All) => Rights::All,
        (Rights::ReadOnly { see }, Rights::ReadOnly { see: sees }) => {
            Rights::ReadOnly { see: joined(see, sees) }
        }
        (Rights::ReadOnly { see: sees }, Rights::Some { see, drive })
        | (Rights::Some { see, drive }, Rights::ReadOnly { see: sees }) => {
            Rights::Some { see: joined(see, sees), drive }
        }
        (Rights::Some { see, drive }, Rights::Some { see: sees, drive: drives }) => {
            Rights::Some { see: joined(see, sees), drive: joined(drive, drives) }
        }
    }
}

fn joined(mut all: Vec<NamePattern>, more: Vec<NamePattern>) -> Vec<NamePattern> {
    for pattern in more {
        if !all.contains(&pattern) {
            all.push(pattern);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rights(see: &[&str], drive: &[&str]) -> Rights {
        let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Rights::Some { see: patterns(see), drive: patterns(drive) }
    }

    fn known() -> Identities {
        let alice = Access { principal: Principal::new("alice").unwrap(), rights: rights(&[], &["a"]) };
        Identities::new(
            [("corp:alice@example.com".parse().unwrap(), alice)],
            [
                ("corp:dev".parse().unwrap(), rights(&["*"], &["dev-*"])),
                ("corp:ops".parse().unwrap(), rights(&[], &["ops-*"])),
                ("corp:admins".parse().unwrap(), Rights::All),
            ],
        )
    }

    fn of(issuer: &str, subject: &str, groups: &[&str]) -> Option<(String, Rights)> {
        let groups: Vec<_> = groups.iter().map(|group| (*group).to_owned()).collect();
        let access = known().access_of(issuer, subject, &groups)?;
        Some((access.principal.to_string(), access.rights))
    }

    #[test]
    fn a_subject_that_the_settings_name_has_the_rights_that_they_give_it_and_no_more() {
        let alice = Some(("alice".to_owned(), rights(&[], &["a"])));
        assert_eq!(of("corp", "alice@example.com", &[]), alice);
        assert_eq!(of("corp", "alice@example.com", &["admins"]), alice);
        assert_eq!(of("other", "alice@example.com", &["admins"]), None, "another issuer vouches for her");
    }

    #[test]
    fn anybody_else_has_the_rights_of_its_groups_and_is_nobody_without_one() {
        assert_eq!(of("corp", "bob", &[]), None);
        assert_eq!(of("corp", "bob", &["cooks"]), None);
        let joined = rights(&["*"], &["dev-*", "ops-*"]);
        assert_eq!(of("corp", "bob", &["dev", "ops", "cooks"]), Some(("corp:bob".to_owned(), joined)));
        assert_eq!(of("corp", "bob", &["dev", "admins"]), Some(("corp:bob".to_owned(), Rights::All)));
    }

    #[test]
    fn a_group_that_is_named_twice_gives_both() {
        let twice = ["r", "s"].map(|see| ("corp:dev".parse().unwrap(), rights(&[see], &[])));
        let access = Identities::new([], twice).access_of("corp", "bob", &["dev".to_owned()]).unwrap();
        assert_eq!(access.rights, rights(&["r", "s"], &[]));
    }

    proptest! {
        #[test]
        fn no_two_subjects_are_one_principal_and_none_is_the_local_one(
            one in "[a:é]{1,4}|:[0-9a-f]{32}|.{1,80}",
            other in "[a:é]{1,4}|:[0-9a-f]{32}|.{1,80}",
        ) {
            let (first, second) = (principal_of("corp", &one).unwrap(), principal_of("corp", &other).unwrap());
            prop_assert_eq!(first == second, one == other);
            prop_assert!(first.as_str().starts_with("corp:"));
            // The name of a hash cannot be taken by whoever is called so.
            let hashed = principal_of("corp", &format!("é{one}")).unwrap();
            let taken = principal_of("corp", hashed.as_str().strip_prefix("corp:").unwrap()).unwrap();
            prop_assert_ne!(hashed, taken);
        }
    }
}

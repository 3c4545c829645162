//! Versions of SDKs and runtimes, as their folders are named: `3.1.102`, `8.0.100`, `10.0.100-rc.1.25451.107`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The version of an SDK or of a shared runtime. Ordered as semantic versions are: numerically, and a pre-release
/// below its release.
///
/// `Display` gives back exactly the text it was parsed from, so a version names its folder.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SdkVersion {
    major: u32,
    minor: u32,
    patch: u32,
    pre_release: Vec<Identifier>,
}

/// A dot-separated part of a pre-release: numbers sort by value and below words, words by their bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Identifier {
    Number(u64),
    Word(String),
}

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a version like 8.0.100 or 10.0.100-rc.1")]
pub struct InvalidVersion {
    text: String,
}

impl SdkVersion {
    /// A release: `SdkVersion::release(8, 0, 100)` is `8.0.100`.
    pub const fn release(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch, pre_release: Vec::new() }
    }

    /// The first number: 8 of `8.0.100`.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The numbers that all SDKs of one feature band share: 10, 0 and 4 of `10.0.401`.
    pub fn feature_band(&self) -> (u32, u32, u32) {
        (self.major, self.minor, self.patch / 100)
    }

    /// Whether it is one of a preview or a release candidate.
    pub fn is_pre_release(&self) -> bool {
        !self.pre_release.is_empty()
    }

    /// Whether both belong to one release line (`8.0`). An SDK and the runtime it brings always do.
    pub fn same_line(&self, other: &Self) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }

    /// The target framework moniker of this line: `netcoreapp3.1`, `net8.0`.
    pub fn target_framework(&self) -> String {
        let prefix = if self.major < 5 { "netcoreapp" } else { "net" };
        format!("{prefix}{}.{}", self.major, self.minor)
    }
}

impl Ord for SdkVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |v: &Self| (v.major, v.minor, v.patch);
        let release = |v: &Self| v.pre_release.is_empty();
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| release(self).cmp(&release(other)))
            .then_with(|| self.pre_release.cmp(&other.pre_release))
    }
}

impl PartialOrd for SdkVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for SdkVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (index, identifier) in self.pre_release.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Word(word) => f.write_str(word)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SdkVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SdkVersion {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| InvalidVersion { text: text.to_owned() })
    }
}

impl TryFrom<String> for SdkVersion {
    type Error = InvalidVersion;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SdkVersion> for String {
    fn from(version: SdkVersion) -> Self {
        version.to_string()
    }
}

fn parse(text: &str) -> Option<SdkVersion> {
    let (numbers, pre_release) = match text.split_once('-') {
        Some((numbers, rest)) => (numbers, rest.split('.').map(identifier).collect::<Option<_>>()?),
        None => (text, Vec::new()),
    };
    let mut parts = numbers.split('.').map(|part| u32::try_from(number(part)?).ok());
    let version =
        SdkVersion { major: parts.next()??, minor: parts.next()??, patch: parts.next()??, pre_release };
    parts.next().is_none().then_some(version)
}

fn identifier(part: &str) -> Option<Identifier> {
    let wellformed = !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    wellformed.then(|| number(part).map_or_else(|| Identifier::Word(part.to_owned()), Identifier::Number))
}

/// Only numbers written the one usual way, so that they are displayed as they were read.
fn number(part: &str) -> Option<u64> {
    let usual = part == "0" || (!part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()));
    if usual { part.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> SdkVersion {
        text.parse().unwrap()
    }

    #[test]
    fn versions_order_by_number_and_pre_releases_stand_below_their_release() {
        let ascending = [
            "3.1.102",
            "8.0.99",
            "8.0.100",
            "9.0.300",
            "10.0.100-preview.2",
            "10.0.100-preview.10.25",
            "10.0.100-rc.1.25451.107",
            "10.0.100",
        ];
        assert!(ascending.map(version).is_sorted());
    }

    #[test]
    fn a_text_that_is_no_version_is_refused() {
        for text in
            ["", "8", "8.0", "8.0.1.2", "8.0.x", "08.0.1", "8.0.100-", "8.0.1-a..b", "NuGetFallbackFolder"]
        {
            assert!(text.parse::<SdkVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn target_frameworks_follow_the_naming_of_their_time() {
        assert_eq!(version("3.1.102").target_framework(), "netcoreapp3.1");
        assert_eq!(version("10.0.100").target_framework(), "net10.0");
    }

    fn any_version() -> impl Strategy<Value = SdkVersion> {
        let words = proptest::collection::vec("[0-9A-Za-z-]{1,6}", 0..4);
        (any::<[u8; 3]>(), words).prop_map(|([major, minor, patch], words)| {
            let pre_release = words.join(".");
            let dash = if words.is_empty() { "" } else { "-" };
            version(&format!("{major}.{minor}.{patch}{dash}{pre_release}"))
        })
    }

    proptest! {
        #[test]
        fn parsing_any_text_returns_and_what_it_accepts_is_displayed_unchanged(text in ".{0,24}|[0-9.a-]{0,24}") {
            if let Ok(version) = text.parse::<SdkVersion>() {
                prop_assert_eq!(version.to_string(), text);
            }
        }

        #[test]
        fn the_order_is_total_and_agrees_with_equality(a in any_version(), b in any_version(), c in any_version()) {
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a == b, a.cmp(&b) == Ordering::Equal);
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
        }

        #[test]
        fn a_version_survives_its_json(version in any_version()) {
            let json = serde_json::to_string(&version).unwrap();
            prop_assert_eq!(serde_json::from_str::<SdkVersion>(&json).unwrap(), version);
        }
    }
}

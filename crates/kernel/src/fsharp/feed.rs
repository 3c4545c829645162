//! The release metadata in which Microsoft says which SDKs there are and where: `releases-index.json` lists channels, the `releases.json`
//! of a channel its SDKs and their archives. Pure; `microsoft` fetches both, and what they name.

use std::array;

use serde::Deserialize;

use super::version::SdkVersion;

/// Where the metadata lies unless the configuration says otherwise.
pub const FEED: &str = "https://builds.dotnet.microsoft.com/dotnet/release-metadata";
/// How the name of an archive ends that `tar` unpacks.
const ARCHIVE: &str = ".tar.gz";
/// The hexadecimal digits of a SHA-512.
const HASH_DIGITS: usize = 128;

/// Where the index of a feed lies.
pub(super) fn index_of(feed: &str) -> String {
    format!("{}/releases-index.json", feed.trim_end_matches('/'))
}

/// Why the metadata leads to no SDK.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// It is not what Microsoft's feed has.
    #[error("{address} is not release metadata of .NET: {reason}")]
    Unreadable {
        /// Where it was read.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No channel is a long-term release that is supported.
    #[error("{address} lists no long-term release that is supported")]
    NoChannel {
        /// Where the channels were read.
        address: String,
    },
    /// The SDK that a channel calls its latest is not among its releases.
    #[error("{address} does not list the SDK {version}, the latest of its channel")]
    NoSdk {
        /// Where the releases were read.
        address: String,
        /// The version of the SDK that the feed names.
        version: SdkVersion,
    },
    /// There is no archive for this machine.
    #[error("the SDK {version} has no archive for {rid}, which this machine is")]
    NoArchive {
        /// The version of the SDK that the feed names.
        version: SdkVersion,
        /// The machine, as .NET names it.
        rid: String,
    },
}

/// A channel: where its releases are listed, and its latest SDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) releases: String,
    pub(super) latest_sdk: SdkVersion,
}

/// The archive of one SDK for one kind of machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Archive {
    pub(super) version: SdkVersion,
    pub(super) name: String,
    pub(super) address: String,
    /// The SHA-512 that the archive must have.
    pub(super) hash: [u8; HASH_DIGITS / 2],
}

#[derive(Deserialize)]
struct Index {
    #[serde(rename = "releases-index")]
    channels: Vec<IndexEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct IndexEntry {
    #[serde(default)]
    release_type: String,
    #[serde(default)]
    support_phase: String,
    latest_sdk: String,
    #[serde(rename = "releases.json")]
    releases: String,
}

#[derive(Deserialize)]
struct Releases {
    releases: Vec<Release>,
}

#[derive(Deserialize)]
struct Release {
    #[serde(default)]
    sdk: Option<ReleasedSdk>,
    #[serde(default)]
    sdks: Option<Vec<ReleasedSdk>>,
}

#[derive(Deserialize)]
struct ReleasedSdk {
    /// A text: of releases of long ago it is no version.
    version: String,
    #[serde(default)]
    files: Vec<ReleasedFile>,
}

#[derive(Deserialize)]
struct ReleasedFile {
    name: String,
    #[serde(default)]
    rid: Option<String>,
    url: String,
    #[serde(default)]
    hash: String,
}

impl Channel {
    /// The newest channel of long-term releases that Microsoft supports, in the index `text` from `address`.
    pub(super) fn current(address: &str, text: &[u8]) -> Result<Self, FeedError> {
        let index: Index = read(address, text)?;
        let is_supported = |entry: &IndexEntry| {
            entry.release_type == "lts" && matches!(entry.support_phase.as_str(), "active" | "maintenance")
        };
        let channel = |IndexEntry { releases, latest_sdk, .. }: IndexEntry| {
            Some(Self { releases, latest_sdk: latest_sdk.parse().ok()? })
        };
        let channels = index.channels.into_iter().filter(is_supported).filter_map(channel);
        channels
            .max_by(|a, b| a.latest_sdk.cmp(&b.latest_sdk))
            .ok_or_else(|| FeedError::NoChannel { address: address.to_owned() })
    }

    /// The archive of its latest SDK for machines of this `rid`, in the list of its releases.
    pub(super) fn archive(&self, text: &[u8], rid: &str) -> Result<Archive, FeedError> {
        let (address, version) = (&self.releases, &self.latest_sdk);
        let Releases { releases } = read(address, text)?;
        let mut sdks = releases
            .into_iter()
            .flat_map(|release| release.sdk.into_iter().chain(release.sdks.into_iter().flatten()));
        let sdk = sdks
            .find(|sdk| sdk.version == version.to_string())
            .ok_or_else(|| FeedError::NoSdk { address: address.clone(), version: version.clone() })?;
        let is_archive =
            |file: &ReleasedFile| file.rid.as_deref() == Some(rid) && file.name.ends_with(ARCHIVE);
        let file = sdk
            .files
            .into_iter()
            .find(is_archive)
            .ok_or_else(|| FeedError::NoArchive { version: version.clone(), rid: rid.to_owned() })?;
        let unreadable = |reason: String| FeedError::Unreadable { address: address.clone(), reason };
        if file.name.contains(['/', '\\']) {
            return Err(unreadable(format!("`{}` is no name of a file", file.name)));
        }
        let hash = bytes_of(&file.hash)
            .ok_or_else(|| unreadable(format!("{} has no SHA-512 as its hash", file.name)))?;
        Ok(Archive { version: version.clone(), name: file.name, address: file.url, hash })
    }
}

fn read<'a, T: Deserialize<'a>>(address: &str, text: &'a [u8]) -> Result<T, FeedError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    serde_json::from_slice(text)
        .map_err(|error| FeedError::Unreadable { address: address.to_owned(), reason: error.to_string() })
}

/// The bytes that hexadecimal digits of either case stand for.
fn bytes_of(digits: &str) -> Option<[u8; HASH_DIGITS / 2]> {
    let value = |digit: char| u8::try_from(digit.to_digit(16)?).ok();
    let values: Vec<u8> = digits.chars().map(value).collect::<Option<_>>()?;
    let values: [u8; HASH_DIGITS] = values.try_into().ok()?;
    Some(array::from_fn(|at| (values[2 * at] << 4) | values[2 * at + 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = r#"{ "$schema": "https://json.schemastore.org/dotnet-releases-index.json", "releases-index": [
        { "channel-version": "11.0", "latest-sdk": "11.0.100-rc.1.25451.107", "support-phase": "go-live", "release-type": "lts", "releases.json": "https://feed/11.0/releases.json" },
        { "channel-version": "9.0", "latest-sdk": "9.0.308", "support-phase": "active", "release-type": "sts", "releases.json": "https://feed/9.0/releases.json" },
        { "channel-version": "8.0", "latest-sdk": "8.0.416", "support-phase": "maintenance", "release-type": "lts", "releases.json": "https://feed/8.0/releases.json" },
        { "channel-version": "10.0", "latest-sdk": "10.0.101", "support-phase": "active", "release-type": "lts", "releases.json": "https://feed/10.0/releases.json" },
        { "channel-version": "6.0", "latest-sdk": "6.0.428", "support-phase": "eol", "release-type": "lts", "releases.json": "https://feed/6.0/releases.json" }
    ] }"#;

    fn releases() -> String {
        let hash = "aB".repeat(64);
        let file = |name: &str, rid: &str| {
            format!(
                r#"{{ "name": "{name}", "rid": "{rid}", "url": "https://cdn/{rid}/{name}", "hash": "{hash}" }}"#
            )
        };
        let files = [
            file("dotnet-sdk-osx-arm64.pkg", "osx-arm64"),
            file("dotnet-sdk-osx-arm64.tar.gz", "osx-arm64"),
            file("dotnet-sdk-linux-x64.tar.gz", "linux-x64"),
        ];
        let files = files.join(",");
        format!(
            r#"{{ "channel-version": "10.0", "latest-sdk": "10.0.101", "releases": [
                {{ "release-version": "10.0.2", "sdk": null }},
                {{ "release-version": "10.0.1", "sdk": {{ "version": "10.0.100", "files": [] }},
                   "sdks": [ {{ "version": "10.0.101", "files": [{files}] }} ] }} ] }}"#
        )
    }

    #[test]
    fn the_newest_supported_channel_of_long_term_releases_is_taken() {
        let channel = Channel::current("https://feed", INDEX.as_bytes()).unwrap();
        assert_eq!(channel.releases, "https://feed/10.0/releases.json");
        let gone = INDEX.replace("active", "eol").replace("maintenance", "eol");
        let error = Channel::current("https://feed", gone.as_bytes()).unwrap_err();
        assert_eq!(error, FeedError::NoChannel { address: "https://feed".to_owned() });
    }

    #[test]
    fn the_archive_is_that_of_the_latest_sdk_for_the_machine() {
        let channel = Channel::current("https://feed", INDEX.as_bytes()).unwrap();
        let archive = channel.archive(releases().as_bytes(), "osx-arm64").unwrap();
        let expected = Archive {
            version: SdkVersion::release(10, 0, 101),
            name: "dotnet-sdk-osx-arm64.tar.gz".to_owned(),
            address: "https://cdn/osx-arm64/dotnet-sdk-osx-arm64.tar.gz".to_owned(),
            hash: [0xab; 64],
        };
        assert_eq!(archive, expected);
    }

    #[test]
    fn metadata_that_leads_nowhere_is_told_of() {
        let channel = Channel::current("https://feed", INDEX.as_bytes()).unwrap();
        let message = |text: String, rid| channel.archive(text.as_bytes(), rid).unwrap_err().to_string();
        assert_eq!(
            message(releases(), "linux-s390x"),
            "the SDK 10.0.101 has no archive for linux-s390x, which this machine is"
        );
        assert!(
            message(releases().replace("10.0.101", "10.0.102"), "linux-x64")
                .contains("does not list the SDK 10.0.101")
        );
        assert!(
            message("<html>".to_owned(), "linux-x64")
                .starts_with("https://feed/10.0/releases.json is not release")
        );
        let short = releases().replace(&"aB".repeat(64), "aB");
        assert!(
            message(short, "linux-x64").ends_with("dotnet-sdk-linux-x64.tar.gz has no SHA-512 as its hash")
        );
        let elsewhere = releases().replace("dotnet-sdk-linux", "../dotnet-sdk-linux");
        assert!(message(elsewhere, "linux-x64").ends_with("is no name of a file"));
    }
}

//! What installing and building tell of their progress. Data only: the caller decides what a person sees.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::version::SdkVersion;

/// Receives progress as it happens. It is called from the task that does the work, so it must not block.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// One step of installing an SDK or building the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Another process does the same work; its result will be used.
    Waiting,
    /// An SDK is being fetched; repeated about once a second.
    Installing {
        /// The source of the download.
        source: Source,
        /// Time since this source was first tried.
        elapsed: Duration,
        /// How many bytes are on disk so far. The total is not known.
        bytes: u64,
    },
    /// An SDK that was fetched is being unpacked; repeated about once a second.
    Unpacking {
        /// The version of the SDK.
        version: SdkVersion,
        /// Time since that began.
        elapsed: Duration,
    },
    /// A source could not provide an SDK; the next one is tried.
    FellBack {
        /// The source that failed.
        source: Source,
        /// The reason for the fallback, for people.
        reason: String,
    },
    /// An SDK is in place.
    Installed {
        /// The version of the SDK.
        version: SdkVersion,
        /// The folder that holds its `dotnet` executable.
        root: PathBuf,
    },
    /// The worker is being compiled; repeated about once a second.
    Building {
        /// The SDK that compiles it.
        sdk: SdkVersion,
        /// Time since the compiler was started.
        elapsed: Duration,
    },
    /// The worker is compiled.
    Built {
        /// The SDK that compiled it.
        sdk: SdkVersion,
        /// How long it took.
        elapsed: Duration,
    },
}

/// Where an SDK can be had from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The feed of Microsoft's release metadata, or the one that the configuration names in its place.
    Microsoft,
    /// The npm registry that the user's npm is configured for.
    Npm,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Microsoft => "Microsoft's feed",
            Self::Npm => "npm",
        })
    }
}

//! Target frameworks: which of those that a project has a runtime can load, and what the compiler is told of them.

use std::cmp::Reverse;

use crate::fsharp::version::SdkVersion;

/// A target framework that a .NET runtime may load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Framework {
    /// A framework such as `netstandard2.0`.
    Standard(u8, u8),
    /// A framework such as `netcoreapp3.1` or `net8.0`.
    App(u8, u8),
}

impl Framework {
    /// Reads a name such as `net8.0`. .NET Framework (`net472`) and those of one platform (`net8.0-windows`) are not among
    /// what a worker can load.
    pub(super) fn of(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        let numbers = |rest: &str| {
            let (major, minor) = rest.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        if let Some(rest) = name.strip_prefix("netstandard") {
            return numbers(rest).map(|(major, minor)| Self::Standard(major, minor));
        }
        let rest = name.strip_prefix("netcoreapp").or_else(|| name.strip_prefix("net"))?;
        numbers(rest).map(|(major, minor)| Self::App(major, minor))
    }

    /// Whether a runtime of this version can load what is compiled for it.
    pub(super) fn runs_on(self, runtime: &SdkVersion) -> bool {
        match self {
            Self::App(major, minor) => {
                let first = SdkVersion::release(major.into(), minor.into(), 0);
                first.same_line(runtime) || first < *runtime
            }
            Self::Standard(..) => true,
        }
    }

    /// What the SDK defines for code that is compiled for it.
    pub(super) fn defines(self) -> Vec<String> {
        match self {
            Self::Standard(major, minor) => {
                vec!["NETSTANDARD".to_owned(), format!("NETSTANDARD{major}_{minor}")]
            }
            Self::App(major, minor) if major < 5 => {
                vec!["NETCOREAPP".to_owned(), format!("NETCOREAPP{major}_{minor}")]
            }
            Self::App(major, minor) => {
                let mut defines =
                    vec!["NETCOREAPP".to_owned(), "NET".to_owned(), format!("NET{major}_{minor}")];
                defines.extend((5..=major).map(|older| format!("NET{older}_0_OR_GREATER")));
                defines
            }
        }
    }
}

/// The newest of these that the runtime can load.
pub(super) fn choose<'a>(names: impl Iterator<Item = &'a str>, runtime: &SdkVersion) -> Option<&'a str> {
    let known = names.filter_map(|name| Framework::of(name).map(|framework| (framework, name)));
    known
        .filter(|(framework, _)| framework.runs_on(runtime))
        .min_by_key(|(known, _)| Reverse(*known))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_that_the_runtime_can_load_is_chosen() {
        let chosen = |names: &'static str, runtime: &str| choose(names.split(';'), &runtime.parse().unwrap());
        assert_eq!(chosen("netstandard2.0;netcoreapp3.1;net8.0", "3.1.2"), Some("netcoreapp3.1"));
        assert_eq!(chosen("netstandard2.0;netcoreapp3.1;net8.0", "8.0.11"), Some("net8.0"));
        assert_eq!(chosen("netstandard2.1;net472;net8.0-windows", "9.0.0"), Some("netstandard2.1"));
        assert_eq!(chosen("net8.0", "3.1.2"), None);
        assert_eq!(chosen("net10.0", "10.0.0-rc.1"), Some("net10.0"));
        assert_eq!(chosen("", "8.0.0"), None);
    }

    #[test]
    fn the_compiler_is_told_what_the_sdk_defines() {
        let defines = |name| Framework::of(name).unwrap().defines().join(" ");
        assert_eq!(defines("netcoreapp3.1"), "NETCOREAPP NETCOREAPP3_1");
        assert_eq!(defines("net6.0"), "NETCOREAPP NET NET6_0 NET5_0_OR_GREATER NET6_0_OR_GREATER");
        assert_eq!(defines("netstandard2.0"), "NETSTANDARD NETSTANDARD2_0");
    }
}

//! The user's settings, `config.toml` in Mainstay's home. Every one has a default.

use std::path::PathBuf;

use mainstay_model::{Error, Limits};
use serde::Deserialize;

use crate::home::Home;

/// The port the daemon listens on unless told otherwise.
pub(crate) const DEFAULT_PORT: u16 = 37749;

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Config {
    /// Of the daemon.
    pub(crate) daemon: DaemonConfig,
    /// Of F# kernels.
    pub(crate) fsharp: FsharpConfig,
    /// What is accepted and kept at most.
    pub(crate) limits: Limits,
}

/// Settings of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct DaemonConfig {
    /// The loopback port; 0 takes any free one.
    pub(crate) port: Option<u16>,
}

/// Settings of F# kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FsharpConfig {
    /// The folder with the `dotnet` to use.
    pub(crate) dotnet: Option<PathBuf>,
}

impl Config {
    /// Reads the settings; the defaults where there is no file.
    pub(crate) fn load(home: &Home) -> Result<Self, Error> {
        let file = home.config_file();
        let invalid =
            |reason: String| Error::InvalidArgument { argument: file.display().to_string(), reason };
        match std::fs::read_to_string(&file) {
            Ok(text) => toml::from_str(&text).map_err(|error| invalid(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(invalid(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_named_is_taken_and_the_others_keep_their_defaults() {
        let config: Config = toml::from_str("[limits]\ncode-bytes = 10\n[daemon]\nport = 0\n").unwrap();
        assert_eq!(config.limits, Limits { code_bytes: 10, ..Limits::default() });
        assert_eq!(config.daemon.port, Some(0));
    }

    #[test]
    fn a_misspelt_setting_is_an_error() {
        assert!(toml::from_str::<Config>("[limits]\ncode-byte = 10\n").is_err());
    }
}

//! The runtime's doors for debuggers and tracers. Each .NET process opens a socket and two pipes for them among the temporary
//! files, and a process that is killed leaves them there. Workers are killed often, so theirs stay shut unless the user says
//! otherwise.

use std::ffi::OsString;

/// The runtime's switch: .NET before 6 knows the first name only, later ones prefer the second.
pub const SWITCHES: [&str; 2] = ["COMPlus_EnableDiagnostics", "DOTNET_EnableDiagnostics"];

/// What shuts the doors; nothing where the inherited environment has the switch already, under either name.
pub(super) fn shut(inherited: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
    if SWITCHES.iter().any(|switch| inherited(switch).is_some()) {
        return Vec::new();
    }
    SWITCHES.map(|switch| (switch.into(), "0".into())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doors_are_shut_unless_the_user_has_said_something() {
        let shut_by_us = SWITCHES.map(|switch| (switch.into(), "0".into())).to_vec();
        assert_eq!(shut(|_| None), shut_by_us);
        for set in SWITCHES {
            assert_eq!(shut(|name| (name == set).then(|| "1".into())), []);
        }
    }
}

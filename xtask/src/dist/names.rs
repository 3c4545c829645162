//! What the program is called in each registry: where its own name belongs to somebody else, its packages have another one.
//!
//! The program is called the same everywhere. `Installation` of the crate `mainstay-home` names the packages too, for people who have
//! installed one; a test here compares the two.

/// The name on NuGet, also the beginning of the names of the packages for platforms.
pub(crate) const NUGET: &str = "mainstay";

/// The name on PyPI, where `mainstay` belongs to others.
pub(crate) const PYPI: &str = "mainstay-sessions";

/// The name on npm, where `mainstay` belongs to others. It is also the scope of the packages for platforms.
pub(crate) const NPM: &str = "mainstay-sessions";

/// The publisher and the name in winget's repository.
pub(crate) const WINGET: &str = "mainstay.mainstay";

/// Returns a name as Python's installers write it in file names.
pub(crate) fn python_file_name(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What tells people which command replaces or removes the package that they have.
    const INSTALLATION: &str = include_str!("../../../crates/home/src/installation.rs");
    const GUIDE: &str = include_str!("../../../docs/how-to/install.md");

    #[test]
    fn the_program_and_the_guide_name_the_packages_as_they_are_made() {
        let commands = [
            format!("dotnet tool uninstall -g {NUGET}"),
            format!("uv tool uninstall {PYPI}"),
            format!("npm uninstall -g {NPM} @{NPM}/PLATFORM"),
        ];
        for command in commands {
            assert!(INSTALLATION.contains(&format!("\"{command}\"")), "{command}");
            assert!(GUIDE.contains(&format!("`{command}`")), "{command}");
        }
    }
}

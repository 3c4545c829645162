//! How this program was installed, by where it lies: what gets a newer version of it, and what takes it away.

use std::path::{Component, Path, PathBuf};

/// What has installed the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The name of the package manager, for people; none where nothing is known of it.
    pub by: Option<&'static str>,
    /// The command that puts a newer version in its place, or what to do. `dist` stands for the folder with the newer packages: of no registry
    /// is it sure that what it calls so is this.
    pub upgrade: String,
    /// The command that takes the program away, or what to do.
    pub uninstall: String,
}

/// The scope of npm's packages for platforms. In commands, `PLATFORM` stands for the name of the one that is installed.
const SCOPE: &str = "@mainstay-sessions";
const PLATFORM: &str = "PLATFORM";

/// How Debian calls the architecture of this program.
const DEBIAN_ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

/// What the script in the archive puts below its prefix, and Debian's package does not.
const OF_ARCHIVE: &str = "share/doc/mainstay/THIRD-PARTY.txt";

/// How one package manager is recognised, and what it is told.
struct Rule {
    by: &'static str,
    /// Names of folders that stand in the program's path one behind the other.
    folders: &'static [&'static str],
    upgrade: &'static str,
    uninstall: &'static str,
}

const fn rule(
    by: &'static str,
    folders: &'static [&'static str],
    upgrade: &'static str,
    uninstall: &'static str,
) -> Rule {
    Rule { by, folders, upgrade, uninstall }
}

/// The first that fits counts.
const RULES: &[Rule] = &[
    rule(
        "dotnet tool",
        &[".dotnet", "tools", ".store"],
        "dotnet tool update -g mainstay --source dist",
        "dotnet tool uninstall -g mainstay",
    ),
    rule(
        "dnx",
        &[".nuget", "packages"],
        "dnx mainstay --source dist",
        "nothing is installed: `dnx` keeps it among the packages of NuGet",
    ),
    rule(
        "uv",
        &["uv", "tools", "mainstay-sessions"],
        "uv tool install --upgrade --no-index --find-links dist mainstay-sessions",
        "uv tool uninstall mainstay-sessions",
    ),
    rule(
        "uvx",
        &["uv", "archive-v0"],
        "uvx --no-index --find-links dist mainstay-sessions",
        "nothing is installed: `uv cache clean mainstay-sessions` empties what uvx keeps",
    ),
    rule(
        "pipx",
        &["pipx", "venvs", "mainstay-sessions"],
        "pipx install --force --pip-args='--no-index --find-links dist' mainstay-sessions",
        "pipx uninstall mainstay-sessions",
    ),
    rule(
        "npx",
        &["_npx"],
        "npx --package ./dist/mainstay-sessions-VERSION.tgz --package ./dist/mainstay-sessions-PLATFORM-VERSION.tgz mainstay",
        "nothing is installed: `npm cache clean --force` empties what npx keeps",
    ),
    rule(
        "npm",
        &["lib", "node_modules"],
        "npm install -g ./dist/mainstay-sessions-VERSION.tgz ./dist/mainstay-sessions-PLATFORM-VERSION.tgz",
        "npm uninstall -g mainstay-sessions @mainstay-sessions/PLATFORM",
    ),
    rule(
        "npm",
        &["node_modules"],
        "npm install ./dist/mainstay-sessions-VERSION.tgz ./dist/mainstay-sessions-PLATFORM-VERSION.tgz",
        "npm uninstall mainstay-sessions @mainstay-sessions/PLATFORM",
    ),
    rule("Homebrew", &["Cellar", "mainstay"], "brew upgrade mainstay", "brew uninstall mainstay"),
    rule("cargo", &[".cargo", "bin"], "cargo install --path crates/mainstay", "cargo uninstall mainstay"),
];

impl Installation {
    /// Tells it from the program's path, links resolved. `is_file` says of a path whether a file is there.
    pub fn of(program: &Path, is_file: impl Fn(&Path) -> bool) -> Self {
        let names: Vec<_> = program
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let found =
            RULES.iter().find(|rule| names.windows(rule.folders.len()).any(|part| part == rule.folders));
        if let Some(Rule { by, upgrade, uninstall, .. }) = found {
            let platform = behind(&names, SCOPE).unwrap_or(PLATFORM);
            let [upgrade, uninstall] =
                [upgrade, uninstall].map(|command| command.replace(PLATFORM, platform));
            return Self { by: Some(by), upgrade, uninstall };
        }
        if let Some(tools) = before(program, ".store") {
            let place = format!("--tool-path {} mainstay", tools.display());
            return Self {
                by: Some("dotnet tool"),
                upgrade: format!("dotnet tool update {place} --source dist"),
                uninstall: format!("dotnet tool uninstall {place}"),
            };
        }
        if let Some(environment) =
            program.ancestors().nth(2).filter(|folder| is_file(&folder.join("pyvenv.cfg")))
        {
            let pip = format!("{} -m pip", environment.join("bin/python").display());
            return Self {
                by: Some("pip"),
                upgrade: format!("{pip} install --upgrade --no-index --find-links dist mainstay-sessions"),
                uninstall: format!("{pip} uninstall mainstay-sessions"),
            };
        }
        if program == Path::new("/usr/bin/mainstay") && is_file(Path::new("/var/lib/dpkg/info/mainstay.list"))
        {
            return Self {
                by: Some("apt"),
                upgrade: format!("sudo apt install ./dist/mainstay_VERSION_{DEBIAN_ARCHITECTURE}.deb"),
                uninstall: "sudo apt remove mainstay".to_owned(),
            };
        }
        if let Some(prefix) = program.ancestors().nth(2).filter(|prefix| is_file(&prefix.join(OF_ARCHIVE))) {
            let command = format!("./install.sh --prefix {}", prefix.display());
            return Self {
                by: Some("install.sh"),
                upgrade: format!("{command}, in the folder of the newer archive"),
                uninstall: format!("{command} --uninstall, in the folder of the archive"),
            };
        }
        Self {
            by: None,
            upgrade: format!("put the newer program in the place of {}", program.display()),
            uninstall: format!("rm {}", program.display()),
        }
    }

    /// That of the program that runs.
    ///
    /// # Errors
    /// The system does not say which program this is.
    pub fn own() -> std::io::Result<Self> {
        let program = crate::program_file()?;
        let program = program.canonicalize().unwrap_or(program);
        Ok(Self::of(&program, Path::is_file))
    }
}

/// The name behind another in a path.
fn behind<'a>(names: &[&'a str], name: &str) -> Option<&'a str> {
    let position = names.iter().position(|found| *found == name)?;
    names.get(position + 1).copied()
}

/// The part of a path before a folder of this name.
fn before(path: &Path, name: &str) -> Option<PathBuf> {
    path.ancestors()
        .find(|folder| folder.file_name().is_some_and(|found| found == name))?
        .parent()
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(program: &str) -> Installation {
        let there = [
            "/home/ada/shop/.venv/pyvenv.cfg",
            "/var/lib/dpkg/info/mainstay.list",
            "/home/ada/.local/share/doc/mainstay/THIRD-PARTY.txt",
        ];
        Installation::of(Path::new(program), |path| there.iter().any(|file| Path::new(file) == path))
    }

    #[test]
    fn each_package_manager_is_told_from_the_programs_path() {
        let store = ".store/mainstay.linux-x64/0.1.0/mainstay.linux-x64/0.1.0/tools/any/linux-x64/mainstay";
        let debian = format!("sudo apt install ./dist/mainstay_VERSION_{DEBIAN_ARCHITECTURE}.deb");
        let table = [
            (format!("/home/ada/.dotnet/tools/{store}"), "dotnet tool update -g mainstay --source dist"),
            (format!("/opt/bin/{store}"), "dotnet tool update --tool-path /opt/bin mainstay --source dist"),
            (
                "/home/ada/.nuget/packages/mainstay.linux-x64/0.1.0/tools/any/linux-x64/mainstay".to_owned(),
                "dnx mainstay --source dist",
            ),
            (
                "/home/ada/.local/share/uv/tools/mainstay-sessions/bin/mainstay".to_owned(),
                "uv tool install --upgrade --no-index --find-links dist mainstay-sessions",
            ),
            (
                "/home/ada/.cache/uv/archive-v0/Xy/bin/mainstay".to_owned(),
                "uvx --no-index --find-links dist mainstay-sessions",
            ),
            (
                "/home/ada/.local/share/pipx/venvs/mainstay-sessions/bin/mainstay".to_owned(),
                "pipx install --force --pip-args='--no-index --find-links dist' mainstay-sessions",
            ),
            (
                "/home/ada/shop/.venv/bin/mainstay".to_owned(),
                "/home/ada/shop/.venv/bin/python -m pip install --upgrade --no-index --find-links dist mainstay-sessions",
            ),
            (
                "/usr/local/lib/node_modules/mainstay-sessions/node_modules/@mainstay-sessions/linux-x64/bin/mainstay"
                    .to_owned(),
                "npm install -g ./dist/mainstay-sessions-VERSION.tgz ./dist/mainstay-sessions-linux-x64-VERSION.tgz",
            ),
            (
                "/home/ada/shop/node_modules/@mainstay-sessions/linux-x64/bin/mainstay".to_owned(),
                "npm install ./dist/mainstay-sessions-VERSION.tgz ./dist/mainstay-sessions-linux-x64-VERSION.tgz",
            ),
            (
                "/home/ada/.npm/_npx/1f/node_modules/@mainstay-sessions/linux-x64/bin/mainstay".to_owned(),
                "npx --package ./dist/mainstay-sessions-VERSION.tgz --package ./dist/mainstay-sessions-linux-x64-VERSION.tgz mainstay",
            ),
            ("/opt/homebrew/Cellar/mainstay/0.1.0/bin/mainstay".to_owned(), "brew upgrade mainstay"),
            ("/usr/bin/mainstay".to_owned(), debian.as_str()),
            ("/home/ada/.cargo/bin/mainstay".to_owned(), "cargo install --path crates/mainstay"),
            (
                "/home/ada/.local/bin/mainstay".to_owned(),
                "./install.sh --prefix /home/ada/.local, in the folder of the newer archive",
            ),
            (
                "/usr/local/bin/mainstay".to_owned(),
                "put the newer program in the place of /usr/local/bin/mainstay",
            ),
        ];
        for (program, upgrade) in table {
            assert_eq!(of(&program).upgrade, upgrade, "{program}");
        }
        assert_eq!(of("/usr/local/bin/mainstay").by, None);
    }

    #[test]
    fn the_commands_of_npm_name_the_package_of_the_platform_that_is_there() {
        let mac = of("/usr/local/lib/node_modules/@mainstay-sessions/darwin-arm64/bin/mainstay");
        assert_eq!(
            (mac.upgrade.as_str(), mac.uninstall.as_str()),
            (
                "npm install -g ./dist/mainstay-sessions-VERSION.tgz ./dist/mainstay-sessions-darwin-arm64-VERSION.tgz",
                "npm uninstall -g mainstay-sessions @mainstay-sessions/darwin-arm64"
            )
        );
        let elsewhere = of("/home/ada/shop/node_modules/other/mainstay");
        assert_eq!(elsewhere.uninstall, "npm uninstall mainstay-sessions @mainstay-sessions/PLATFORM");
    }
}

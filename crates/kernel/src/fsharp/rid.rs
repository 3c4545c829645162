//! The runtime identifier (RID): what .NET calls a kind of machine, such as `linux-musl-x64`.

use std::env;
use std::fs;
use std::path::Path;

/// What .NET calls machines like this one.
pub(super) fn this_machine() -> String {
    rid(env::consts::OS, env::consts::ARCH, is_musl(Path::new("/")))
}

fn rid(os: &str, architecture: &str, is_musl: bool) -> String {
    let system = match os {
        "macos" => "osx",
        "linux" if is_musl => "linux-musl",
        other => other,
    };
    let architecture = match architecture {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{architecture}")
}

/// Whether programs of the system whose files begin at `root` are loaded by musl. Some have its loader beside that of glibc.
fn is_musl(root: &Path) -> bool {
    let has = |folder: &str, loader: &str| {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(loader))
    };
    has("lib", "ld-musl-") && !["lib", "lib64"].iter().any(|folder| has(folder, "ld-linux-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::Tree;

    #[test]
    fn a_machine_is_named_as_dotnet_names_it() {
        let names = [
            (("linux", "x86_64", false), "linux-x64"),
            (("linux", "aarch64", true), "linux-musl-arm64"),
            (("macos", "aarch64", false), "osx-arm64"),
        ];
        for ((os, architecture, is_musl), name) in names {
            assert_eq!(rid(os, architecture, is_musl), name);
        }
    }

    #[test]
    fn the_loader_of_musl_beside_that_of_glibc_says_nothing() {
        let tree = Tree::of("lib/ld-musl-x86_64.so.1");
        assert!(is_musl(&tree.root()));
        tree.write("lib64/ld-linux-x86-64.so.2", "");
        assert!(!is_musl(&tree.root()));
    }
}

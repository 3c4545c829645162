//! Fake SDK trees for tests: one file a line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::discover::Search;

/// The parts of SDK 3.1 that are looked at.
pub(crate) const NET_3_1: &str = "
    dotnet
    sdk/3.1.102/FSharp/fsc.exe
    sdk/3.1.102/FSharp/FSharp.Core.dll
    sdk/3.1.102/FSharp/FSharp.Compiler.Private.dll
    sdk/3.1.102/FSharp/FSharp.Compiler.Interactive.Settings.dll
    shared/Microsoft.NETCore.App/3.1.2/System.Runtime.dll
    shared/Microsoft.NETCore.App/3.1.2/mscorlib.dll
    shared/Microsoft.NETCore.App/3.1.2/libcoreclr.so
    packs/Microsoft.NETCore.App.Ref/3.1.0/ref/netcoreapp3.1/System.Runtime.dll
    packs/Microsoft.NETCore.App.Ref/3.1.0/ref/netcoreapp3.1/System.Runtime.xml
";

/// The parts of SDK 8 that are looked at, with two runtimes.
pub(crate) const NET_8: &str = "
    dotnet
    sdk/8.0.404/FSharp/fsc.dll
    sdk/8.0.404/FSharp/FSharp.Core.dll
    sdk/8.0.404/FSharp/FSharp.Compiler.Service.dll
    sdk/8.0.404/FSharp/FSharp.Compiler.Interactive.Settings.dll
    sdk/8.0.404/FSharp/FSharp.DependencyManager.Nuget.dll
    shared/Microsoft.NETCore.App/8.0.9/System.Runtime.dll
    shared/Microsoft.NETCore.App/8.0.11/System.Runtime.dll
    shared/Microsoft.NETCore.App/8.0.11/Microsoft.CSharp.dll
    packs/Microsoft.NETCore.App.Ref/8.0.11/ref/net8.0/System.Runtime.dll
";

/// A temporary folder with files in it.
pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    /// A folder with an empty file for each line of `files`.
    pub(crate) fn of(files: &str) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for file in files.lines().map(str::trim).filter(|line| !line.is_empty()) {
            tree.write(file, "");
        }
        tree
    }

    /// The folder, links resolved.
    pub(crate) fn root(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    /// A path in it.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a shell script that can be run.
    pub(crate) fn script(&self, relative: &str, body: &str) {
        let source = format!("{relative}.source");
        self.write(&source, &format!("#!/bin/sh\n{body}\n"));
        // Another process writes it: while this one has it open, a test that starts a program at that moment would
        // pass the open file on, and running the script would fail with "text file busy".
        let mut install = Command::new("install");
        install.args(["-m", "755"]).args([self.path(&source), self.path(relative)]);
        assert!(install.status().unwrap().success());
    }

    /// Makes `link` point at `target`.
    pub(crate) fn link(&self, link: &str, target: &Path) {
        let path = self.path(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Removes a file or a folder, if it is there.
    pub(crate) fn remove(&self, relative: &str) {
        let path = self.path(relative);
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// A search that looks nowhere but under `home`.
pub(crate) fn search_in(home: &Path) -> Search {
    // A port that nobody listens on: no test fetches anything from the network.
    let feed = "http://127.0.0.1:9".to_owned();
    let (path, usual) = (Vec::new(), Vec::new());
    Search { configured: None, dotnet_root: None, path, usual, feed, home: home.to_owned() }
}

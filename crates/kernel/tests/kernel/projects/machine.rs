//! A machine with the SDK under test, on which its msbuild runs or does not, and a folder of projects.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::thread;

use mainstay_kernel::fsharp::project::Road;
use mainstay_kernel::fsharp::{Sdk, choose};
use tokio::sync::oneshot;

use crate::support::search;

/// The SDK's own `dotnet` behind a script, in a root of its own: so what is remembered of one does not hold for another.
pub(crate) struct Machine {
    folder: Rc<tempfile::TempDir>,
    real: Sdk,
    sdk: Sdk,
    road: Road,
    compiler: RefCell<String>,
}

impl Machine {
    /// One on which projects go this road, with these files. `$FRAMEWORK` in them is the SDK's own target framework.
    pub(crate) fn on(road: Road, files: &str) -> Self {
        let folder = Rc::new(tempfile::tempdir().unwrap());
        let real = choose(&search(folder.path())).unwrap();
        let machine = Self::at(folder, real, road);
        machine.write(files);
        machine.without_feeds();
        machine
    }

    /// Another one with the same folder.
    pub(crate) fn taken_to(&self, road: Road) -> Self {
        Self::at(Rc::clone(&self.folder), self.real.clone(), road)
    }

    fn at(folder: Rc<tempfile::TempDir>, real: Sdk, road: Road) -> Self {
        let root = folder.path().canonicalize().unwrap().join(format!("sdk {road:?}"));
        fs::create_dir_all(&root).unwrap();
        for part in ["sdk", "shared", "packs"] {
            if real.root.join(part).exists() {
                symlink(real.root.join(part), root.join(part)).unwrap();
            }
        }
        let sdk = Sdk { root, ..real.clone() };
        let machine = Self { folder, real, sdk, road, compiler: RefCell::default() };
        machine.write_host();
        machine
    }

    pub(crate) fn sdk(&self) -> &Sdk {
        &self.sdk
    }

    pub(crate) fn road(&self) -> Road {
        self.road
    }

    /// Whether the SDK has a shared framework.
    pub(crate) fn has_framework(&self, name: &str) -> bool {
        self.real.root.join("shared").join(name).is_dir()
    }

    /// The target framework of the SDK.
    pub(crate) fn framework(&self) -> String {
        self.real.version.target_framework()
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(relative)
    }

    /// Where the assembly of a project is built.
    pub(crate) fn output(&self, folder: &str, name: &str) -> PathBuf {
        self.path(&format!("{folder}/bin/Debug/{}/{name}.dll", self.framework()))
    }

    /// Writes files, each behind a line `=== path`.
    pub(crate) fn write(&self, files: &str) {
        for file in files.split("=== ").skip(1) {
            let (path, text) = file.split_once('\n').unwrap();
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace("$FRAMEWORK", &self.framework())).unwrap();
        }
    }

    /// Has a script stand in for the F# compiler, except where that is only tried. `$HERE` is the machine's folder.
    pub(crate) fn compile_with(&self, script: &str) {
        self.compiler.replace(format!("case \"$*\" in *--help*) ;; *fsc.*) {script} ;; esac"));
        self.write_host();
    }

    /// Makes a package of an assembly, as a restore leaves it. Tells where the assembly is in it.
    pub(crate) fn pack(&self, name: &str, assembly: &Path) -> PathBuf {
        let lower = name.to_lowercase();
        let place = format!("packages/{lower}/1.0.0/lib/{}", self.framework());
        let nuspec = format!(
            "<package><metadata><id>{name}</id><version>1.0.0</version><authors>a</authors><description>d</description></metadata></package>"
        );
        self.put_package(&lower, "1.0.0", &nuspec, &place, assembly)
    }

    /// What restores find: SDK 3.1 wants its FSharp.Core as a package and does not bring it. Nothing comes from the network.
    fn without_feeds(&self) {
        self.write(
            "=== nuget.config\n<configuration><packageSources><clear /></packageSources></configuration>\n",
        );
        let fsharp = self.real.parts().unwrap().fsharp;
        let core = fsharp.join("FSharp.Core.dll");
        if self.real.version.major() < 5 {
            let nuspec = "<package><metadata><id>FSharp.Core</id><version>4.7.0</version><authors>a</authors><description>d</description></metadata></package>";
            let place = "packages/fsharp.core/4.7.0/lib/netstandard2.0";
            self.put_package("fsharp.core", "4.7.0", nuspec, place, &core);
        }
    }

    fn put_package(&self, lower: &str, version: &str, nuspec: &str, place: &str, assembly: &Path) -> PathBuf {
        let package = self.path(&format!("packages/{lower}/{version}"));
        let place = self.path(place);
        fs::create_dir_all(&place).unwrap();
        fs::write(package.join(format!("{lower}.nuspec")), nuspec).unwrap();
        fs::write(package.join(format!("{lower}.{version}.nupkg.sha512")), "AAAA").unwrap();
        fs::write(package.join(".nupkg.metadata"), "{\"version\":1,\"contentHash\":\"AAAA\"}").unwrap();
        let copy = place.join(assembly.file_name().unwrap());
        fs::copy(assembly, &copy).unwrap();
        copy
    }

    fn write_host(&self) {
        let openssl = std::env::var("MAINSTAY_TEST_OPENSSL").unwrap_or_default();
        let here = self.path("");
        let (here, real) = (here.display(), self.real.root.display());
        let msbuild = match self.road {
            Road::Msbuild => format!("export LD_LIBRARY_PATH='{openssl}'"),
            Road::Fallback => {
                "case \"$2\" in *MSBuild.dll) echo 'No usable version of libssl was found'; exit 134 ;; esac"
                    .into()
            }
        };
        let compiler = self.compiler.borrow();
        let script = format!(
            "#!/bin/sh\nHERE='{here}'\nexport NUGET_PACKAGES=\"$HERE/packages\" DOTNET_CLI_HOME=\"$HERE\"\n{msbuild}\n{compiler}\nexec '{real}/dotnet' \"$@\"\n"
        );
        let source = self.path("host.source");
        fs::write(&source, script).unwrap();
        // Another process writes it: while this one has it open, it cannot be run.
        let mut install = Command::new("install");
        install.args(["-m", "755"]).arg(&source).arg(self.sdk.root.join("dotnet"));
        assert!(install.status().unwrap().success());
    }

    /// A named pipe, by which a process tells that it has begun, and by its end that it has ended.
    pub(crate) fn pipe(&self, name: &str) -> Pipe {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Pipe(path)
    }
}

pub(crate) struct Pipe(PathBuf);

impl Pipe {
    /// Waits until a process has opened it and told so by a line.
    pub(crate) async fn begun(self) -> Begun {
        aside(move || {
            let mut reader = BufReader::new(File::open(self.0).unwrap());
            let mut line = String::new();
            assert!(reader.read_line(&mut line).unwrap() > 0, "it was opened and nothing told");
            Begun(reader)
        })
        .await
    }
}

/// A pipe that a process has opened.
pub(crate) struct Begun(BufReader<File>);

impl Begun {
    /// Waits until no process has it open any more.
    pub(crate) async fn ended(mut self) {
        aside(move || self.0.read_to_end(&mut Vec::new()).unwrap()).await;
    }
}

/// Does what may block on a thread that does not keep a failed test from ending.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = oneshot::channel();
    thread::spawn(move || drop(done.send(work())));
    result.await.unwrap()
}

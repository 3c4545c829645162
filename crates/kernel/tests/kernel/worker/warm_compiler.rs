//! Projects that a warm compiler builds again, with a real SDK: what it makes is what a clean build makes, and a build goes on from there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use mainstay_kernel::fsharp::project::{BuildWay, Built, Plan, build};
use mainstay_kernel::fsharp::{Sdk, choose};
use mainstay_kernel::worker::{CompilerProcess, launch_compiler};
use mainstay_model::{Diagnostic, Severity};
use mainstay_os::process::Launch;
use mainstay_runner::Environment;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{WorkerProgram, program};
use crate::support::search;

const LIB: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net10.0</TargetFramework>
    <GenerateDocumentationFile>true</GenerateDocumentationFile>
    <Version>2.3.4</Version>
  </PropertyGroup>
  <ItemGroup>
    <Compile Include="Money.fsi" />
    <Compile Include="Money.fs" />
    <Compile Include="Cart.fs" />
    <EmbeddedResource Include="words.txt" />
    <InternalsVisibleTo Include="App" />
  </ItemGroup>
</Project>"#;
const APP: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><OutputType>Exe</OutputType><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="App.fs" /><ProjectReference Include="../Lib/Lib.fsproj" /></ItemGroup>
</Project>"#;
const TEXTS: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<root>
  <resheader name="resmimetype"><value>text/microsoft-resx</value></resheader>
  <resheader name="version"><value>2.0</value></resheader>
  <resheader name="reader"><value>System.Resources.ResXResourceReader, System.Windows.Forms, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089</value></resheader>
  <resheader name="writer"><value>System.Resources.ResXResourceWriter, System.Windows.Forms, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089</value></resheader>
  <data name="Greeting" xml:space="preserve"><value>hello</value></data>
</root>"#;
const CART: &str = "namespace Shop
/// What somebody buys here.
type Item = { Name: string; Price: int }
module Cart =
    let internal rate = 2
    /// The price of all.
    let total (items: Item list) = items |> List.sumBy (fun item -> item.Price * rate)
";
const CART_TYPED: &str = "namespace Shop
/// What somebody buys here.
type Item = { Name: string; Price: int; Count: int }
module Cart =
    let internal rate = 2
    /// The price of all.
    let total (items: Item list) = items |> List.sumBy (fun item -> item.Price * item.Count * rate)
";
const APP_CODE: &str = "module App
open Shop
[<EntryPoint>]
let main _ =
    printfn \"%d %d\" (Cart.total [ { Name = \"tea\"; Price = 250 } ]) Cart.rate
    0
";

/// A program and the library it refers to, and a process that compiles.
struct Shop {
    folder: TempDir,
    sdk: Sdk,
    compiler: CompilerProcess,
    _sockets: TempDir,
}

async fn compiler(sockets: &Path) -> CompilerProcess {
    let WorkerProgram { program, arguments, environment, .. } = program().await;
    launch_compiler(&Launch { program, arguments, environment }, sockets).await.unwrap()
}

impl Shop {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sdk = choose(&search(folder.path())).unwrap();
        let sockets = tempfile::tempdir().unwrap();
        let compiler = compiler(sockets.path()).await;
        let shop = Self { folder, sdk, compiler, _sockets: sockets };
        let money =
            "namespace Shop\nmodule Money =\n    let euros (cents: int) = string cents\n    let hidden = 1\n";
        for (name, text) in [
            ("Lib/Lib.fsproj", LIB),
            ("Lib/Money.fsi", "namespace Shop\nmodule Money =\n    val euros: int -> string\n"),
            ("Lib/Money.fs", money),
            ("Lib/Cart.fs", CART),
            ("Lib/words.txt", "some words"),
            ("Lib/Texts.resx", TEXTS),
            ("App/App.fsproj", APP),
            ("App/App.fs", APP_CODE),
            // Sources that a repository has not are put into the symbols.
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", "[core]\n\trepositoryformatversion = 0\n"),
            (".gitignore", "*\n"),
        ] {
            shop.write(name, text);
        }
        shop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    async fn build(&self) -> Built {
        build(&self.path("App/App.fsproj"), &self.sdk, &Environment::default(), &|_| {}).await.unwrap()
    }

    async fn planned(&self) -> Result<Plan, String> {
        Plan::of(&self.path("App/App.fsproj"), &self.sdk, &Environment::default()).await
    }

    /// What came of it, and the projects that were compiled.
    async fn recompiled(&self, plan: &Plan) -> (Result<Built, String>, Vec<String>) {
        let told = Mutex::new(Vec::new());
        let say = |step: String| told.lock().unwrap().push(step);
        let built = plan.recompile(&self.compiler, &say).await;
        let project = |step: String| step.split(' ').nth(1).unwrap().to_owned();
        (built, told.into_inner().unwrap().into_iter().map(project).collect())
    }

    /// The assemblies and what belongs to them, among what builds make on the way and where they put it, with what `look` finds of each.
    fn made<T>(&self, look: impl Fn(&Path) -> T) -> BTreeMap<PathBuf, T> {
        let mut found = BTreeMap::new();
        let mut waiting = vec![self.path("Lib"), self.path("App")];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let is_made = entry.extension().is_some_and(|end| end == "dll" || end == "pdb")
                    || entry.ends_with("Lib.xml");
                if entry.is_dir() {
                    waiting.push(entry);
                } else if is_made && !entry.ends_with("FSharp.Core.dll") {
                    found.insert(entry.clone(), look(&entry));
                }
            }
        }
        found
    }

    fn bytes(&self) -> BTreeMap<PathBuf, blake3::Hash> {
        self.made(|path| blake3::hash(&fs::read(path).unwrap()))
    }

    fn times(&self) -> BTreeMap<PathBuf, SystemTime> {
        self.made(|path| path.metadata().unwrap().modified().unwrap())
    }

    fn run(&self) -> String {
        let app = self.path("App/bin/Debug/net10.0/App.dll");
        let dotnet = self.sdk.parts().unwrap().host;
        let ran = std::process::Command::new(dotnet).arg("exec").arg(app).output().unwrap();
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }
}

#[tokio::test]
async fn what_is_compiled_again_is_what_a_clean_build_makes_and_a_build_finds_it_up_to_date() {
    let shop = Shop::new().await;
    let built = shop.build().await;
    assert!(built.success, "{}", built.output);
    let plan = shop.planned().await.unwrap();
    let before = shop.bytes();
    let (nothing, compiled) = shop.recompiled(&plan).await;
    assert_eq!((nothing.unwrap().success, compiled.len()), (true, 0));
    assert_eq!(shop.bytes(), before);

    shop.write("Lib/Cart.fs", CART_TYPED);
    shop.write("App/App.fs", &APP_CODE.replace("Price = 250", "Price = 250; Count = 3"));
    let (typed, compiled) = shop.recompiled(&plan).await;
    let typed = typed.unwrap();
    assert_eq!((typed.success, typed.way, &*typed.diagnostics), (true, BuildWay::WarmCompiler, &[][..]));
    assert_eq!(compiled, ["Lib", "App"]);
    assert_eq!(shop.run(), "1500 2\n");
    let (made, times) = (shop.bytes(), shop.times());
    assert_eq!(made.len(), before.len(), "nothing is left of it: {made:?}");
    assert!(shop.build().await.success);
    assert_eq!(shop.times(), times, "a build finds nothing to do");
    for folder in ["Lib/obj", "Lib/bin", "App/obj", "App/bin"] {
        fs::remove_dir_all(shop.path(folder)).unwrap();
    }
    assert!(shop.build().await.success);
    assert_eq!(shop.bytes(), made, "byte for byte");
}

#[tokio::test]
async fn errors_are_those_of_a_build_and_what_is_not_known_is_left_to_one() {
    let shop = Shop::new().await;
    assert!(shop.build().await.success);
    let plan = shop.planned().await.unwrap();
    assert_eq!(plan.resolved().map(|resolved| resolved.projects.len()), Some(2));

    let before = shop.bytes();
    shop.write("Lib/Cart.fs", &CART.replace("item.Price * rate", "item.Prize * rate"));
    let (failed, _) = shop.recompiled(&plan).await;
    let failed = failed.unwrap();
    assert!(!failed.success && failed.diagnostics.iter().all(|one| one.severity == Severity::Error));
    assert_eq!(shop.bytes(), before);
    // What msbuild prints has no ends.
    let starts: Vec<_> =
        failed.diagnostics.into_iter().map(|one| Diagnostic { end: one.start, ..one }).collect();
    assert_eq!(starts, shop.build().await.diagnostics);

    shop.write("Lib/Cart.fs", &CART.replace("* rate", "* rate + 1"));
    let (body, compiled) = shop.recompiled(&plan).await;
    assert!(body.unwrap().success);
    assert_eq!(compiled, ["Lib"], "what others see of it is the same");
    assert_eq!(shop.run(), "501 2\n", "and they have the new one beside them");

    let before = shop.bytes();
    shop.write("Lib/Cart.fs", CART_TYPED);
    let pid = Pid::from_raw(shop.compiler.pid().unwrap().try_into().unwrap()).unwrap();
    let killed = |_| kill_process(pid, Signal::KILL).unwrap();
    plan.recompile(&shop.compiler, &killed).await.unwrap_err();
    assert_eq!(shop.bytes(), before, "nothing is torn");
    let shop = Shop { compiler: compiler(shop._sockets.path()).await, ..shop };
    shop.write("App/App.fs", &APP_CODE.replace("Price = 250", "Price = 250; Count = 3"));
    assert!(shop.recompiled(&plan).await.0.unwrap().success);
    assert_eq!(shop.run(), "1500 2\n");

    shop.write("Lib/words.txt", "other words");
    let (refused, _) = shop.recompiled(&plan).await;
    assert!(refused.unwrap_err().ends_with("words.txt has changed"));
    assert_eq!(plan.resolved(), None);
    shop.write("Lib/Lib.fsproj", &LIB.replace("</Project>", "<Target Name=\"Mine\" /></Project>"));
    let refused = shop.planned().await.unwrap_err();
    assert!(refused.ends_with("Lib.fsproj: it has a `Target`"), "{refused}");
}

//! Projects with a real SDK, on both roads: with its msbuild, and without. `MAINSTAY_TEST_DOTNET` names the SDK's root, and
//! `MAINSTAY_TEST_OPENSSL` the libraries that the msbuild of SDK 3.1 needs.

mod machine;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use self::machine::Machine;
use mainstay_kernel::fsharp::project::{Built, Resolved, Road, build, resolve, shadow};
use mainstay_model::{Error, Severity};

/// A library, and a program that refers to it; in both kinds of solutions.
const SHOP: &str = r#"
=== lib/Lib.fsproj
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>$FRAMEWORK</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Lib.fs" /></ItemGroup>
</Project>
=== lib/Lib.fs
module Lib
let twice x = 2 * x
=== app/App.fsproj
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>$FRAMEWORK</TargetFramework>
    <DefineConstants>$(DefineConstants);SHOP</DefineConstants>
  </PropertyGroup>
  <ItemGroup><Compile Include="App.fs" /><ProjectReference Include="..\lib\Lib.fsproj" /></ItemGroup>
</Project>
=== app/App.fs
module App
#if SHOP
[<EntryPoint>]
let main _ = Lib.twice 2
#endif
=== Shop.sln
Microsoft Visual Studio Solution File, Format Version 12.00
Project("{F2A71F9B-5D33-465A-A702-920D77279786}") = "App", "app\App.fsproj", "{11111111-1111-1111-1111-111111111111}"
EndProject
Project("{F2A71F9B-5D33-465A-A702-920D77279786}") = "Lib", "lib\Lib.fsproj", "{22222222-2222-2222-2222-222222222222}"
EndProject
=== Shop.slnx
<Solution><Project Path="app/App.fsproj" /><Project Path="lib/Lib.fsproj" /></Solution>
"#;

/// A folder whose name means something else to msbuild, unless it is told that it does not.
const ODD: &str = "lib; $(a) & 100%41's";

async fn built(machine: &Machine, project: &str) -> Built {
    build(&machine.path(project), machine.sdk(), &mainstay_runner::Environment::default(), &|_| ())
        .await
        .unwrap()
}

async fn resolved(machine: &Machine, project: &str) -> Resolved {
    resolve(&machine.path(project), machine.sdk(), &mainstay_runner::Environment::default(), &|_| ())
        .await
        .unwrap()
}

fn both(files: &str) -> [Machine; 2] {
    [Road::Msbuild, Road::Fallback].map(|road| Machine::on(road, files))
}

/// What was said of the projects, without why msbuild was not used.
fn notes(resolved: &Resolved) -> &[String] {
    match resolved.road {
        Road::Msbuild => &resolved.notes,
        // Where all was found, nothing is said of it.
        Road::Fallback => resolved.notes.split_first().map_or(&[], |(first, rest)| {
            assert!(first.contains("msbuild does not run here"), "{:?}", resolved.notes);
            rest
        }),
    }
}

#[tokio::test]
async fn a_project_is_built_and_resolved_with_the_one_it_refers_to() {
    for machine in both(SHOP) {
        let build = built(&machine, "app/App.fsproj").await;
        assert!(build.success, "{}", build.output);
        assert_eq!((build.road, build.diagnostics), (machine.road(), vec![]));

        let framework = machine.framework();
        let told = Mutex::new(Vec::new());
        let progress = |step: String| told.lock().unwrap().push(step);
        let found = resolve(
            &machine.path("app/App.fsproj"),
            machine.sdk(),
            &mainstay_runner::Environment::default(),
            &progress,
        )
        .await
        .unwrap();
        let step = match found.road {
            Road::Msbuild => "reading 2 projects with msbuild",
            Road::Fallback => "reading 1 project without msbuild",
        };
        let mut told = told.into_inner().unwrap();
        told.retain(|step| !step.ends_with(" s)"));
        assert_eq!(told, [step], "msbuild is started once");
        assert_eq!(found.road, machine.road());
        assert_eq!(found.assemblies, [machine.output("lib", "Lib"), machine.output("app", "App")]);
        assert_eq!(found.references, Vec::<PathBuf>::new());
        assert_eq!(found.projects, ["lib/Lib.fsproj", "app/App.fsproj"].map(|path| machine.path(path)));
        assert_eq!(found.sources, ["lib/Lib.fs", "app/App.fs"].map(|path| machine.path(path)));
        assert_eq!(found.framework, Some(framework));
        assert!(["SHOP", "DEBUG", "TRACE"].iter().all(|name| found.defines.contains(&(*name).to_owned())));
        let has = |folder: &str, name: &str, symbol: &str| {
            found.symbols[&machine.output(folder, name)].contains(&symbol.to_owned())
        };
        assert_eq!(["SHOP", "DEBUG"].map(|symbol| has("app", "App", symbol)), [true, true]);
        assert_eq!(["SHOP", "DEBUG"].map(|symbol| has("lib", "Lib", symbol)), [false, true]);
        assert_eq!(notes(&found), Vec::<String>::new());
    }
}

#[tokio::test]
async fn both_kinds_of_solutions_are_built_and_resolved() {
    for machine in both(SHOP) {
        let solutions = match machine.road() {
            Road::Msbuild => ["Shop.slnx", "Shop.sln"],
            Road::Fallback => ["Shop.sln", "Shop.slnx"],
        };
        let build = built(&machine, solutions[0]).await;
        assert!(build.success, "{}: {}", solutions[0], build.output);
        for solution in solutions {
            let found = resolved(&machine, solution).await;
            assert_eq!(found.assemblies, [machine.output("lib", "Lib"), machine.output("app", "App")]);
        }
    }
}

#[tokio::test]
async fn only_what_has_changed_is_compiled_again() {
    for machine in both(SHOP) {
        let written = |project: &str, name: &str| {
            fs::metadata(machine.output(project, name)).unwrap().modified().unwrap()
        };
        assert!(built(&machine, "app/App.fsproj").await.success);
        let first = (written("lib", "Lib"), written("app", "App"));
        assert!(built(&machine, "app/App.fsproj").await.success);
        assert_eq!((written("lib", "Lib"), written("app", "App")), first);
        machine.write("=== app/App.fs\nmodule App\n[<EntryPoint>]\nlet main _ = Lib.twice 3\n");
        assert!(built(&machine, "app/App.fsproj").await.success);
        assert_eq!(written("lib", "Lib"), first.0);
        assert!(written("app", "App") > first.1);
        fs::remove_file(machine.output("lib", "Lib")).unwrap();
        assert!(built(&machine, "app/App.fsproj").await.success);
        assert!(machine.output("lib", "Lib").is_file(), "what is gone is built again");
    }
}

#[tokio::test]
async fn a_build_that_fails_tells_where_and_keeps_what_was_built_before() {
    for machine in both(SHOP) {
        assert!(built(&machine, "lib/Lib.fsproj").await.success);
        let before = fs::read(machine.output("lib", "Lib")).unwrap();
        machine.write("=== lib/Lib.fs\nmodule Lib\nlet twice x = 2 * y\nlet text : string =\n    1\n");

        let build = built(&machine, "app/App.fsproj").await;
        assert!(!build.success);
        let places: Vec<_> = build
            .diagnostics
            .iter()
            .filter(|remark| remark.severity == Severity::Error)
            .map(|remark| {
                let file = PathBuf::from(remark.file.as_ref().unwrap());
                (file, remark.code.as_str(), remark.start.line, remark.start.column)
            })
            .collect();
        let file = machine.path("lib/Lib.fs");
        assert_eq!(places, [(file.clone(), "FS0039", 2, 19), (file, "FS0001", 4, 5)], "{}", build.output);
        assert!(build.diagnostics[0].message.contains("'y' is not defined"));
        assert!(build.output.contains("FS0039"));
        assert_eq!(fs::read(machine.output("lib", "Lib")).unwrap(), before);
    }
}

#[tokio::test]
async fn a_project_that_is_not_there_or_broken_is_told() {
    for machine in both(
        "=== Broken.fsproj\n<Project>\n<ItemGroup>\n</Project>\n=== Gone.slnx\n<Solution><Project Path='No.fsproj'/></Solution>\n=== Lost.fsproj\n<Project Sdk='Microsoft.NET.Sdk'><PropertyGroup><TargetFramework>$FRAMEWORK</TargetFramework></PropertyGroup><ItemGroup><ProjectReference Include='No.fsproj'/></ItemGroup></Project>\n",
    ) {
        let refused = async |project: &str| {
            resolve(&machine.path(project), machine.sdk(), &mainstay_runner::Environment::default(), &|_| ())
                .await
                .unwrap_err()
        };
        let missing = Error::ProjectNotFound { path: machine.path("No.fsproj").display().to_string() };
        assert_eq!(refused("No.fsproj").await, missing);
        assert_eq!(refused("Gone.slnx").await, missing);
        assert_eq!(refused("Lost.fsproj").await, missing);
        match refused("Broken.fsproj").await {
            Error::ProjectInvalid { path, reason } => {
                assert_eq!(Path::new(&path), machine.path("Broken.fsproj"));
                assert!(reason.starts_with("line 3"), "{reason}");
            }
            other => panic!("{other}"),
        }
        let build = build(
            &machine.path("No.fsproj"),
            machine.sdk(),
            &mainstay_runner::Environment::default(),
            &|_| (),
        )
        .await;
        assert_eq!(build.unwrap_err(), missing);
    }
}

#[tokio::test]
async fn a_project_that_was_not_built_says_so() {
    for machine in both(SHOP) {
        fs::rename(machine.path("lib"), machine.path(ODD)).unwrap();
        let found = resolved(&machine, &format!("{ODD}/Lib.fsproj")).await;
        assert_eq!(found.assemblies, Vec::<PathBuf>::new());
        let [note] = notes(&found) else { panic!("{:?}", found.notes) };
        assert!(note.ends_with("Lib.dll is not there; `session rebuild` builds it"), "{note}");
        assert_eq!(found.sources, [machine.path(ODD).join("Lib.fs")]);
    }
}

#[tokio::test]
async fn of_several_frameworks_the_newest_that_can_be_loaded_is_taken() {
    for machine in both(SHOP) {
        let project = fs::read_to_string(machine.path("lib/Lib.fsproj")).unwrap();
        let several = format!(
            "<TargetFrameworks>net472;netstandard1.6;{};net99.0</TargetFrameworks>",
            machine.framework()
        );
        let single = format!("<TargetFramework>{}</TargetFramework>", machine.framework());
        fs::write(machine.path("lib/Lib.fsproj"), project.replace(&single, &several)).unwrap();
        let found = resolved(&machine, "lib/Lib.fsproj").await;
        assert_eq!((found.road, found.framework), (machine.road(), Some(machine.framework())));
        assert_eq!(found.sources, [machine.path("lib/Lib.fs")]);
    }
}

#[tokio::test]
async fn a_shared_framework_is_found_and_one_that_is_not_installed_is_noted() {
    for machine in both(SHOP) {
        let project = fs::read_to_string(machine.path("lib/Lib.fsproj")).unwrap();
        let items = "<ItemGroup><FrameworkReference Include='Microsoft.AspNetCore.App' /><FrameworkReference Include='Nobody.App' />";
        fs::write(machine.path("lib/Lib.fsproj"), project.replace("<ItemGroup>", items)).unwrap();
        let found = resolved(&machine, "lib/Lib.fsproj").await;
        assert_eq!((found.road, found.references.len()), (machine.road(), 0));
        let said = "it runs on Nobody.App, which is not installed beside the SDK";
        assert!(found.notes.iter().any(|note| note.ends_with(said)), "{:?}", found.notes);
        let is_web = |path: &PathBuf| path.ends_with("Microsoft.AspNetCore.Http.dll");
        assert_eq!(found.frameworks.iter().any(is_web), machine.has_framework("Microsoft.AspNetCore.App"));
    }
}

#[tokio::test]
async fn packages_that_were_restored_are_found_on_both_roads() {
    let with_msbuild = Machine::on(Road::Msbuild, SHOP);
    assert!(built(&with_msbuild, "lib/Lib.fsproj").await.success);
    let packed = with_msbuild.pack("Pricing", &with_msbuild.output("lib", "Lib"));
    with_msbuild.write(
        r#"
=== user/User.fsproj
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>$FRAMEWORK</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="User.fs" /><PackageReference Include="Pricing" Version="1.0.0" /></ItemGroup>
</Project>
=== user/User.fs
module User
let four = Lib.twice 2
"#,
    );
    let without_msbuild = with_msbuild.taken_to(Road::Fallback);
    for machine in [&with_msbuild, &without_msbuild] {
        let notes = resolved(machine, "user/User.fsproj").await.notes;
        assert!(
            notes
                .iter()
                .any(|note| note.ends_with("(Pricing) were not found; `session rebuild` restores it")),
            "{notes:?}"
        );
    }

    let build = built(&with_msbuild, "user/User.fsproj").await;
    assert!(build.success, "{}", build.output);
    for machine in [&with_msbuild, &without_msbuild] {
        let found = resolved(machine, "user/User.fsproj").await;
        assert_eq!((found.road, &found.references), (machine.road(), &vec![packed.clone()]));
        assert_eq!(notes(&found), Vec::<String>::new());
    }
    let rebuilt = built(&without_msbuild, "user/User.fsproj").await;
    assert!(rebuilt.success, "{}", rebuilt.output);
}

#[tokio::test]
async fn copies_stay_as_they_are_when_the_project_is_built_again() {
    let machine = Machine::on(Road::Msbuild, SHOP);
    assert!(built(&machine, "Shop.slnx").await.success);
    let into = machine.path("shadow");
    let found = resolved(&machine, "Shop.slnx").await;
    let copy = shadow(&found, &into).await.unwrap();
    let bytes = fs::read(&copy.assemblies[0]).unwrap();
    assert_eq!(shadow(&found, &into).await.unwrap(), copy);

    machine.write("=== lib/Lib.fs\nmodule Lib\nlet twice x = x + x\nlet more = 1\n");
    assert!(built(&machine, "Shop.slnx").await.success);
    assert_eq!(fs::read(&copy.assemblies[0]).unwrap(), bytes);
    let newer = shadow(&resolved(&machine, "Shop.slnx").await, &into).await.unwrap();
    assert_ne!(newer.assemblies, copy.assemblies);
    assert!(!copy.assemblies[0].exists());
    let is_beside =
        newer.assemblies.iter().all(|path| path.is_file() && path.parent() == newer.assemblies[0].parent());
    assert!(is_beside, "{:?}", newer.assemblies);
}

#[tokio::test]
async fn a_build_that_nobody_waits_for_ends_with_all_it_started() {
    let machine = Machine::on(
        Road::Msbuild,
        r#"
=== Slow.fsproj
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>$FRAMEWORK</TargetFramework></PropertyGroup>
  <Target Name="Wait" BeforeTargets="CoreCompile;Restore">
    <Exec Command="exec 9&gt; '$(MSBuildProjectDirectory)/pipe'; echo begun &gt;&amp;9; sleep 600" />
  </Target>
</Project>
"#,
    );
    let pipe = machine.pipe("pipe");
    let project = machine.path("Slow.fsproj");
    let environment = mainstay_runner::Environment::default();
    let mut building = Box::pin(build(&project, machine.sdk(), &environment, &|_| ()));
    let pipe = tokio::select! {
        ended = &mut building => panic!("the build did not wait: {ended:?}"),
        pipe = pipe.begun() => pipe,
    };
    drop(building);
    // The pipe ends when no process has it open for writing any more.
    pipe.ended().await;
}

#[tokio::test]
async fn a_compiler_that_nobody_waits_for_is_ended() {
    let machine = Machine::on(Road::Fallback, SHOP);
    let pipe = machine.pipe("pipe");
    machine.compile_with("exec 9> \"$HERE/pipe\"; echo begun >&9; sleep 600");
    let project = machine.path("lib/Lib.fsproj");
    let environment = mainstay_runner::Environment::default();
    let mut building = Box::pin(build(&project, machine.sdk(), &environment, &|_| ()));
    let pipe = tokio::select! {
        ended = &mut building => panic!("the build did not wait: {ended:?}"),
        pipe = pipe.begun() => pipe,
    };
    drop(building);
    pipe.ended().await;
}

//! Changed sources with conditional code, in a session of two projects: each is read with what is defined for its own project.

use std::fs;

use mainstay_kernel::{Project, ShadowCopy, StartupContext};
use mainstay_model::{LoadedProject, Swap};

use super::swapping::build;
use super::*;

/// The projects, each after the one that it refers to, and the symbol that it defines for itself.
const PROJECTS: [(&str, &str); 2] = [("Lib", "OF_LIB"), ("App", "OF_APP")];

/// A module whose only function depends on what is defined.
fn source(module: &str, sum: &str) -> String {
    format!(
        "module {module}
#if OF_APP && !OF_LIB
let which (x: int) = \"app\", x + {sum}
#endif
#if OF_LIB && !OF_APP
let which (x: int) = \"lib\", x + {sum}
#endif
"
    )
}

fn write_projects(folder: &Path) {
    for (name, symbol) in PROJECTS {
        let refers = if name == "App" { r#"<ProjectReference Include="../Lib/Lib.fsproj" />"# } else { "" };
        let project = format!(
            r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net10.0</TargetFramework>
    <DefineConstants>$(DefineConstants);{symbol}</DefineConstants>
  </PropertyGroup>
  <ItemGroup><Compile Include="{name}.fs" />{refers}</ItemGroup>
</Project>"#
        );
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join(format!("{name}.fsproj")), project).unwrap();
        fs::write(folder.join(name).join(format!("{name}.fs")), source(name, "1")).unwrap();
    }
}

/// A session of both, with these projects' symbols told.
async fn session(folder: &Path, told: &[&str]) -> Session {
    let output = |name: &str| folder.join(format!("App/bin/Debug/net10.0/{name}.dll"));
    let known = LoadedProject {
        path: folder.join("App/App.fsproj").display().to_string(),
        sources: PROJECTS
            .map(|(name, _)| folder.join(name).join(format!("{name}.fs")).display().to_string())
            .into(),
        ..LoadedProject::default()
    };
    let own = PROJECTS.map(|(name, _)| ShadowCopy { origin: output(name), copy: output(name) }).into();
    let symbols = PROJECTS.iter().filter(|(name, _)| told.contains(name));
    let symbols = symbols.map(|(name, symbol)| (output(name), vec![(*symbol).to_owned()])).collect();
    // What the prompt knows is that of all of them.
    let arguments = PROJECTS.map(|(_, symbol)| format!("--define:{symbol}")).into();
    let project = Project { known, own, arguments, symbols, ..Project::default() };
    Session::begin(StartupContext { project: Some(project), ..StartupContext::in_folder(folder) }, Vec::new())
        .await
}

async fn save(session: &Session, folder: &Path, name: &str, text: &str) -> Swap {
    let path = folder.join(name).join(format!("{name}.fs"));
    fs::write(&path, text).unwrap();
    let files = vec![path.display().to_string()];
    soon(session.worker.runner.kernel().unwrap().swap(files)).await.unwrap().unwrap()
}

#[tokio::test]
async fn conditional_code_is_read_with_what_its_own_project_defines() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_projects(folder);
    build(&folder.join("App"));

    let mut known = session(folder, &["Lib", "App"]).await;
    for (name, answer) in [("Lib", "(\"lib\", 102)"), ("App", "(\"app\", 102)")] {
        let swap = save(&known, folder, name, &source(name, "100")).await;
        assert!(swap.is_applied(), "{swap:?}");
        assert_eq!(swap.swapped.len(), 1, "{swap:?}");
        assert_eq!(known.value(&format!("{name}.which 2")).await, answer);
        save(&known, folder, name, &source(name, "1")).await;
    }

    let unknown = session(folder, &["Lib"]).await;
    assert!(save(&unknown, folder, "Lib", &source("Lib", "9")).await.is_applied());
    let refused = save(&unknown, folder, "App", &source("App", "9")).await;
    assert_eq!(refused.obstacles[0].code, "conditional_source", "{refused:?}");
}

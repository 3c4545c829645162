//! Deltas as the worker's own code writes them, of a fixed assembly and for fixed changes: what they consist of, and that code which runs all the time
//! calls the new bodies. The program in `deltas/` is built with the worker's source beside it; what it prints is stored.

use std::fs;
use std::path::Path;
use std::process::Command as Program;

use super::swapping::{Shop, build, codes};

/// The worker's sources under test, which need none of its others.
const SOURCES: [&str; 3] = ["Instructions.fs", "Probes.fs", "Deltas.fs"];

/// The tables, signatures and code of deltas are stored with names in place of tokens and rows: bytes would be others with each compiler that
/// numbers the methods of the fixed assembly in another way, and would say nothing where they differ. That the same change gives the
/// same bytes the program itself sees to.
#[test]
fn deltas_are_what_is_stored_and_running_code_calls_the_new_bodies() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("target")).unwrap();
    for file in ["Dump.fs", "Golden.fs", "Golden.fsproj", "target/Target.fs", "target/Target.fsproj"] {
        fs::copy(manifest.join("tests/deltas").join(file), folder.path().join(file)).unwrap();
    }
    for source in SOURCES {
        fs::copy(manifest.join("../../kernels/fsharp").join(source), folder.path().join(source)).unwrap();
    }
    let host = build(folder.path());
    let release = folder.path().join("release");
    let built = Program::new(&host)
        .args([
            "build",
            "-v:quiet",
            "-nologo",
            "-nodeReuse:false",
            "-p:UseSharedCompilation=false",
            "-c",
            "Release",
            "-o",
        ])
        .arg(&release)
        .current_dir(folder.path().join("target"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
    let output = Program::new(host)
        .arg(folder.path().join("bin/Debug/net10.0/Golden.dll"))
        .arg(release.join("Target.dll"))
        .env("DOTNET_MODIFIABLE_ASSEMBLIES", "debug")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[tokio::test]
async fn what_was_built_for_release_is_refused_and_runs_as_it_was_built() {
    let shop = Shop::build_for("Release");
    let mut session = shop.session().await;
    assert_eq!(session.value("Later.callsPlain 1").await, "2");
    shop.save("Shop.fs", "let plain (x: int) = x + 1", "let plain (x: int) = x + 70");
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert_eq!((codes(&swap), swap.swapped.len()), (vec!["not_modifiable"], 0), "{swap:?}");
    assert_eq!(session.value("Later.callsPlain 1").await, "2");
}

//! The DLL that `examples/inventory.fsx` refers to, compiled as `examples/README.md` says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Shelf;
use super::dotnet::Sdk;
use crate::command::run;
use crate::failure::Failure;

const DLL: &str = "Pricing.dll";
const HOST_REMEDY: &str = "remove `target/test-tools` to have it installed anew";

/// Compiles the DLL where its source or the SDK has changed, and puts it in its place.
pub(super) fn provide(shelf: &Shelf, sdk: &Sdk) -> Result<(), Failure> {
    let examples = crate::root().join("examples/lib");
    let source = examples.join("Pricing.fs");
    let text = fs::read_to_string(&source).map_err(Failure::at(&source))?;
    let recipe = format!("{}\n{text}", sdk.compiler.display());
    let built = shelf.provide("pricing", &recipe, |folder| compile(sdk, &source, &folder.join(DLL)))?;
    publish(&built.join(DLL), &examples.join("bin"))
}

fn compile(sdk: &Sdk, source: &Path, dll: &Path) -> Result<(), Failure> {
    let mut compiler = Command::new(sdk.root.join("dotnet"));
    compiler.arg("exec").arg(&sdk.compiler).arg(source);
    compiler.args([
        "--nologo",
        "--target:library",
        "--targetprofile:netcore",
        "--noframework",
        "--nocopyfsharpcore",
    ]);
    compiler.arg(format!("--out:{}", dll.display()));
    for reference in references(sdk)? {
        compiler.arg(format!("-r:{}", reference.display()));
    }
    // The compiler needs no cultures, and starts so where the ICU library is missing or newer than it knows.
    compiler.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    run(&mut compiler, HOST_REMEDY)
}

fn references(sdk: &Sdk) -> Result<Vec<PathBuf>, Failure> {
    let folder = sdk.references()?;
    let entries = fs::read_dir(&folder).map_err(Failure::at(&folder))?;
    let mut references: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "dll"))
        .collect();
    references.push(sdk.fsharp.join("FSharp.Core.dll"));
    Ok(references)
}

/// Copies the DLL so that whoever reads it meanwhile sees the old or the new one whole.
fn publish(dll: &Path, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(Failure::at(folder))?;
    let (staged, place) = (folder.join("Pricing.dll.new"), folder.join(DLL));
    fs::copy(dll, &staged).map_err(Failure::at(&staged))?;
    fs::rename(&staged, &place).map_err(Failure::at(&place))
}

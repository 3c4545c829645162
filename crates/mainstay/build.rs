//! Puts the pages of `docs/errors` into the program.

use std::fmt::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut pages: Vec<_> =
        std::fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?.into_iter().map(|e| e.path()).collect();
    pages.sort();
    let mut code = String::from(
        "/// The page of an error code.\nfn page(code: &str) -> Option<&'static str> {\n    match code {\n",
    );
    for page in pages {
        let Some(name) = page.file_stem().and_then(|name| name.to_str()) else { continue };
        writeln!(code, "        {name:?} => Some(include_str!({:?})),", page.canonicalize()?)?;
    }
    code.push_str("        _ => None,\n    }\n}\n");
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("error_pages.rs"), code)?;
    Ok(())
}

//! Has cargo look for new files in the folders that the program carries: it knows only of those that were there before. And lists the F# workers
//! that a release carries besides their sources: `MAINSTAY_PREBUILT` names a folder with a folder for each, which `cargo xtask dist` makes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    for folder in ["../../kernels", "../../docs/errors"] {
        println!("cargo:rerun-if-changed={folder}");
    }
    println!("cargo:rerun-if-env-changed=MAINSTAY_PREBUILT");
    let mut list = String::from("&[\n");
    if let Some(folder) = std::env::var_os("MAINSTAY_PREBUILT").map(PathBuf::from) {
        println!("cargo:rerun-if-changed={}", folder.display());
        for worker in sorted(&folder)? {
            for file in sorted(&worker)? {
                let name =
                    file.strip_prefix(&folder).unwrap_or(&file).display().to_string().replace('\\', "/");
                list += &format!("({:?}, include_bytes!({:?})),\n", format!("fsharp/prebuilt/{name}"), file);
            }
        }
    }
    list.push(']');
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("prebuilt.rs"), list)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

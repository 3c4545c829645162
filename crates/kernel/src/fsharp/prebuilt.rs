//! F# workers that a release of Mainstay carries, so that a user of one of the SDKs that they were compiled with need not wait for a compiler.
//! One fits a compiler of the same bytes alone: the compiler's own interface differs from one build of it to the next.

use std::borrow::Cow;
use std::fs;

use super::recipe::{self, DISPLAY, Recipe, WORKER};
use super::sdk::CompilerLibrary;
use super::sources::Sources;
use crate::kernel_files::KernelFiles;

/// How many digits of the hash a key has.
const DIGITS: usize = 32;

/// What a worker is known by that is made from these sources with such an SDK, on whichever machine; none where it cannot be carried, or a
/// file of the SDK cannot be read.
pub(super) fn key(recipe: &Recipe, sources: &Sources) -> Option<String> {
    if !matches!(recipe.parts.library, CompilerLibrary::Service(_)) {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    };
    add(&recipe::VERSION.to_le_bytes());
    add(recipe.sdk.version.target_framework().as_bytes());
    for file in recipe.compiler_assemblies() {
        add(&fs::read(file).ok()?);
    }
    for source in sources.display.iter().chain(&sources.worker) {
        add(source.name.as_bytes());
        add(source.text.as_bytes());
    }
    Some(hasher.finalize().to_hex()[..DIGITS].to_owned())
}

/// The files of the worker with this key, each with its name, where the program carries it.
pub(super) fn find(files: KernelFiles, key: &str) -> Option<[(String, Cow<'static, [u8]>); 2]> {
    let read = |assembly: &str| {
        let name = format!("{assembly}.dll");
        let bytes = files(&format!("fsharp/prebuilt/{key}/{name}"))?;
        Some((name, bytes))
    };
    Some([read(DISPLAY)?, read(WORKER)?])
}

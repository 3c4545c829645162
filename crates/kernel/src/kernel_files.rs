//! The files that kernels are given. The program carries them, and says here how they are read: so a change of one compiles nothing of this crate.

use std::borrow::Cow;

/// Reads a file in the folder `kernels` of the source tree, by its path there, or what a release adds to that; none where there is no such file.
pub type KernelFiles = fn(path: &str) -> Option<Cow<'static, [u8]>>;

/// Reads a text among them.
pub(crate) fn text(files: KernelFiles, path: &str) -> Option<Cow<'static, str>> {
    match files(path)? {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

//! What only SDK 3.1 needs. Its interactive checker assumes .NET Framework's references and looks for them beside the worker.
//! This file can go when SDK 3.1 is no longer supported; the worker's part of it is in `kernels/fsharp/Compat.fs`.

use std::path::{Path, PathBuf};

use super::recipe::assemblies_in;

/// The names of assemblies that must lie beside the worker, and may be empty: what .NET Framework had and .NET Core has not.
pub(super) const STAND_INS: &[&str] = &[
    "System.Runtime.Remoting",
    "System.Runtime.Serialization.Formatters.Soap",
    "System.Web.Services",
    "System.Windows.Forms",
];

/// The shared runtime's assemblies that are copied beside the worker.
pub(super) fn copied(runtime: &Path) -> Vec<PathBuf> {
    let wanted =
        |name: &str| name.starts_with("System") || ["mscorlib.dll", "netstandard.dll"].contains(&name);
    let mut assemblies = assemblies_in(runtime);
    assemblies.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(wanted));
    assemblies
}

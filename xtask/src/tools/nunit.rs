//! NUnit, with which the F# kernel's tests define tests: Debian's, since no registry of .NET packages is asked for anything.

use std::path::PathBuf;

use super::{Shelf, apt, named};
use crate::failure::Failure;

/// Names its assembly: read here, and set for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_NUNIT";
const PACKAGE: &str = "libnunit-framework2.6.3-cil";
const REMEDY: &str = "the tests take NUnit 2.6 from Debian's package libnunit-framework2.6.3-cil; elsewhere set MAINSTAY_TEST_NUNIT to \
                      its nunit.framework.dll";

/// Provides the assembly of NUnit.
pub(super) fn provide(shelf: &Shelf) -> Result<PathBuf, Failure> {
    if let Some(assembly) = named(VARIABLE) {
        return Ok(assembly);
    }
    let folder = shelf.provide("nunit", PACKAGE, |folder| {
        eprintln!("taking {PACKAGE} from Debian (once)");
        apt::unpack(PACKAGE, folder, REMEDY)
    })?;
    Ok(folder.join("usr/lib/cli/nunit.framework-2.6.3/nunit.framework.dll"))
}

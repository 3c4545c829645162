//! clippy as the compiler of our crates: a run of clippy before the tests would read everything twice.

/// Variables that cargo and its compilers are given.
pub(crate) type Environment = &'static [(&'static str, &'static str)];

/// Has cargo compile our crates with clippy; a warning is an error. `cargo clippy` uses the same variables, where that
/// word ends each argument, but makes nothing that runs.
pub(crate) const ON: Environment =
    &[("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"), ("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__")];

/// Has the compiler alone do it.
pub(crate) const OFF: Environment = &[];

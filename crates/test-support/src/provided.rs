//! The programs and packages that `cargo xtask test` installs for tests.

use std::path::PathBuf;

/// The .NET SDK that `cargo xtask test` provides.
pub fn dotnet() -> PathBuf {
    provided("MAINSTAY_TEST_DOTNET")
}

/// NUnit's assembly, which `cargo xtask test` provides.
pub fn nunit() -> PathBuf {
    provided("MAINSTAY_TEST_NUNIT")
}

/// The Python with the packages that `cargo xtask test` provides.
pub fn python() -> PathBuf {
    provided("MAINSTAY_TEST_PYTHON")
}

/// The Node.js that `cargo xtask test` provides.
pub fn node() -> PathBuf {
    provided("MAINSTAY_TEST_NODE")
}

/// The folder of packages that speak MCP, which `cargo xtask test` provides.
pub fn mcp_packages() -> PathBuf {
    provided("MAINSTAY_TEST_MCP")
}

/// The folder of packages that make a TypeScript client of an OpenAPI document, which `cargo xtask test` provides.
pub fn openapi_packages() -> PathBuf {
    provided("MAINSTAY_TEST_OPENAPI_NPM")
}

/// The Python that makes a client of an OpenAPI document and checks its types, which `cargo xtask test` provides.
pub fn openapi_python() -> PathBuf {
    provided("MAINSTAY_TEST_OPENAPI_PYTHON")
}

/// The coding agent that `cargo xtask test` provides.
pub fn pi() -> PathBuf {
    provided("MAINSTAY_TEST_PI")
}

/// The environment of Jupyter kernels that `cargo xtask test` provides.
pub fn jupyter() -> PathBuf {
    provided("MAINSTAY_TEST_JUPYTER")
}

/// The browser that `cargo xtask test` provides.
pub fn chromium() -> PathBuf {
    provided("MAINSTAY_TEST_CHROMIUM")
}

/// The script that looks for barriers on a page, which `cargo xtask test` provides.
pub fn axe() -> PathBuf {
    provided("MAINSTAY_TEST_AXE")
}

/// The path that an environment variable of `cargo xtask test` names.
pub fn provided(variable: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(value) => PathBuf::from(value),
        None => panic!("{variable} is not set: run the tests with `cargo xtask test`"),
    }
}

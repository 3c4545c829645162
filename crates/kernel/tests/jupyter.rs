//! Real Jupyter kernels, through the runner that the engine is given. `MAINSTAY_TEST_JUPYTER` names an environment with their kernelspecs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests, which may panic"
)]

mod support;

#[path = "jupyter/behaviour.rs"]
mod behaviour;
#[path = "jupyter/python.rs"]
mod python;
#[path = "jupyter/session.rs"]
mod session;
#[path = "jupyter/table.rs"]
mod table;
#[path = "jupyter/tongue.rs"]
mod tongue;

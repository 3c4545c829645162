//! `cargo xtask bench`: what the daemon costs, measured with the release build.

use std::ffi::OsString;

use crate::command::{cargo, run as run_command, step};
use crate::failure::Failure;
use crate::tools;

/// Runs the benchmarks of whole sessions, agents, both beside a peer where there is one, jobs over ARCP, the page, commands, streams over HTTP, the store, subscriptions, forks and folds; docs/benchmarks.md says what their numbers mean.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    if let Some(argument) = arguments.first() {
        return Err(Failure::Usage(format!(
            "`{}` is not understood; this task takes no arguments",
            argument.display()
        )));
    }
    let tools = step("what the benchmarks need", || tools::provide(&[]))?;
    let environment = tools.environment();
    let dotnet = tools.dotnet();
    let remedy = "see the compiler's message above";
    step("sessions", || {
        let mut bench = cargo(["bench", "--package", "mainstay", "--bench", "session"]);
        run_command(bench.envs(environment.clone()).env("DOTNET_ROOT", dotnet), remedy)
    })?;
    step("agents", || {
        let mut bench = cargo(["bench", "--package", "mainstay", "--bench", "agents"]);
        run_command(bench.envs(environment.clone()), remedy)
    })?;
    step("ARCP", || {
        let mut bench = cargo(["bench", "--package", "mainstay", "--bench", "arcp"]);
        run_command(bench.envs(environment.clone()).env("DOTNET_ROOT", dotnet), remedy)
    })?;
    step("beside jupyter_server", || {
        let mut bench = cargo(["bench", "--package", "mainstay", "--bench", "jupyter"]);
        run_command(bench.envs(environment.clone()).env("DOTNET_ROOT", dotnet), remedy)
    })?;
    step("the page", || {
        let mut bench = cargo(["bench", "--package", "mainstay", "--bench", "page"]);
        run_command(bench.envs(environment.clone()).env("DOTNET_ROOT", dotnet), remedy)
    })?;
    step("commands", || {
        run_command(
            &mut cargo([
                "bench",
                "--package",
                "mainstay-http",
                "--package",
                "mainstay-pi-protocol",
                "--package",
                "mainstay-rpc",
            ]),
            remedy,
        )
    })?;
    step("the store", || run_command(&mut cargo(["bench", "--package", "mainstay-log"]), remedy))?;
    step("subscriptions", || {
        run_command(&mut cargo(["bench", "--package", "mainstay-engine", "--bench", "fanout"]), remedy)
    })?;
    step("forks", || {
        run_command(&mut cargo(["bench", "--package", "mainstay-engine", "--bench", "fork"]), remedy)
    })?;
    step("folds", || run_command(&mut cargo(["bench", "--package", "mainstay-model"]), remedy))
}

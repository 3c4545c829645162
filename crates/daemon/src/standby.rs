//! What an F# worker is started with ahead of its session: a plan that is equal for all sessions that may take it.
//!
//! Pure.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use mainstay_kernel::fsharp::APPLICATIONS_VARIABLE;
use mainstay_os::process::Launch;
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};

/// Variables that the system, the runtime or the compiler may read when a process starts, or once in its life.
const AT_START: [&str; 10] =
    ["HOME", "LANG", "LANGUAGE", "LOCPATH", "NLSPATH", "PATH", "TMPDIR", "TZ", "TZDIR", "GLIBC_TUNABLES"];

/// How the names of others begin.
const AT_START_PREFIXES: [&str; 16] = [
    "COMPlus_",
    "CORECLR_",
    "COREHOST_",
    "DOTNET_",
    "DYLD_",
    "FCS_",
    "FSHARP_",
    "FSharp_",
    "ICU_",
    "LC_",
    "LD_",
    "LTTNG_",
    "MALLOC_",
    "MSBUILD",
    "NUGET_",
    "SSL_",
];

/// How the names of variables begin that are the worker's channel.
const CHANNEL: &str = "MAINSTAY_WORKER_";

/// How a worker is started ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    program: PathBuf,
    arguments: Vec<String>,
    /// What it finds in its environment beside the daemon's own, by name.
    environment: BTreeMap<String, String>,
    /// What the compiler of a session is told where its creator does not say more.
    pub(crate) compiler: Vec<String>,
}

impl Plan {
    /// How a worker is started ahead that such a session can take; none where that cannot be written as text.
    pub(crate) fn of(launch: &Launch, creators: &Environment, compiler: Vec<String>) -> Option<Self> {
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        let is_late = |name: &str| creators.variable(name).is_some_and(|value| !acts_at_start(name, value));
        let own = |(name, value): &(OsString, OsString)| Some((text(name)?, text(value)?));
        let mut environment = BTreeMap::new();
        // Where a name is there twice, the later one counts, as for a process that is started.
        for variable in &launch.environment {
            let (name, value) = own(variable)?;
            environment.insert(name, value);
        }
        environment.retain(|name, _| name == APPLICATIONS_VARIABLE || !is_late(name));
        Some(Self {
            program: launch.program.clone(),
            arguments: launch.arguments.iter().map(text).collect::<Option<_>>()?,
            environment,
            compiler,
        })
    }

    /// How the worker's process is started.
    pub(crate) fn launch(&self) -> Launch {
        let Self { program, arguments, environment, .. } = self;
        Launch {
            program: program.clone(),
            arguments: arguments.iter().map(OsString::from).collect(),
            environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        }
    }
}

/// What a worker that was started ahead lacks in its environment of that of a session.
pub(crate) fn lacking(creators: &Environment) -> BTreeMap<String, String> {
    let is_lacking = |(name, value): &(&str, &str)| {
        !acts_at_start(name, value) && !name.starts_with(CHANNEL) && *name != APPLICATIONS_VARIABLE
    };
    creators.variables().filter(is_lacking).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Whether a variable has to be there when the process starts. One without a value does: runtimes before .NET 9 cannot set one later.
fn acts_at_start(name: &str, value: &str) -> bool {
    value.is_empty()
        || AT_START.contains(&name)
        || AT_START_PREFIXES.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The plan for a session of a creator with these variables.
    fn plan(variables: &[(&str, &str)]) -> Plan {
        let creators = environment(variables);
        let own = [("DOTNET_ROOT", "/opt/dotnet"), (APPLICATIONS_VARIABLE, "1;2;true")];
        let all = creators.variables().chain(own).map(|(name, value)| (name.into(), value.into())).collect();
        let launch =
            Launch { program: "/opt/dotnet/dotnet".into(), arguments: vec!["exec".into()], environment: all };
        Plan::of(&launch, &creators, vec!["--nowarn:25".to_owned()]).unwrap()
    }

    #[test]
    fn nothing_of_a_session_is_in_it_but_what_acts_at_the_start_of_a_process() {
        let of_session = [
            ("API_KEY", "secret"),
            ("PWD", "/home/user/code"),
            ("DOTNET_ROOT", "/home/user/dotnet"),
            ("TZ", "Europe/Vienna"),
            ("EMPTY", ""),
            ("MAINSTAY_WORKER_TOKEN", "of another"),
        ];
        let expected = [
            ("DOTNET_ROOT", "/opt/dotnet"),
            ("EMPTY", ""),
            (APPLICATIONS_VARIABLE, "1;2;true"),
            ("TZ", "Europe/Vienna"),
        ];
        let launch = plan(&of_session).launch();
        let found: Vec<_> = launch
            .environment
            .iter()
            .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
            .collect();
        assert_eq!(found, expected);
        let lacks = lacking(&environment(&of_session));
        let names: Vec<_> = lacks.keys().map(String::as_str).collect();
        assert_eq!(names, ["API_KEY", "PWD"]);
        assert_eq!(lacks["API_KEY"], "secret");
    }

    #[test]
    fn a_session_takes_what_was_started_for_another_where_its_own_start_would_be_the_same() {
        let first = plan(&[("PWD", "/a"), ("TZ", "UTC")]);
        assert_eq!(first, plan(&[("PWD", "/b"), ("TZ", "UTC"), ("KEY", "1")]));
        for other in
            [("TZ", "Asia/Tokyo"), ("DOTNET_TieredPGO", "0"), ("LD_PRELOAD", "/x.so"), ("PATH", "/bin")]
        {
            assert_ne!(first, plan(&[("TZ", "UTC"), other]), "{other:?}");
        }
        let of_program = |program: &str, worker: &str| {
            let arguments = vec!["exec".into(), worker.into()];
            let launch = Launch { program: program.into(), arguments, environment: Vec::new() };
            Plan::of(&launch, &Environment::default(), Vec::new()).unwrap()
        };
        // Another SDK has another host, or another worker of ours, which is named for what it was built from.
        let one = of_program("/a/dotnet", "10.0.401-1/worker.dll");
        for (program, worker) in
            [("/b/dotnet", "10.0.401-1/worker.dll"), ("/a/dotnet", "10.0.401-2/worker.dll")]
        {
            assert_ne!(one, of_program(program, worker));
        }
        let told = serde_json::to_value(&first).unwrap();
        assert_eq!(serde_json::from_value::<Plan>(told).unwrap(), first);
    }
}

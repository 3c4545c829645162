//! The application of a session's project, which runs in the session's worker while evals go on. An eval starts it; that it runs is a fact of
//! the session, so that whoever rebuilds the session starts it again.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::JobId;
use crate::testing::literal;

/// An application that runs, as its worker tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Application {
    /// What it is called: its assembly.
    pub name: String,
    /// The function that it begins with, where that is not the entry point of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// What it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The addresses it listens on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// The process id of the worker it runs in.
    pub pid: u32,
    /// The job that started it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
}

/// How an application ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "ending", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ApplicationEnding {
    /// It was stopped by somebody.
    Stopped,
    /// It came to its end by itself.
    Completed {
        /// What its function gave, where that gives a number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    /// It failed, or could not be started again.
    Failed {
        /// The reason why, for people.
        message: String,
    },
}

/// An application that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedApplication {
    /// What it was called.
    pub name: String,
    /// How its run has ended.
    #[serde(flatten)]
    pub ending: ApplicationEnding,
}

/// What a worker says of the application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum ApplicationNotice {
    /// It runs in the session.
    Started(Application),
    /// It runs no more.
    Ended(ApplicationEnding),
}

/// An application as its session knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionApplication {
    /// What its worker last told of it.
    #[serde(flatten)]
    pub application: Application,
    /// Since when it runs.
    pub since: Timestamp,
}

/// Which application is to run, and with what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationStart {
    /// The function that it begins with; none for the entry point of the project.
    pub entry: Option<String>,
    /// What it is given.
    pub arguments: Vec<String>,
}

/// The functions of F# that start and stop applications.
const APP: &str = "Mainstay.App";

/// What an exception of F# is called that says that there is nothing to start.
pub const NO_ENTRY_POINT: &str = "MainstayDisplay.EntryPointNotFound";

impl ApplicationStart {
    /// The code that starts it in a session of F#.
    pub fn code(&self) -> String {
        let arguments: Vec<_> = self.entry.iter().chain(&self.arguments).map(|text| literal(text)).collect();
        let function = if self.entry.is_some() { "runFrom" } else { "run" };
        format!("{APP}.{function}({})", arguments.join(", "))
    }
}

/// The code that stops the application of a session of F#, within so many milliseconds where that is said.
pub fn stop_code(limit_ms: Option<u64>) -> String {
    let limit = limit_ms.map(|limit| format!("timeoutMs = {limit}")).unwrap_or_default();
    format!("{APP}.stop({limit})")
}

impl Application {
    /// How it is started again.
    pub fn start(&self) -> ApplicationStart {
        ApplicationStart { entry: self.entry.clone(), arguments: self.arguments.clone() }
    }
}

/// Says what runs, and where it listens.
impl std::fmt::Display for Application {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        match self.addresses.is_empty() {
            true => Ok(()),
            false => write!(f, " on {}", self.addresses.join(", ")),
        }
    }
}

/// Says how it ended.
impl std::fmt::Display for ApplicationEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stopped => f.write_str("it was stopped"),
            Self::Completed { exit_code: None | Some(0) } => f.write_str("it came to its end"),
            Self::Completed { exit_code: Some(code) } => {
                write!(f, "it came to its end with exit code {code}")
            }
            Self::Failed { message } => f.write_str(message),
        }
    }
}

impl std::fmt::Display for EndedApplication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_that_starts_and_stops_is_made_of_literals() {
        let arguments = vec!["--urls".to_owned(), "http://127.0.0.1:0".to_owned()];
        let start = ApplicationStart { entry: None, arguments };
        assert_eq!(start.code(), r#"Mainstay.App.run("--urls", "http://127.0.0.1:0")"#);
        let entry = Some("Shop.Web.main".to_owned());
        let named = ApplicationStart { entry, arguments: vec!["a \"b\"".to_owned()] };
        assert_eq!(named.code(), r#"Mainstay.App.runFrom("Shop.Web.main", "a \"b\"")"#);
        assert_eq!(ApplicationStart::default().code(), "Mainstay.App.run()");
        assert_eq!(
            (stop_code(None).as_str(), stop_code(Some(500)).as_str()),
            ("Mainstay.App.stop()", "Mainstay.App.stop(timeoutMs = 500)")
        );
    }
}

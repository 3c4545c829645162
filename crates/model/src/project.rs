//! Which project a session is created for: what its creator asks, and what that came to.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The project a session is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum ProjectChoice {
    /// This one: its file, or the folder it lies in, absolute.
    At(String),
    /// None, whatever lies in its folder.
    Nothing,
    /// That of its folder, where it has one. In a command that is stored this is the absence of a choice.
    #[default]
    #[serde(skip)]
    OfFolder,
}

impl ProjectChoice {
    /// What a client says in two words: a project, and that there is to be none.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it says both.
    pub fn of(project: Option<String>, no_project: bool) -> Result<Self, Error> {
        match (project, no_project) {
            (Some(_), true) => Err(Error::InvalidArgument {
                argument: "noProject".to_owned(),
                reason: "a project is named beside it; leave one of the two out".to_owned(),
            }),
            (project, false) => Ok(project.map_or(Self::OfFolder, Self::At)),
            (None, true) => Ok(Self::Nothing),
        }
    }

    /// What another session was created for, whatever lies in its folder now.
    pub fn exactly(project: Option<String>) -> Self {
        project.map_or(Self::Nothing, Self::At)
    }

    /// Whether it is left to what lies in the folder.
    pub(crate) fn is_of_folder(&self) -> bool {
        *self == Self::OfFolder
    }
}

/// What a choice came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChosenProject {
    /// The session is for no project.
    #[default]
    Nothing,
    /// It is for this one: its file.
    One(String),
    /// Its folder has these, and nothing says which of them is meant: it is for none.
    Several(Vec<String>),
}

impl ChosenProject {
    /// What is taken, and what lies beside it untaken.
    pub fn into_parts(self) -> (Option<String>, Vec<String>) {
        match self {
            Self::Nothing => (None, Vec::new()),
            Self::One(project) => (Some(project), Vec::new()),
            Self::Several(projects) => (None, projects),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::command::CreateSession;
    use crate::id::SessionKind;

    /// Stored fingerprints of commands are made of this.
    #[test]
    fn a_choice_is_written_as_a_project_was_before_there_was_one() {
        let written = |project: ProjectChoice| {
            let create = CreateSession {
                kind: SessionKind::fsharp(),
                working_directory: "/code".to_owned(),
                project,
                arguments: Vec::new(),
                name: None,
                alias: None,
            };
            serde_json::to_value(create).unwrap().get("project").cloned()
        };
        assert_eq!(written(ProjectChoice::OfFolder), None);
        assert_eq!(written(ProjectChoice::At("/code/A.fsproj".to_owned())), Some(json!("/code/A.fsproj")));
        assert_eq!(written(ProjectChoice::Nothing), Some(json!(null)));
    }

    #[test]
    fn a_project_and_none_at_once_are_refused() {
        let said =
            |project: Option<&str>, no_project| ProjectChoice::of(project.map(str::to_owned), no_project);
        assert_eq!(said(None, false), Ok(ProjectChoice::OfFolder));
        assert_eq!(said(None, true), Ok(ProjectChoice::Nothing));
        assert_eq!(said(Some("/code"), false), Ok(ProjectChoice::At("/code".to_owned())));
        assert!(matches!(said(Some("/code"), true), Err(Error::InvalidArgument { .. })));
    }
}

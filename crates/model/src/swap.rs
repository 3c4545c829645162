//! Changed code that is put into a process while it runs: methods of loaded assemblies get other bodies. Source:
//! `protocols/fsharp-live.md`; seed 000, hot reload.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What came of putting changed source files into a session's process. Either all that changed in the files runs, or none of it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Swap {
    /// SHA-256 of each file as it was read, in hexadecimal, by path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The names of the assemblies whose code changed, of those that the session's code rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assemblies: Vec<String>,
    /// The declarations that run as their files have them now and did not before, and those that their files have no more.
    #[serde(default)]
    pub swapped: Vec<SwappedDeclaration>,
    /// The values that may have been made with what was swapped, before it was. They stay as they are until the next worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outdated: Vec<SwappedDeclaration>,
    /// Why nothing was swapped; empty where everything was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<SwapObstacle>,
    /// Whether a file has other bytes than it had when it was last read, or built. It is left out of events, which are recorded for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_renewed: bool,
}

/// A declaration that runs as its file has it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SwappedDeclaration {
    /// Its full name in the language.
    pub name: String,
    /// The path of its file.
    pub file: String,
    /// The line where it begins, from 1.
    pub line: u32,
    /// What of its older version stays with those who have it already; none where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptVersion>,
}

/// What of a swapped declaration goes on as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum KeptVersion {
    /// It is a value: what has read it before has the older one.
    Value,
    /// It has handed closures to methods: whoever keeps them calls the older code.
    Closures,
    /// It is where the program begins: a run that goes on ends as it began.
    Run,
    /// It takes or gives something else than it did: what is no source of the project calls it as it was built.
    Signature,
    /// It is inline: what is no source of the project contains it as it was built.
    Inline,
    /// It is gone from its file: what is no source of the project has it as it was built.
    Removed,
    /// It makes anonymous records: their type is another one than that of those which code that stays as it was built makes.
    AnonymousRecord,
    /// It is a new member: code that looks for the members of its type finds it after the next build.
    Reflection,
}

impl KeptVersion {
    /// The same, for people.
    const fn words(self) -> &'static str {
        match self {
            Self::Value => "what has read it keeps the older value",
            Self::Closures => "closures that it has handed over run the older code",
            Self::Run => "a run that goes on ends as it began",
            Self::Signature => "with another signature: code of the session calls it as it was",
            Self::Inline => "inline: code of the session contains it as it was built",
            Self::AnonymousRecord => "its anonymous records have a type of their own until the next build",
            Self::Reflection => "new: reflection finds it after the next build",
            Self::Removed => "gone from its file: code of the session has it as it was built",
        }
    }
}

impl std::fmt::Display for SwappedDeclaration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kept {
            Some(kept) => write!(f, "{} ({})", self.name, kept.words()),
            None => f.write_str(&self.name),
        }
    }
}

/// Why a change cannot be put into a process that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SwapObstacle {
    /// The path of the file that changed.
    pub file: String,
    /// A stable word for the reason, of those in `docs/how-to/hot-reload.md`.
    pub code: String,
    /// The name of what changed.
    pub name: String,
    /// The line of it, from 1.
    pub line: u32,
    /// The reason, for people.
    pub reason: String,
}

impl Swap {
    /// Whether the files' code runs now.
    pub const fn is_applied(&self) -> bool {
        self.obstacles.is_empty()
    }

    /// The files that were saved, as far as they are otherwise than what ran. Obstacles may stand in others, which are as they were.
    pub fn saved(&self) -> impl Iterator<Item = &String> {
        let is_meant = |obstacle: &&SwapObstacle| self.files.is_empty() || obstacle.code == "gone";
        self.files.keys().chain(self.obstacles.iter().filter(is_meant).map(|obstacle| &obstacle.file))
    }

    /// Whether nothing was to be done: the code was the files' already.
    pub const fn is_nothing(&self) -> bool {
        self.swapped.is_empty() && self.obstacles.is_empty()
    }
}

/// Says in a line what runs now, or what does not and why. Where nothing was to be exchanged, that is the files.
impl std::fmt::Display for Swap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        fn list<T: std::fmt::Display>(all: &[T]) -> String {
            const NAMED: usize = 5;
            let mut words: Vec<String> = all.iter().take(NAMED).map(T::to_string).collect();
            if all.len() > NAMED {
                words.push(format!("{} more", all.len() - NAMED));
            }
            words.join(", ")
        }
        let name = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
        match (&self.obstacles[..], &self.outdated[..]) {
            ([], _) if self.is_nothing() => {
                f.write_str(&list(&self.files.keys().map(name).collect::<Vec<_>>()))
            }
            ([], []) => f.write_str(&list(&self.swapped)),
            ([], outdated) => {
                write!(f, "{}; made earlier and not made again: {}", list(&self.swapped), list(outdated))
            }
            (obstacles, _) => f.write_str(&list(obstacles)),
        }
    }
}

impl std::fmt::Display for SwapObstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.file.rsplit('/').next().unwrap_or(&self.file);
        // What a compiler says has several lines.
        let reason = self.reason.split_whitespace().collect::<Vec<_>>().join(" ");
        match reason.starts_with(&self.name) {
            true => write!(f, "{reason} ({file}:{})", self.line),
            false => write!(f, "{} ({file}:{}): {reason}", self.name, self.line),
        }
    }
}

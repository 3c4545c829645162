//! What is offered on a machine that can run no code yet: F# or Python, in one answer. Which can be had is looked up in `kernels`.

use std::fmt;
use std::path::PathBuf;

/// What a session's code can be run by, that this program can install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Fsharp,
    Python,
}

/// A runtime that is offered.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) runtime: Runtime,
    /// The folder that it would be in.
    pub(crate) folder: PathBuf,
    /// What must be on the machine before it can be installed, and is not.
    pub(crate) needs: Option<&'static str>,
}

impl Runtime {
    /// The name of the kind of sessions that it runs.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Fsharp => "fsharp",
            Self::Python => "python",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Fsharp => "F#",
            Self::Python => "Python",
        }
    }

    fn brought(self) -> &'static str {
        match self {
            Self::Fsharp => "a .NET SDK from Microsoft",
            Self::Python => "ipykernel from PyPI",
        }
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (title, brought) = (self.runtime.title(), self.runtime.brought());
        write!(f, "{title}: {brought}, under {}", self.folder.display())?;
        self.needs.map_or(Ok(()), |needs| write!(f, " (needs {needs} first)"))
    }
}

/// The commands that install what is offered, for those who cannot be asked.
pub(crate) fn commands(offers: &[Offer]) -> String {
    let command = |Offer { runtime, needs, .. }: &Offer| {
        let needs = needs.map(|needs| format!(" (needs {needs} first)")).unwrap_or_default();
        format!("`mainstay kernel install {} --yes` gets {}{needs}", runtime.kind(), runtime.title())
    };
    offers.iter().map(command).collect::<Vec<_>>().join(", ")
}

/// The offer that Enter alone takes: the first that can be had at once.
pub(crate) fn preferred(offers: &[Offer]) -> Option<&Offer> {
    offers.iter().find(|offer| offer.needs.is_none())
}

/// The question which of the offers is taken.
pub(crate) fn question(offers: &[Offer]) -> String {
    let lines = offers.iter().enumerate().map(|(index, offer)| format!("  {}  {offer}\n", index + 1));
    let enter = preferred(offers).map(|offer| format!(", Enter for {}", offer.runtime.title()));
    format!("{}Install which? [1 or 2{}; n for none] ", lines.collect::<String>(), enter.unwrap_or_default())
}

/// What the user has answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This is to be installed.
    Install(Runtime),
    /// Nothing is to be installed.
    Nothing,
    /// Nobody can tell what is meant.
    Unclear,
}

/// Reads an answer: a number, the name of a language, or nothing for what is preferred.
pub(crate) fn answer(text: &str, offers: &[Offer]) -> Answer {
    let text = text.trim().to_ascii_lowercase();
    let named = |(index, offer): (usize, &Offer)| {
        let runtime = offer.runtime;
        let is_meant = text == (index + 1).to_string()
            || text == runtime.kind()
            || text == runtime.title().to_ascii_lowercase();
        is_meant.then_some(runtime)
    };
    match text.as_str() {
        "n" | "no" | "q" => Answer::Nothing,
        "" | "y" | "yes" => preferred(offers).map_or(Answer::Nothing, |offer| Answer::Install(offer.runtime)),
        _ => offers.iter().enumerate().find_map(named).map_or(Answer::Unclear, Answer::Install),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(fsharp: Option<&'static str>, python: Option<&'static str>) -> [Offer; 2] {
        [
            Offer { runtime: Runtime::Fsharp, folder: "/home/ada/.mainstay/dotnet".into(), needs: fsharp },
            Offer { runtime: Runtime::Python, folder: "/home/ada/.mainstay/jupyter".into(), needs: python },
        ]
    }

    #[test]
    fn the_question_says_what_each_answer_brings_and_where() {
        insta::assert_snapshot!(question(&offers(None, None)), @"
          1  F#: a .NET SDK from Microsoft, under /home/ada/.mainstay/dotnet
          2  Python: ipykernel from PyPI, under /home/ada/.mainstay/jupyter
        Install which? [1 or 2, Enter for F#; n for none]
        ");
        insta::assert_snapshot!(question(&offers(Some("curl and tar"), None)), @"
          1  F#: a .NET SDK from Microsoft, under /home/ada/.mainstay/dotnet (needs curl and tar first)
          2  Python: ipykernel from PyPI, under /home/ada/.mainstay/jupyter
        Install which? [1 or 2, Enter for Python; n for none]
        ");
    }

    #[test]
    fn numbers_and_names_are_answers_and_enter_takes_what_can_be_had() {
        let both = offers(None, None);
        for (text, meant) in [("1", Runtime::Fsharp), ("F#\n", Runtime::Fsharp), ("", Runtime::Fsharp)] {
            assert_eq!(answer(text, &both), Answer::Install(meant), "{text}");
        }
        for text in ["2", "python", "Python\n"] {
            assert_eq!(answer(text, &both), Answer::Install(Runtime::Python), "{text}");
        }
        assert_eq!(answer("\n", &offers(Some("curl"), None)), Answer::Install(Runtime::Python));
        assert_eq!(answer("\n", &offers(Some("curl"), Some("python3"))), Answer::Nothing);
        assert_eq!(answer("n\n", &both), Answer::Nothing);
        assert_eq!(answer("3\n", &both), Answer::Unclear);
    }

    #[test]
    fn the_commands_are_named_with_what_they_need() {
        assert_eq!(
            commands(&offers(None, Some("python3"))),
            "`mainstay kernel install fsharp --yes` gets F#, `mainstay kernel install python --yes` gets Python (needs python3 first)"
        );
    }
}

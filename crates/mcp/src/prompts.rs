//! Prompts: what people have their agent begin with, by a word. What they say names tools of ours; what they are about, a cell that
//! failed for one, is in them.

use std::ops::ControlFlow;

use mainstay_formats::exchange::{Item, Kernel, item_markdown};
use mainstay_model::{Error, SessionId};
use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, ResourceContents, Role,
};
use serde_json::Value;

use super::call::Call;
use super::cells;
use super::error;
use super::eval::SendCode;
use super::explore::{ExploreType, FindSymbols};
use super::query::CheckCode;
use super::resources::MARKDOWN;
use super::resources::uri::{Address, Part};
use super::text::{TEXT_BYTES, shortened};
use super::tool::Tool;

/// A prompt of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    ExploreType,
    TddCycle,
    RepairError,
}

/// An argument of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Type,
    Goal,
    Session,
    Cell,
}

impl Argument {
    const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Goal => "goal",
            Self::Session => "session",
            Self::Cell => "cell",
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Self::Type => "The type's name, as code would write it.",
            Self::Goal => "What is to be there in the end.",
            Self::Session => "Its id, the end of it, or its name; the one in use without it.",
            Self::Cell => "The cell's number in the transcript; the last that failed without it.",
        }
    }

    const fn is_required(self) -> bool {
        match self {
            Self::Type | Self::Goal => true,
            Self::Session | Self::Cell => false,
        }
    }
}

impl Named {
    const ALL: [Self; 3] = [Self::ExploreType, Self::TddCycle, Self::RepairError];

    /// The one with a name.
    pub(super) fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|prompt| prompt.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::ExploreType => "explore_type",
            Self::TddCycle => "tdd_cycle",
            Self::RepairError => "repair_error",
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Self::ExploreType => "Learn what a type is for and how it is used, with code that runs.",
            Self::TddCycle => "Reach a goal test first, in small steps that each run.",
            Self::RepairError => "Find out why a cell failed, and make it run.",
        }
    }

    const fn arguments(self) -> &'static [Argument] {
        match self {
            Self::ExploreType => &[Argument::Type],
            Self::TddCycle => &[Argument::Goal],
            Self::RepairError => &[Argument::Session, Argument::Cell],
        }
    }

    /// Its argument with a name.
    pub(super) fn argument(self, name: &str) -> Option<Argument> {
        self.arguments().iter().copied().find(|argument| argument.name() == name)
    }
}

/// Returns every prompt that the server offers.
pub(super) fn list() -> Vec<Prompt> {
    let argument = |argument: &Argument| {
        PromptArgument::new(argument.name())
            .with_description(argument.describe())
            .with_required(argument.is_required())
    };
    Named::ALL
        .into_iter()
        .map(|prompt| {
            let arguments = prompt.arguments().iter().map(argument).collect();
            Prompt::new(prompt.name(), Some(prompt.describe()), Some(arguments))
        })
        .collect()
}

/// What was given for a prompt's arguments: each is text and known.
struct PromptArguments(JsonObject);

impl PromptArguments {
    fn read(prompt: Named, arguments: JsonObject) -> Result<Self, ErrorData> {
        for (name, value) in &arguments {
            if prompt.argument(name).is_none() {
                return Err(invalid(format!("`{}` has no argument `{name}`", prompt.name())));
            }
            if !value.is_string() {
                return Err(invalid(format!("`{name}` must be text")));
            }
        }
        Ok(Self(arguments))
    }

    /// Nothing where it is blank, as clients send what people left out.
    fn text(&self, argument: Argument) -> Option<&str> {
        self.0.get(argument.name()).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    fn required(&self, argument: Argument) -> Result<&str, ErrorData> {
        self.text(argument).ok_or_else(|| invalid(format!("the argument `{}` is missing", argument.name())))
    }
}

fn invalid(reason: String) -> ErrorData {
    ErrorData::invalid_params(format!("{reason}. prompts/list has what each prompt takes"), None)
}

/// What a prompt says.
///
/// # Errors
/// Invalid params where there is no such prompt, its arguments are not of its form, or what they name is not there.
pub(super) async fn get(
    call: &Call,
    name: &str,
    arguments: JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let prompt = Named::read(name).ok_or_else(|| invalid(format!("there is no prompt `{name}`")))?;
    let given = PromptArguments::read(prompt, arguments)?;
    let messages = match prompt {
        Named::ExploreType => vec![said(explore_type(given.required(Argument::Type)?))],
        Named::TddCycle => vec![said(tdd_cycle(given.required(Argument::Goal)?))],
        Named::RepairError => {
            let number = given.text(Argument::Cell).map(str::parse).transpose();
            let number = number.map_err(|_| invalid("`cell` must be a number".to_owned()))?;
            repair_error(call, given.text(Argument::Session), number)
                .await
                .map_err(|error| error::of_protocol(&error))?
        }
    };
    Ok(GetPromptResult::new(messages).with_description(prompt.describe()))
}

fn said(text: String) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}

fn explore_type(name: &str) -> String {
    format!(
        "Explain the type `{name}` to me.\n\n\
         1. Call `{explore}` with its name; where it is not found, `{find}` with part of it.\n\
         2. Say what it is for, and which of its members matter most.\n\
         3. Show two or three uses of it, each run with `{run}`, from the simplest on.\n\
         4. Name what goes wrong easily with it.",
        explore = ExploreType::NAME,
        find = FindSymbols::NAME,
        run = SendCode::NAME,
    )
}

fn tdd_cycle(goal: &str) -> String {
    format!(
        "Work test first, in the live F# session, towards this goal:\n\n{goal}\n\n\
         Go round in small steps:\n\
         1. Write the smallest test that fails for want of the next piece, as a function that raises where it does not hold. Run \
         it with `{run}` and see it fail for that reason.\n\
         2. Write the least code that lets it hold. `{check}` tells errors without running anything. Run the code, then all tests.\n\
         3. Make the code simpler while the tests hold.\n\n\
         Definitions stay in the session: send what changed, not everything. Say at each step what the test showed. End with the code and the \
         tests as they are, in one piece each.",
        run = SendCode::NAME,
        check = CheckCode::NAME,
    )
}

async fn repair_error(
    call: &Call,
    session: Option<&str>,
    number: Option<u64>,
) -> Result<Vec<PromptMessage>, Error> {
    let argument = |argument: Argument, reason: &str| Error::InvalidArgument {
        argument: argument.name().to_owned(),
        reason: reason.to_owned(),
    };
    let session = call
        .find(session)
        .await?
        .ok_or_else(|| argument(Argument::Session, "there is no session to take a cell of"))?;
    let (number, item, kernel) = match number {
        Some(number) => {
            let (header, item) = cells::find(call.client(), session, number).await?;
            (number, item.map(|(_, item)| item), Kernel::of_header(&header))
        }
        None => {
            let (kernel, found) = last_failed(call, session).await?;
            let (number, item) = found.unzip();
            (number.unwrap_or_default(), item, kernel)
        }
    };
    let item =
        item.ok_or_else(|| argument(Argument::Cell, "the session has no such cell, or none that failed"))?;
    let uri = Address::of(session.to_string(), Part::Cell { number }).to_string();
    let text = shortened(item_markdown(&kernel, &item), TEXT_BYTES);
    let cell = ResourceContents::text(text.trim_start(), uri).with_mime_type(MARKDOWN);
    let ask = format!(
        "Cell {number} of session {session} failed; it is attached with what came of it.\n\n\
         1. Say in a sentence why it failed.\n\
         2. Look up what it misused, where that is unclear, with `{explore}` or `{find}`.\n\
         3. Try the repair with `{check}`, then run it with `{run}` (sessionId `{session}`).\n\
         4. Show what you changed, and nothing else of the code.",
        session = session.short(),
        explore = ExploreType::NAME,
        find = FindSymbols::NAME,
        check = CheckCode::NAME,
        run = SendCode::NAME,
    );
    Ok(vec![said(ask), PromptMessage::new(Role::User, ContentBlock::resource(cell))])
}

/// The newest cell that failed, with its number.
async fn last_failed(call: &Call, session: SessionId) -> Result<(Kernel, Option<(u64, Item)>), Error> {
    let mut last = None;
    let header = cells::visit(call.client(), session, |place, item| {
        if cells::has_failed(&item) {
            last = Some((place.number, item));
        }
        ControlFlow::Continue(())
    })
    .await?;
    Ok((Kernel::of_header(&header), last))
}

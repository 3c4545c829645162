//! What the keys do beyond moving and deleting: Enter runs or begins a new line, Alt-Enter always begins one.
//!
//! The editor has no place for indentation: it inserts a bare line end. So Enter is two of its events, itself and the one that
//! accepts a hint; the validator, which is asked in between, leaves the indentation where the hint is taken from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use mainstay_kernel::fsharp::{indentation, needs_more};
use reedline::{
    DefaultHinter, EditCommand, EditMode, Emacs, Hinter, History, PromptEditMode, ReedlineEvent,
    ReedlineRawEvent, ValidationResult, Validator, default_emacs_keybindings,
};

use crate::command::{self, PromptLanguage};
use crate::completeness::{self, CompletenessCheck};
use crate::history_cache::is_secret;
use crate::line_prompt::Bell;

/// The name under which the keys know the completion menu.
pub(crate) const MENU: &str = "completion";

/// What the parts of the editor tell each other about the Enter that is being handled.
#[derive(Debug, Default)]
pub(crate) struct Enter {
    state: Mutex<EnterState>,
}

#[derive(Debug, Default)]
struct EnterState {
    /// A new line is wanted whatever the code is.
    is_forced: bool,
    /// More is there already: another program types, which sends whole lines with a layout of their own.
    is_followed: bool,
    /// The next hint that is taken is the indentation, even where there is none.
    is_awaited: bool,
    indentation: Option<String>,
}

impl Enter {
    fn with<T>(&self, change: impl FnOnce(&mut EnterState) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The keys of Emacs, and those named above.
pub(crate) struct Keys {
    emacs: Emacs,
    enter: Arc<Enter>,
    bell: Arc<Bell>,
}

impl Keys {
    /// The keys of a prompt.
    pub(crate) fn new(enter: Arc<Enter>, bell: Arc<Bell>) -> Self {
        let mut keys = default_emacs_keybindings();
        let tab =
            ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]);
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, tab);
        keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
        // It would open an editor that is not set.
        keys.remove_binding(KeyModifiers::CONTROL, KeyCode::Char('o'));
        Self { emacs: Emacs::new(keys), enter, bell }
    }

    fn enter(&self, is_forced: bool) -> ReedlineEvent {
        if self.bell.is_searching() {
            return ReedlineEvent::Enter;
        }
        let is_followed = crossterm::event::poll(Duration::ZERO).unwrap_or(false);
        self.enter.with(|state| {
            state.is_forced |= is_forced;
            state.is_followed = is_followed;
            state.is_awaited = true;
        });
        let mut events = vec![ReedlineEvent::Enter, ReedlineEvent::HistoryHintComplete];
        if is_forced {
            // A menu would take the key.
            events.insert(0, ReedlineEvent::Esc);
        }
        // A search takes no sequence of events.
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Multiple(events), ReedlineEvent::Enter])
    }
}

impl EditMode for Keys {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        match &event {
            Event::Key(KeyEvent { code: KeyCode::Enter, modifiers, .. }) => {
                return self.enter(!modifiers.is_empty());
            }
            // An Enter that was typed ahead, before the terminal was ours.
            Event::Key(KeyEvent { code: KeyCode::Char('j'), modifiers, .. })
                if modifiers.contains(KeyModifiers::CONTROL) =>
            {
                return self.enter(modifiers.contains(KeyModifiers::ALT));
            }
            Event::Paste(text) => return ReedlineEvent::Edit(vec![EditCommand::InsertString(pasted(text))]),
            _ => {}
        }
        ReedlineRawEvent::try_from(event).map_or(ReedlineEvent::None, |event| self.emacs.parse_event(event))
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.emacs.edit_mode()
    }
}

/// Line ends as the editor has them, blanks for tabs (F# allows none), no other control characters, and no last line end.
fn pasted(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
    let kept: String = lines.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    kept.trim_end_matches('\n').to_owned()
}

/// Says whether Enter runs what was typed.
pub(crate) struct SubmitValidator {
    enter: Arc<Enter>,
    rule: SubmitRule,
}

/// By what it is judged.
pub(crate) enum SubmitRule {
    /// The layout of F#.
    Fsharp,
    /// What the session's kernel says.
    Kernel(CompletenessCheck),
    /// Words are whole when they are said to be.
    Words,
}

impl SubmitRule {
    const fn prompt_language(&self) -> PromptLanguage {
        match self {
            Self::Fsharp => PromptLanguage::Fsharp,
            Self::Kernel(_) => PromptLanguage::Foreign,
            Self::Words => PromptLanguage::Words,
        }
    }

    /// What the next line begins with; none where there is none.
    fn next_line(&self, code: &str) -> Option<String> {
        match self {
            Self::Fsharp => needs_more(code).then(|| " ".repeat(indentation(code))),
            Self::Kernel(finished) => finished.next_line(code),
            Self::Words => None,
        }
    }

    /// What a line begins with that is wanted, whatever the code is.
    fn forced_line(&self, code: &str) -> String {
        match self {
            Self::Fsharp => " ".repeat(indentation(code)),
            Self::Kernel(_) => completeness::indentation(code).to_owned(),
            Self::Words => String::new(),
        }
    }
}

impl SubmitValidator {
    /// A judge that tells `enter` the indentation of the line that begins.
    pub(crate) fn new(enter: Arc<Enter>, rule: SubmitRule) -> Self {
        Self { enter, rule }
    }

    /// What the line begins with that Enter begins; none where it runs what was typed.
    fn next_line(&self, code: &str, is_forced: bool, is_followed: bool) -> Option<String> {
        if is_forced {
            return Some(self.rule.forced_line(code));
        }
        if command::read(code, self.rule.prompt_language()).is_some() || is_secret(code) {
            return None;
        }
        let next_line = self.rule.next_line(code);
        if is_followed {
            // An empty line may stand in the middle of what is sent.
            let goes_on = next_line.is_some() || (code.contains('\n') && !code.trim_end().ends_with(";;"));
            return goes_on.then(String::new);
        }
        next_line
    }
}

impl Validator for SubmitValidator {
    fn validate(&self, code: &str) -> ValidationResult {
        let (is_forced, is_followed) = self
            .enter
            .with(|state| (std::mem::take(&mut state.is_forced), std::mem::take(&mut state.is_followed)));
        match self.next_line(code, is_forced, is_followed) {
            Some(indentation) => {
                self.enter.with(|state| state.indentation = Some(indentation));
                ValidationResult::Incomplete
            }
            None => {
                self.enter.with(|state| *state = EnterState::default());
                ValidationResult::Complete
            }
        }
    }
}

/// What was typed before and begins like this; after an Enter, the indentation of the new line.
pub(crate) struct Hints {
    history: DefaultHinter,
    enter: Arc<Enter>,
}

impl Hints {
    /// Hints in the style of `history`.
    pub(crate) fn new(history: DefaultHinter, enter: Arc<Enter>) -> Self {
        Self { history, enter }
    }
}

impl Hinter for Hints {
    fn handle(
        &mut self,
        line: &str,
        at: usize,
        history: &dyn History,
        is_coloured: bool,
        folder: &str,
    ) -> String {
        self.history.handle(line, at, history, is_coloured, folder)
    }

    fn complete_hint(&self) -> String {
        let (is_awaited, indentation) =
            self.enter.with(|state| (std::mem::take(&mut state.is_awaited), state.indentation.take()));
        match indentation {
            Some(indentation) => indentation,
            None if is_awaited => String::new(),
            None => self.history.complete_hint(),
        }
    }

    fn next_hint_token(&self) -> String {
        self.history.next_hint_token()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Parts {
        keys: Keys,
        judge: SubmitValidator,
        hints: Hints,
    }

    fn parts() -> Parts {
        let enter = Arc::new(Enter::default());
        Parts {
            keys: Keys::new(Arc::clone(&enter), Arc::default()),
            judge: SubmitValidator::new(Arc::clone(&enter), SubmitRule::Fsharp),
            hints: Hints::new(DefaultHinter::default(), enter),
        }
    }

    fn press(keys: &mut Keys, modifiers: KeyModifiers) {
        let event = Event::Key(KeyEvent::new(KeyCode::Enter, modifiers));
        keys.parse_event(ReedlineRawEvent::try_from(event).unwrap());
    }

    fn is_complete(result: ValidationResult) -> bool {
        matches!(result, ValidationResult::Complete)
    }

    #[test]
    fn enter_on_unfinished_code_leaves_the_indentation_where_the_hint_is_taken() {
        let Parts { mut keys, judge, hints } = parts();
        press(&mut keys, KeyModifiers::NONE);
        assert!(!is_complete(judge.validate("let f x =")));
        assert_eq!(hints.complete_hint(), "    ");
        assert_eq!(hints.complete_hint(), "", "it is taken once");
    }

    #[test]
    fn alt_enter_begins_a_new_line_once() {
        let Parts { mut keys, judge, .. } = parts();
        press(&mut keys, KeyModifiers::ALT);
        assert!(!is_complete(judge.validate("1")));
        press(&mut keys, KeyModifiers::NONE);
        assert!(is_complete(judge.validate("1")));
    }

    #[test]
    fn lines_that_another_program_sends_keep_their_own_layout_up_to_the_last() {
        let Parts { judge, hints, .. } = parts();
        let follow = |code: &str| {
            hints.enter.with(|state| state.is_followed = true);
            let goes_on = !is_complete(judge.validate(code));
            hints.enter.with(|state| state.is_awaited = true);
            (goes_on, hints.complete_hint())
        };
        assert_eq!(follow("let f x ="), (true, String::new()));
        assert_eq!(follow("let f x =\n    let y = x\n"), (true, String::new()), "an empty line ends nothing");
        assert_eq!(follow("let f x =\n    x\n;;"), (false, String::new()));
        assert_eq!(follow("open System"), (false, String::new()), "it is whole");
        assert!(is_complete(judge.validate("let f x =\n    x\n")), "nothing follows");
    }

    #[test]
    fn commands_are_always_complete() {
        let Parts { judge, .. } = parts();
        assert!(is_complete(judge.validate(":new in")));
    }

    #[test]
    fn a_line_that_is_to_be_kept_nowhere_goes_on_in_no_other() {
        let Parts { judge, .. } = parts();
        assert!(is_complete(judge.validate(" let token =")));
        assert!(!is_complete(judge.validate(" let f x =\n    let y =")), "it was pasted");
    }

    #[test]
    fn what_is_pasted_comes_in_as_one_piece_of_clean_text() {
        assert_eq!(pasted("let f x =\r\n\tx\u{1b}[31m\r"), "let f x =\n    x[31m");
    }

    #[test]
    fn enter_says_words_and_alt_enter_begins_a_line_of_them() {
        let Parts { mut keys, hints, .. } = parts();
        let judge = SubmitValidator::new(Arc::clone(&hints.enter), SubmitRule::Words);
        press(&mut keys, KeyModifiers::NONE);
        assert!(is_complete(judge.validate("let f x =")));
        press(&mut keys, KeyModifiers::ALT);
        assert!(!is_complete(judge.validate("let f x =")));
        assert_eq!(hints.complete_hint(), "");
    }
}

//! Asking the person at the prompt what their own code asks, while it runs.

use mainstay_model::ask::{Ask, END_OF_INPUT, Question};
use mainstay_model::{AskId, Error};
use mainstay_terminal::{note, printable, show_error};
use mainstay_terminal_client::ask::question_text;
use mainstay_terminal_client::link::is_loss;
use unicode_width::UnicodeWidthStr;

use crate::editor::{Editor, Typed, clear_line};
use crate::evaluation::Progress;
use crate::line_prompt::LinePrompt;
use crate::prompt_loop::{PromptLoop, no_terminal};

/// Columns that blanks around a prompt may take.
const MARGIN: usize = 8;

impl PromptLoop {
    /// Asks what the submission's code asks, until nothing is open or the code is to stop.
    pub(crate) async fn ask_person(&mut self, progress: &mut Progress) -> Result<(), Error> {
        while !self.link.is_lost()
            && let Some(ask) = progress.open_ask().cloned()
        {
            self.ask_until_it_ends(&ask, progress).await.map_err(|error| no_terminal(&error))?;
        }
        Ok(())
    }

    async fn ask_until_it_ends(&mut self, ask: &Ask, progress: &mut Progress) -> std::io::Result<()> {
        let prompt = LinePrompt::question(&begin(&ask.question, progress)?);
        let mut editor = Editor::for_answers(self.paint, ask.question.is_secret())?;
        editor.put(progress.take_kept_answer(ask.ask))?;
        while !self.link.is_lost() && progress.open_ask().is_some_and(|open| open.ask == ask.ask) {
            let mut reading = editor.read(prompt.clone())?;
            let mut held = Vec::new();
            let done = self
                .listen(&mut reading, &editor.bell(), |_, event| {
                    held.push(event);
                    true
                })
                .await;
            let typed = editor.finish(done, reading.prompt())?;
            held.iter().for_each(|event| self.observe(event, progress));
            progress.end_line();
            match typed {
                Typed::Text(text) => self.answer_own(ask.ask, &text, progress).await,
                Typed::Dropped => self.want_stop(progress).await,
                Typed::End if ask.question.input_read().is_some() => {
                    self.answer_own(ask.ask, END_OF_INPUT, progress).await;
                }
                Typed::End => {
                    progress.leave_asks_to_others();
                    let id = ask.ask.short();
                    note(&format!("`mainstay ask answer {id} ANSWER` answers it; Ctrl-C stops it"));
                }
                Typed::Interrupted if self.link.is_lost() => {
                    progress.keep_answer(ask.ask, editor.take_text());
                }
                Typed::Interrupted => {}
            }
        }
        Ok(())
    }

    /// Passes on what was typed. What is no answer is asked again.
    async fn answer_own(&mut self, ask: AskId, text: &str, progress: &mut Progress) {
        match progress.answer(&self.link.client, ask, text).await {
            Ok(()) => {}
            // The next daemon is given it.
            Err(error) if is_loss(&error) => {}
            Err(error) => show_error(&error),
        }
    }
}

/// Shows all of a question but its last line, which is the prompt. One that the code has printed itself gives way to it.
fn begin(question: &Question, progress: &mut Progress) -> std::io::Result<String> {
    let text = question_text(question);
    let text = printable(&text);
    let columns = usize::from(crossterm::terminal::size()?.0);
    if progress.has_begun_line(&text) && text.width() + MARGIN < columns {
        clear_line()?;
    } else {
        progress.end_line();
    }
    Ok(match text.rsplit_once('\n') {
        Some((above, last)) => {
            println!("{above}");
            last.to_owned()
        }
        None => text.into_owned(),
    })
}

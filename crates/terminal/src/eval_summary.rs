//! What came of an eval, beside its output and its value.

use mainstay_model::{Severity, WorkerExit};
use mainstay_protocol::view::EvalView;

use super::{Paint, Tone, diagnostic_text, printable, printed};

/// What came of an eval, beside what it printed: to be shown after its output. Code that calls `exit` has done what it wanted:
/// that is told, and is no error.
pub fn eval_summary(eval: &EvalView, own_exit: Option<i32>, code: &str, paint: Paint) -> String {
    let mut text = String::new();
    for diagnostic in eval.diagnostics.iter().filter(|diagnostic| diagnostic.severity != Severity::Hidden) {
        text.push_str(&diagnostic_text(diagnostic, code, paint));
    }
    if let Some(error) = &eval.error {
        let (tone, head) = match own_exit {
            // Python's message may be the code and nothing else.
            Some(code)
                if ["", "None"].contains(&error.message.trim())
                    || error.message.trim() == code.to_string() =>
            {
                (Tone::Faint, WorkerExit::Code(code).of_code())
            }
            Some(_) => (Tone::Faint, error.message.clone()),
            None => (Tone::Error, format!("{}: {}", error.kind, error.message)),
        };
        text.push_str(&paint.tone(tone, &printable(&head)));
        text.push('\n');
        if let Some(stack) = error.stack.as_ref().filter(|_| own_exit.is_none()) {
            match error.coloured_stack.as_ref().filter(|_| paint.is_on()) {
                Some(coloured) => text.push_str(&printed(coloured.trim_end(), paint)),
                None => text.push_str(&paint.tone(Tone::Faint, &printable(stack.trim_end()))),
            }
            text.push('\n');
        }
    }
    if eval.output_cut {
        text.push_str(
            &paint.tone(Tone::Warning, "output over `output-bytes-per-job` was left out, but for its end"),
        );
        text.push('\n');
    }
    text
}

//! The command `mainstay review`, which suggests better code.

use std::fs::File;
use std::io::Read;
use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::{Diagnostic, Error, Severity};
use mainstay_protocol::operations::ReviewCode;
use mainstay_runner::query::Review as Reviewed;
use mainstay_terminal::{Paint, Tone, counted, note, printable};
use mainstay_terminal_client::connect::connect_or_start;

use super::eval::utf8;
use super::target::Target;

/// Says what in F# code could be written more plainly. It looks at the syntax alone, and nothing runs.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay review Cart.fs\n  git show HEAD:Cart.fs | mainstay review -\n\n`mainstay explain` lists the rules, and shows one with its examples: `mainstay explain FSR001`.\nExit codes: 0 the code was reviewed, whatever is suggested; 1 it cannot be parsed, 2 the command line was wrong."
)]
pub(super) struct Review {
    /// The file, or - for what comes from standard input
    file: String,

    #[command(flatten)]
    target: Target,

    /// Print the suggestions as JSON
    #[arg(long)]
    json: bool,
}

impl Review {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { file, target, json } = self;
        let code = read(&file)?;
        let connection = connect_or_start(home, "cli").await?;
        let client = &connection.client;
        let session = target.in_use(home, client).await?.session.to_string();
        let review = client.call(ReviewCode { session, code }).await?;
        if json {
            super::print_json(&review)?;
        } else {
            print!("{}", review_text(&review, &file, Paint::stdout()));
            if review.remarks.is_empty() {
                note("nothing to suggest");
            }
        }
        Ok(if review.is_parsed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn read(file: &str) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().read_to_end(&mut bytes),
        path => File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.map_err(|error| Error::InvalidArgument { argument: file.to_owned(), reason: error.to_string() })?;
    utf8(bytes)
}

/// A remark a line, as compilers write it.
fn review_text(review: &Reviewed, file: &str, paint: Paint) -> String {
    let Reviewed { is_parsed: _, remarks, left_out } = review;
    let line = |Diagnostic { severity, code, message, start, .. }: &Diagnostic| {
        let tone = match severity {
            Severity::Error => Tone::Error,
            Severity::Warning => Tone::Warning,
            Severity::Info | Severity::Hidden => Tone::Name,
        };
        let place = paint.tone(Tone::Faint, &format!("{file}:{}:{}", start.line, start.column));
        format!("{place} {} {}\n", paint.tone(tone, code), printable(message))
    };
    let mut text: String = remarks.iter().map(line).collect();
    if *left_out > 0 {
        let more = format!("… {} more\n", counted(*left_out, "suggestion"));
        text.push_str(&paint.tone(Tone::Faint, &more));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::TextPosition;

    #[test]
    fn a_suggestion_stands_with_its_place() {
        let remark = Diagnostic {
            severity: Severity::Info,
            code: "FSR001".to_owned(),
            message: "the condition is the value already: `a`".to_owned(),
            file: None,
            start: TextPosition { line: 3, column: 5 },
            end: TextPosition { line: 3, column: 9 },
        };
        let review = Reviewed { is_parsed: true, remarks: vec![remark], left_out: 2 };
        insta::assert_snapshot!(review_text(&review, "Cart.fs", Paint::plain()), @"
        Cart.fs:3:5 FSR001 the condition is the value already: `a`
        … 2 suggestions more
        ");
    }
}

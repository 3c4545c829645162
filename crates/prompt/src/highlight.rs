//! Code in colours, while it is typed.

use std::ops::Range;

use mainstay_highlight::{self as highlight, Syntax};
use mainstay_model::Language;
use mainstay_terminal::syntax_colour;
use reedline::{Color, Highlighter, StyledText};

use crate::command::{self, PromptLanguage};

/// The highlighter of the prompt.
pub(crate) struct CodeHighlighter {
    /// What commands stand beside.
    prompt_language: PromptLanguage,
    /// What the code is written in, if that is known, and it is code.
    language: Option<Language>,
}

impl CodeHighlighter {
    /// For this language, as far as it is known.
    pub(crate) const fn new(prompt_language: PromptLanguage, language: Option<Language>) -> Self {
        Self { prompt_language, language }
    }

    fn spans(&self, code: &str) -> Vec<(Syntax, Range<usize>)> {
        match self.command_end(code) {
            Some(end) => vec![(Syntax::Keyword, 0..end), (Syntax::Plain, end..code.len())],
            None => highlight::spans(code, self.language.as_ref()),
        }
    }

    /// Where the name of a command ends, if the text begins with one.
    fn command_end(&self, code: &str) -> Option<usize> {
        let name = code.split_whitespace().next()?;
        (command::named(name, self.prompt_language).is_some() && code.starts_with(name)).then_some(name.len())
    }
}

impl Highlighter for CodeHighlighter {
    fn highlight(&self, code: &str, _cursor: usize) -> StyledText {
        let mut styled = StyledText::new();
        for (syntax, range) in self.spans(code) {
            let style = syntax_colour(syntax).map_or_else(Default::default, Color::normal);
            // A grammar that splits a character leaves the rest without colour.
            styled.push((style, code.get(range).unwrap_or_default().to_owned()));
        }
        if styled.raw_string() == code {
            return styled;
        }
        let mut plain = StyledText::new();
        plain.push((Default::default(), code.to_owned()));
        plain
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::SessionKind;

    use super::*;

    fn of(kind: &str) -> CodeHighlighter {
        let kind = SessionKind::new(kind).unwrap();
        CodeHighlighter::new(PromptLanguage::of(&kind), Language::of(&kind))
    }

    /// One line for each piece that has a colour.
    fn shown(kind: &str, code: &str) -> String {
        let coloured = of(kind).spans(code).into_iter().filter(|(syntax, _)| *syntax != Syntax::Plain);
        coloured.map(|(syntax, range)| format!("{syntax:?}:{}\n", &code[range])).collect()
    }

    #[test]
    fn a_command() {
        insta::assert_snapshot!(shown("fsharp", ":switch other"), @"Keyword::switch");
        insta::assert_snapshot!(shown("python", "/fork 5"), @"Keyword:/fork");
    }

    #[test]
    fn code_of_the_session_s_language() {
        insta::assert_snapshot!(shown("python3", "x = not 'a'"), @r"
        Operator:=
        Keyword:not
        Text:'a'
        ");
        insta::assert_snapshot!(shown("agent", "if it is not there, say 'no'"), @"");
    }

    #[test]
    fn every_text_is_painted_as_it_is() {
        for kind in ["fsharp", "python", "agent", "octave"] {
            let highlighter = of(kind);
            for code in
                ["", "é", "let größe = \"漢字🙂\"", "\u{1b}[31m", "let x =\n    1\n", "'", "(((", "$\"{"]
            {
                assert_eq!(highlighter.highlight(code, 0).raw_string(), code);
            }
        }
    }
}

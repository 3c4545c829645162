//! Code by its syntax, for whoever colours it: the prompt and the page. Source: tree-sitter's grammars.

mod bash;
mod fsharp;
mod python;
mod typescript;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use mainstay_model::Language;
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// How long reading a code may take: with some grammars it grows with the square of how deep the code is nested.
const PATIENCE: Duration = Duration::from_millis(250);

/// What a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// A word of the language.
    Keyword,
    /// The name of a type.
    Type,
    /// A string or a character.
    Text,
    /// A number in the code.
    Number,
    /// A sign that does something.
    Operator,
    /// What is only for people.
    Comment,
    /// Names, brackets, blanks, and what is not understood.
    Plain,
}

/// The languages whose grammar is at hand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Grammar {
    Bash,
    Fsharp,
    Python,
    /// JavaScript is written as a part of it.
    TypeScript,
}

thread_local! {
    /// Made when they are first needed; none where the library and the grammar are of versions that do not fit.
    static PARSERS: RefCell<BTreeMap<Grammar, Option<Parser>>> = const { RefCell::new(BTreeMap::new()) };
}

/// The pieces of a code, in order, with all of it; in one where the language is not known. One may end inside a character, where the
/// grammar splits it.
pub fn spans(code: &str, language: Option<&Language>) -> Vec<(Syntax, Range<usize>)> {
    let mut syntax = vec![Syntax::Plain; code.len()];
    if let Some(grammar) = language.and_then(Grammar::of) {
        let tree = PARSERS.with_borrow_mut(|parsers| {
            parse(
                parsers.entry(grammar).or_insert_with(|| grammar.parser()).as_mut()?,
                &grammar.readable(code),
            )
        });
        if let Some(tree) = tree {
            grammar.mark(&tree, &mut syntax);
        }
    }
    joined(&syntax)
}

/// None where it takes longer than colours are worth.
fn parse(parser: &mut Parser, code: &[u8]) -> Option<Tree> {
    let deadline = Instant::now() + PATIENCE;
    let mut is_late = |_: &ParseState| match Instant::now() > deadline {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let options = ParseOptions::new().progress_callback(&mut is_late);
    // The end is asked for too, and what would be behind it.
    let mut rest_from = |at, _| code.get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut rest_from, None, Some(options));
    if tree.is_none() {
        // It would go on with this code next time.
        parser.reset();
    }
    tree
}

impl Grammar {
    fn of(language: &Language) -> Option<Self> {
        match language.as_str() {
            "bash" => Some(Self::Bash),
            "fsharp" => Some(Self::Fsharp),
            "python" => Some(Self::Python),
            "javascript" | "typescript" => Some(Self::TypeScript),
            _ => None,
        }
    }

    /// A code as its grammar can read it, with each byte in its place.
    fn readable(self, code: &str) -> Cow<'_, [u8]> {
        match self {
            Self::Bash => bash::readable(code),
            Self::Fsharp | Self::Python | Self::TypeScript => Cow::Borrowed(code.as_bytes()),
        }
    }

    fn parser(self) -> Option<Parser> {
        let language = match self {
            Self::Bash => tree_sitter_bash::LANGUAGE,
            Self::Fsharp => tree_sitter_fsharp::LANGUAGE_FSHARP,
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        };
        let mut parser = Parser::new();
        parser.set_language(&language.into()).ok()?;
        Some(parser)
    }

    /// Marks the bytes of each node, then those of its parts over them. Code may be nested deeper than a stack is.
    fn mark(self, tree: &Tree, syntax: &mut [Syntax]) {
        let mut cursor = tree.walk();
        let mut parents: Vec<Node<'_>> = Vec::new();
        loop {
            let node = cursor.node();
            let (own, has_parts) = self.syntax_of(node, parents.last().copied());
            if let (Some(own), Some(bytes)) = (own, syntax.get_mut(node.byte_range())) {
                bytes.fill(own);
            }
            if has_parts && cursor.goto_first_child() {
                parents.push(node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                parents.pop();
            }
        }
    }

    /// What a node is, if that can be told from it and what it is a part of, and whether its parts can be something else.
    fn syntax_of(self, node: Node<'_>, parent: Option<Node<'_>>) -> (Option<Syntax>, bool) {
        match self {
            Self::Bash => bash::syntax_of(node),
            Self::Fsharp => fsharp::syntax_of(node, parent),
            Self::Python => python::syntax_of(node),
            Self::TypeScript => typescript::syntax_of(node),
        }
    }
}

/// What stands in a grammar of braces, or of indentation, as it is: keywords, brackets, operators.
fn syntax_of_sign(sign: &str) -> Option<Syntax> {
    match sign {
        "(" | ")" | "[" | "]" | "{" | "}" | "," | ";" | "." | ":" => Some(Syntax::Plain),
        _ if sign.starts_with(char::is_alphabetic) => Some(Syntax::Keyword),
        _ if sign.contains(['"', '\'', '`']) => None,
        _ => Some(Syntax::Operator),
    }
}

/// Neighbours of the same kind as one.
fn joined(syntax: &[Syntax]) -> Vec<(Syntax, Range<usize>)> {
    let mut start = 0;
    syntax
        .chunk_by(|a, b| a == b)
        .map(|chunk| {
            let range = start..start + chunk.len();
            start = range.end;
            (chunk[0], range)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One line for each piece that has a colour.
    pub(super) fn shown(language: &str, code: &str) -> String {
        let spans = spans(code, Some(&Language::named(language)));
        let coloured = spans.into_iter().filter(|(syntax, _)| *syntax != Syntax::Plain);
        coloured.map(|(syntax, range)| format!("{syntax:?}:{}\n", &code[range])).collect()
    }

    #[test]
    fn every_grammar_fits_the_library() {
        for grammar in [Grammar::Bash, Grammar::Fsharp, Grammar::Python, Grammar::TypeScript] {
            assert!(grammar.parser().is_some());
        }
    }

    #[test]
    fn code_of_a_language_that_is_not_known_is_one_piece() {
        let one = vec![(Syntax::Plain, 0..7)];
        assert_eq!(
            (spans("if true", None), spans("if true", Some(&Language::named("r")))),
            (one.clone(), one)
        );
        assert_eq!(spans("", None), []);
    }

    const LANGUAGES: [&str; 4] = ["bash", "fsharp", "python", "typescript"];

    fn is_whole(code: &str) {
        for language in LANGUAGES {
            let spans = spans(code, Some(&Language::named(language)));
            let end = spans.into_iter().fold(0, |end, (_, range)| {
                assert_eq!(range.start, end, "{language}");
                range.end
            });
            assert_eq!(end, code.len(), "{language}");
        }
    }

    proptest! {
        #[test]
        fn all_of_a_code_is_there_whatever_it_is(
            code in "(let |def |if |\\(|\\{|f?[\"'`]|\\$\\{|<<EOF|#|//|\\n| |é🙂|\\PC){0,60}",
        ) {
            is_whole(&code);
        }
    }

    #[test]
    fn code_that_makes_no_sense_is_there_whole() {
        ["{\u{f0000}", "{1..2\u{10ffff}", "\u{1b}[31m", "größe = '漢字🙂", "%%timeit\n(((", "\0", "\r\n"]
            .iter()
            .for_each(|code| is_whole(code));
    }

    #[test]
    fn code_may_be_nested_deeper_than_a_stack_and_takes_no_longer_than_it_is_worth() {
        let depth = 30_000;
        let code = format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        for language in LANGUAGES {
            let last = spans(&code, Some(&Language::named(language))).pop();
            assert_eq!(last.map(|(_, range)| range.end), Some(code.len()));
            assert!(!shown(language, "if").is_empty(), "{language} is coloured again");
        }
    }
}

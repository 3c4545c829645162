//! Bash, by tree-sitter's grammar of it.

use std::borrow::Cow;

use tree_sitter::Node;

use super::{Syntax, syntax_of_sign};

/// The grammar asks C's `isdigit` of a character after `{`, which reads beyond its table for one that is not ASCII. To Bash each of
/// their bytes is a part of a word.
pub(super) fn readable(code: &str) -> Cow<'_, [u8]> {
    match code.is_ascii() {
        true => Cow::Borrowed(code.as_bytes()),
        false => Cow::Owned(code.bytes().map(|byte| if byte.is_ascii() { byte } else { b'_' }).collect()),
    }
}

/// What a node is, if that can be told from it alone, and whether its parts can be something else.
pub(super) fn syntax_of(node: Node<'_>) -> (Option<Syntax>, bool) {
    match node.kind() {
        "comment" => (Some(Syntax::Comment), false),
        "string" => (Some(Syntax::Text), true),
        "raw_string" | "ansi_c_string" | "regex" => (Some(Syntax::Text), false),
        "heredoc_body" => (Some(Syntax::Text), true),
        "simple_expansion" | "expansion" | "command_substitution" => (Some(Syntax::Plain), true),
        "number" => (Some(Syntax::Number), false),
        "test_operator" => (Some(Syntax::Operator), false),
        sign if !node.is_named() => (syntax_of_sign(sign), false),
        _ => (None, true),
    }
}

#[cfg(test)]
mod tests {
    fn shown(code: &str) -> String {
        super::super::tests::shown("bash", code)
    }

    #[test]
    fn a_loop_with_strings_and_expansions() {
        let code = "for f in *.rs; do\n  if [[ -f \"$f\" && ${f%.rs} != 'x' ]]; then echo \"a $(wc -l < $f) b\" | tee out 2>&1; fi # c\ndone";
        insta::assert_snapshot!(shown(code));
    }

    #[test]
    fn a_function_with_a_variable() {
        insta::assert_snapshot!(shown("f() { local x=3; export PATH=~/bin:$PATH; return $((x + 1)); }"));
    }
}

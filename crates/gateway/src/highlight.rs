//! F# by its syntax, for whoever colours it: the prompt and the page. Source: tree-sitter's grammar of F#.

use std::cell::RefCell;
use std::ops::Range;

use tree_sitter::{Node, Parser};

/// What a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// A word of the language.
    Keyword,
    /// The name of a type.
    Type,
    /// A string or a character.
    Text,
    /// A number.
    Number,
    /// A sign that does something.
    Operator,
    /// What is only for people.
    Comment,
    /// Names, brackets, blanks, and what is not understood.
    Plain,
}

thread_local! {
    /// Made when it is first needed; none where the library and the grammar are of versions that do not fit.
    static PARSER: RefCell<Option<Parser>> = RefCell::new(fsharp_parser());
}

/// The pieces of a code, in order, with all of it. One may end inside a character, where the grammar splits it.
pub fn spans(code: &str) -> Vec<(Syntax, Range<usize>)> {
    let mut syntax = vec![Syntax::Plain; code.len()];
    let tree = PARSER.with_borrow_mut(|parser| parser.as_mut()?.parse(code, None));
    if let Some(tree) = tree {
        mark(tree.root_node(), &mut syntax);
    }
    joined(&syntax)
}

fn fsharp_parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_fsharp::LANGUAGE_FSHARP.into()).ok()?;
    Some(parser)
}

/// Marks the bytes of a node, then those of its parts over them.
fn mark(node: Node<'_>, syntax: &mut [Syntax]) {
    let (own, has_parts) = syntax_of(node);
    if let (Some(own), Some(bytes)) = (own, syntax.get_mut(node.byte_range())) {
        bytes.fill(own);
    }
    if has_parts {
        let mut cursor = node.walk();
        node.children(&mut cursor).for_each(|child| mark(child, syntax));
    }
}

/// What a node is, if that can be told from it alone, and whether its parts can be something else.
fn syntax_of(node: Node<'_>) -> (Option<Syntax>, bool) {
    match node.kind() {
        "line_comment" | "block_comment" | "xml_doc" => (Some(Syntax::Comment), false),
        "string" | "format_string" | "format_triple_quoted_string" => (Some(Syntax::Text), true),
        "triple_quoted_string" | "verbatim_string" | "char" | "bytearray" | "verbatim_bytearray" => {
            (Some(Syntax::Text), false)
        }
        "format_string_eval" => (Some(Syntax::Plain), true),
        "int" | "xint" | "int16" | "uint16" | "int32" | "uint32" | "int64" | "uint64" | "nativeint"
        | "unativeint" | "sbyte" | "byte" | "ieee32" | "ieee64" | "float" | "decimal" | "bignum" => {
            (Some(Syntax::Number), false)
        }
        "bool" | "null" => (Some(Syntax::Keyword), false),
        "infix_op" | "prefix_op" | "op_identifier" => (Some(Syntax::Operator), false),
        "type_name" | "type_argument" => (Some(Syntax::Type), true),
        kind if node.is_named() => (kind.ends_with("_type").then_some(Syntax::Type), true),
        sign => (syntax_of_sign(sign, node), false),
    }
}

/// What stands in the grammar as it is: keywords, brackets, operators.
fn syntax_of_sign(sign: &str, node: Node<'_>) -> Option<Syntax> {
    let is_in_type =
        || node.parent().is_some_and(|parent| matches!(parent.kind(), "type_argument" | "generic_type"));
    match sign {
        "(" | ")" | "[" | "]" | "{" | "}" | "[|" | "|]" | "{|" | "|}" | "[<" | ">]" | "," | ";" | "." => {
            Some(Syntax::Plain)
        }
        "<" | ">" | "'" if is_in_type() => None,
        _ if sign.starts_with(|c: char| c.is_alphabetic() || c == '#') => Some(Syntax::Keyword),
        _ if sign.contains('"') => None,
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
    use super::*;

    /// One line for each piece that has a colour.
    fn shown(code: &str) -> String {
        let coloured = spans(code).into_iter().filter(|(syntax, _)| *syntax != Syntax::Plain);
        coloured.map(|(syntax, range)| format!("{syntax:?}:{}\n", &code[range])).collect()
    }

    #[test]
    fn a_function_with_types_and_a_comment() {
        insta::assert_snapshot!(shown("let rec f (x: int) : Map<string, 'a> = x + 1 // c"), @r"
        Keyword:let
        Keyword:rec
        Operator::
        Type:int
        Operator::
        Type:Map<string
        Type: 'a>
        Operator:=
        Operator:+
        Number:1
        Comment:// c
        ");
    }

    #[test]
    fn a_match_with_strings_characters_and_keywords() {
        insta::assert_snapshot!(shown("match x with\n| Some 'a' when true -> $\"a {x + 1} b\"\n| _ -> failwith \"no\\n\""), @r#"
        Keyword:match
        Keyword:with
        Operator:|
        Text:'a'
        Keyword:when
        Keyword:true
        Operator:->
        Text:$"a 
        Operator:+
        Number:1
        Text: b"
        Operator:|
        Operator:->
        Text:"no\n"
        "#);
    }

    #[test]
    fn numbers_brackets_and_operators() {
        insta::assert_snapshot!(shown("[| 1.5; 0x1F; 2L |] |> Array.map (fun y -> y :> obj)"), @r#"
        Number:1.5
        Number:0x1F
        Number:2L
        Operator:|>
        Keyword:fun
        Operator:->
        Operator::>
        Type:obj
        "#);
    }

    #[test]
    fn directives_and_types() {
        insta::assert_snapshot!(shown("#r \"nuget: x\"\nopen System.IO\ntype P = { X: int list }"), @r#"
        Keyword:#r
        Text:"nuget: x"
        Keyword:open
        Keyword:type
        Type:P
        Operator:=
        Operator::
        Type:int list
        "#);
    }

    #[test]
    fn code_that_is_not_finished() {
        insta::assert_snapshot!(shown("let f x = if x then \"abc"), @r#"
        Keyword:let
        Operator:=
        Keyword:if
        Keyword:then
        Text:"abc
        "#);
    }
}

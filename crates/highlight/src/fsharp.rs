//! F#, by tree-sitter's grammar of it.

use tree_sitter::Node;

use super::Syntax;

/// What a node is, if that can be told from it and what it is a part of, and whether its parts can be something else.
pub(super) fn syntax_of(node: Node<'_>, parent: Option<Node<'_>>) -> (Option<Syntax>, bool) {
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
        sign => (syntax_of_sign(sign, parent), false),
    }
}

/// What stands in the grammar as it is: keywords, brackets, operators.
fn syntax_of_sign(sign: &str, parent: Option<Node<'_>>) -> Option<Syntax> {
    let is_in_type =
        || parent.is_some_and(|parent| matches!(parent.kind(), "type_argument" | "generic_type"));
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

#[cfg(test)]
mod tests {
    fn shown(code: &str) -> String {
        super::super::tests::shown("fsharp", code)
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

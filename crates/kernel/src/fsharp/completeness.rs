//! Whether F# code that was typed is finished, and how far its next line is indented.

use super::tokens::{Token, TokenKind, Tokens, scan};

/// How far a block is indented.
const STEP: usize = 4;

/// Words that something must follow.
const UNFINISHED_WORDS: &[&str] = &[
    "abstract",
    "and",
    "and!",
    "as",
    "assert",
    "class",
    "default",
    "delegate",
    "do",
    "do!",
    "downcast",
    "downto",
    "elif",
    "else",
    "exception",
    "extern",
    "finally",
    "fixed",
    "for",
    "fun",
    "function",
    "if",
    "in",
    "inherit",
    "inline",
    "interface",
    "internal",
    "lazy",
    "let",
    "let!",
    "match",
    "match!",
    "member",
    "module",
    "mutable",
    "namespace",
    "new",
    "of",
    "open",
    "override",
    "private",
    "public",
    "rec",
    "return",
    "return!",
    "static",
    "struct",
    "then",
    "to",
    "try",
    "type",
    "upcast",
    "use",
    "use!",
    "val",
    "when",
    "while",
    "while!",
    "with",
    "yield",
    "yield!",
];
/// Words and signs that a block follows.
const BLOCK_OPENERS: &[&str] =
    &["=", "->", "then", "else", "do", "try", "finally", "function", "class", "struct", "with"];

/// Whether F# code goes on, so that Enter begins a new line instead of running it.
///
/// Code is finished where it ends with `;;`, or where every bracket, string and comment is closed, its last token can be
/// the last, and its last line is not part of an indented block. An empty line ends such a block, and anything else but
/// what is not closed.
pub fn needs_more(code: &str) -> bool {
    let tokens = scan(code);
    if tokens.is_inside_text {
        return true;
    }
    let Some(last) = tokens.list.last() else { return false };
    if last.kind == TokenKind::Terminator {
        return false;
    }
    if !tokens.open_brackets.is_empty() {
        return true;
    }
    let last_line = last_line(code);
    if last_line.trim().is_empty() {
        return false;
    }
    wants_a_successor(code, last) || is_in_block(code, last_line)
}

/// How many spaces the line after `code` begins with.
pub fn indentation(code: &str) -> usize {
    let tokens = scan(code);
    if tokens.is_inside_text {
        return 0;
    }
    let here = code.lines().rev().find(|line| !line.trim().is_empty()).map_or(0, width_of_indent);
    let is_deeper = tokens.list.last().is_some_and(|last| opens_block(code, &tokens, last));
    if is_deeper { here + STEP } else { here }
}

fn last_line(code: &str) -> &str {
    code.rsplit('\n').next().unwrap_or_default()
}

fn width_of_indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn wants_a_successor(code: &str, last: &Token<'_>) -> bool {
    match last.kind {
        TokenKind::Word => UNFINISHED_WORDS.contains(&last.text),
        TokenKind::Operator => !closes_type_arguments(code, last),
        TokenKind::AttributeEnd => true,
        TokenKind::Literal | TokenKind::Open | TokenKind::Close | TokenKind::Terminator => false,
    }
}

/// `typeof<int>` is finished, `a >` is not.
fn closes_type_arguments(code: &str, operator: &Token<'_>) -> bool {
    let is_attached = code[..operator.start].ends_with(|c: char| !c.is_whitespace());
    is_attached && operator.text.chars().all(|c| c == '>')
}

/// The line stands deeper than the first, or is a case that others may follow.
fn is_in_block(code: &str, line: &str) -> bool {
    let text = line.trim_start();
    let first = code.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    width_of_indent(line) > width_of_indent(first) || text.starts_with('|') || text.starts_with("elif ")
}

fn opens_block(code: &str, tokens: &Tokens<'_>, last: &Token<'_>) -> bool {
    if last.kind == TokenKind::Open {
        return true;
    }
    // The cases of a match stand under it.
    let is_under_match = || {
        let line_start = code[..last.start].rfind('\n').map_or(0, |at| at + 1);
        let first = tokens.list.iter().find(|token| token.start >= line_start);
        first.is_some_and(|first| matches!(first.text, "match" | "match!" | "try" | "with"))
    };
    BLOCK_OPENERS.contains(&last.text) && !(last.text == "with" && is_under_match())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each text is one that Enter does not run.
    fn all_need_more(texts: &[&str]) {
        let finished: Vec<_> = texts.iter().filter(|text| !needs_more(text)).collect();
        assert!(finished.is_empty(), "taken for finished: {finished:#?}");
    }

    /// Each text is one that Enter runs.
    fn all_are_finished(texts: &[&str]) {
        let unfinished: Vec<_> = texts.iter().filter(|text| needs_more(text)).collect();
        assert!(unfinished.is_empty(), "taken for unfinished: {unfinished:#?}");
    }

    #[test]
    fn one_line_that_stands_alone_is_finished() {
        all_are_finished(&[
            "1 + 1",
            "let x = 21",
            "x * 2",
            "let f x = x + 1",
            "printfn \"hi\"",
            "open System.IO",
            "()",
            "[1; 2]",
            "\"\"",
            "#r \"nuget: Foo\"",
            "#load \"a.fsx\"",
            "#time",
            "type P = { X: int }",
            "type U = A | B of int",
            "fun x -> x",
            "if a then b else c",
            "List.map not",
            "async { return 1 }",
            "x.Length",
            "1.",
            "3 |> ignore",
            "'a'",
            "f x'",
            "match x with 0 -> 1 | _ -> 2",
            "``odd name``",
            "let (|Even|Odd|) n = if n % 2 = 0 then Even else Odd",
            "type T = class end",
            " let hidden = 1",
        ]);
    }

    #[test]
    fn nothing_and_mere_comments_are_finished() {
        all_are_finished(&["", "   ", "\n", "// note", "(* note *)"]);
    }

    #[test]
    fn double_semicolons_finish_everything_but_strings_and_comments() {
        all_are_finished(&[
            "let x = 1;;",
            "let f x =\n    x;;",
            "match x with\n| 0 -> 1;;",
            "(1;;",
            "let x =;;",
            "x;; // done",
        ]);
        all_need_more(&["\"a;;", "(* ;;", "\"\"\"\n;;\n\""]);
    }

    #[test]
    fn an_open_bracket_wants_more_also_after_an_empty_line() {
        all_need_more(&[
            "(",
            "f (1,",
            "[1;\n 2",
            "[| 1",
            "{ X = 1",
            "{| A = 1",
            "async {\n    return 1\n",
            "[\n\n",
            "<@ 1 +",
            "begin",
        ]);
        all_are_finished(&[
            "(1)",
            "[| 1 |]",
            "{| A = 1 |}",
            "async {\n    return 1\n}",
            "<@ 1 @>",
            "<@@ 1 @@>",
            "begin 1 end",
        ]);
    }

    #[test]
    fn brackets_in_strings_characters_and_comments_do_not_count() {
        all_are_finished(&[
            "\"(\"",
            "'('",
            "(* ( *) 1",
            "1 // (",
            "@\"\\\"",
            "\"\"\" \" ( \"\"\"",
            "\"\\\"(\"",
            "$\"{x}(\"",
            "(*)",
            "(=)",
            "( * )",
        ]);
    }

    #[test]
    fn an_open_string_or_comment_wants_more() {
        all_need_more(&["\"", "\"abc", "@\"a\\\"\"", "\"\"\"a\"", "$\"{1}", "(* a", "(* (* *)"]);
    }

    #[test]
    fn what_ends_with_an_operator_wants_more() {
        all_need_more(&[
            "1 +", "x |>", "let x =", "fun x ->", "x <-", "a &&", "x.", "1 ::", "let x :", "a,", "f a;",
            "x <", "a > ", "a >",
        ]);
    }

    #[test]
    fn type_arguments_are_no_comparison() {
        all_are_finished(&["typeof<int>", "type M = Map<string, List<int>>", "ResizeArray<int>()"]);
    }

    #[test]
    fn what_ends_with_a_word_that_opens_something_wants_more() {
        all_need_more(&[
            "if x then",
            "if x then 1 else",
            "match x with",
            "for i in 1..3 do",
            "while a do",
            "try",
            "let",
            "let rec",
            "open",
            "type",
            "module M =",
            "let x = 1 in",
            "function",
            "type U = A of",
            "let f = fun",
            "return!",
            "let!",
            "type T = struct",
        ]);
    }

    #[test]
    fn a_comment_does_not_hide_what_is_unfinished() {
        all_need_more(&["let x = // later", "1 + (* two *)"]);
    }

    #[test]
    fn an_attribute_waits_for_what_it_is_on() {
        all_need_more(&["[<Literal>]", "[<Struct>]\ntype T ="]);
        all_are_finished(&["[<Literal>] let X = 1", "[typeof<int>]"]);
    }

    #[test]
    fn an_indented_block_goes_on_until_an_empty_line() {
        all_need_more(&[
            "let f x =\n    x + 1",
            "let f x =\n    let y = 1\n    y",
            "  let f x =\n    x",
            "type T() =\n    member _.X = 1",
        ]);
        all_are_finished(&["let f x =\n    x + 1\n", "let f x =\n    x + 1\n    ", "let x =\n"]);
    }

    #[test]
    fn a_line_back_at_the_margin_finishes() {
        all_are_finished(&[
            "let f x =\n    x\nf 3",
            "try\n    f ()\nwith _ -> 0",
            " let f x =\n     x\n f 3",
        ]);
    }

    #[test]
    fn cases_go_on_until_an_empty_line() {
        all_need_more(&[
            "match x with\n| 0 -> 1",
            "match x with\n| 0 -> 1\n| _ -> 2",
            "type U =\n| A",
            "if a then 1\nelif b then 2",
        ]);
        all_are_finished(&["match x with\n| 0 -> 1\n"]);
    }

    #[test]
    fn a_new_line_is_as_deep_as_the_last_and_deeper_where_a_block_begins() {
        assert_eq!(indentation("let x = 1"), 0);
        assert_eq!(indentation("let f x ="), 4);
        assert_eq!(indentation("let f x =\n    let y = 1"), 4);
        assert_eq!(indentation("let f x =\n    if x then"), 8);
        assert_eq!(indentation("async {"), 4);
        assert_eq!(indentation("List.map (fun x ->"), 4);
        assert_eq!(indentation("let f x =\n    x\n    "), 4);
    }

    #[test]
    fn cases_stand_under_their_match() {
        assert_eq!(indentation("match x with"), 0);
        assert_eq!(indentation("    match x with"), 4);
        assert_eq!(indentation("match x with\n| 0 ->"), 4);
        assert_eq!(indentation("let f x = match x with"), 4);
        assert_eq!(indentation("let f = function"), 4);
        assert_eq!(indentation("{ p with"), 4);
    }

    #[test]
    fn a_string_over_several_lines_is_not_indented() {
        assert_eq!(indentation("    let s = \"\"\"a"), 0);
    }
}

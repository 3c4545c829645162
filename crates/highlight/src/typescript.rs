//! TypeScript and JavaScript, by tree-sitter's grammar of it.

use tree_sitter::Node;

use super::{Syntax, syntax_of_sign};

/// What a node is, if that can be told from it alone, and whether its parts can be something else.
pub(super) fn syntax_of(node: Node<'_>) -> (Option<Syntax>, bool) {
    match node.kind() {
        "comment" | "html_comment" | "hash_bang_line" => (Some(Syntax::Comment), false),
        "template_string" => (Some(Syntax::Text), true),
        "template_substitution" => (Some(Syntax::Plain), true),
        "string" | "regex" => (Some(Syntax::Text), false),
        "number" => (Some(Syntax::Number), false),
        "true" | "false" | "null" | "undefined" | "this" | "super" => (Some(Syntax::Keyword), false),
        "type_identifier" | "predefined_type" => (Some(Syntax::Type), false),
        "${" => (Some(Syntax::Plain), false),
        sign if !node.is_named() => (syntax_of_sign(sign), false),
        _ => (None, true),
    }
}

#[cfg(test)]
mod tests {
    fn shown(code: &str) -> String {
        super::super::tests::shown("typescript", code)
    }

    #[test]
    fn a_function_with_types_and_a_template() {
        let code = "export const f = async (x: number, y?: Map<string, A>): Promise<void> => {\n  // c\n  return `a ${x + 1} b`;\n}";
        insta::assert_snapshot!(shown(code));
    }

    #[test]
    fn javascript_is_a_part_of_it() {
        insta::assert_snapshot!(shown(
            "for (let i = 0; i < 3; i++) { console.log(/a+/g, 'b', null, this?.x) }"
        ));
    }
}

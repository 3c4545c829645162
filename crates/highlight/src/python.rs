//! Python, by tree-sitter's grammar of it.

use tree_sitter::Node;

use super::{Syntax, syntax_of_sign};

/// What a node is, if that can be told from it alone, and whether its parts can be something else.
pub(super) fn syntax_of(node: Node<'_>) -> (Option<Syntax>, bool) {
    match node.kind() {
        "comment" => (Some(Syntax::Comment), false),
        "string" => (Some(Syntax::Text), true),
        "interpolation" => (Some(Syntax::Plain), true),
        "integer" | "float" => (Some(Syntax::Number), false),
        "true" | "false" | "none" => (Some(Syntax::Keyword), false),
        "type" => (Some(Syntax::Type), true),
        sign if !node.is_named() => (syntax_of_sign(sign), false),
        _ => (None, true),
    }
}

#[cfg(test)]
mod tests {
    fn shown(code: &str) -> String {
        super::super::tests::shown("python", code)
    }

    #[test]
    fn a_function_with_types_and_a_string() {
        let code = "async def f(x: int = 1) -> list[str]:\n    # c\n    return [f'a {x + 1.5!r} b', None] if x is not 2 else ...";
        insta::assert_snapshot!(shown(code));
    }

    #[test]
    fn a_class_with_a_decorator_and_a_match() {
        let code = "@dataclass\nclass A(B):\n    \"\"\"what it is\"\"\"\n    x: int\nmatch a:\n    case {'k': True}: pass\nprint(a)";
        insta::assert_snapshot!(shown(code));
    }

    #[test]
    fn a_magic_and_what_is_not_finished() {
        insta::assert_snapshot!(shown("%matplotlib inline\nimport numpy as np\nx = 'abc"));
    }
}

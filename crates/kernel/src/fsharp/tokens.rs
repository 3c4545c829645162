//! F# code as a flat list of tokens: as much of the language as it takes to tell whether a text is finished.
//!
//! Nothing here fails. A string or a comment that is not closed is noted in [`Tokens::is_inside_text`], a bracket in
//! [`Tokens::open_brackets`].

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword, a name, a directive.
    Word,
    /// A number, a string, a character.
    Literal,
    /// Signs that are no bracket.
    Operator,
    /// An opening bracket or `begin`.
    Open,
    /// A closing bracket or `end`.
    Close,
    /// The `>]` of an attribute.
    AttributeEnd,
    /// The terminator `;;` of a submission.
    Terminator,
}

/// One token of F# code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// The kind of the token.
    pub(super) kind: TokenKind,
    /// The text of the token.
    pub(super) text: &'a str,
    /// Where it begins, in bytes.
    pub(super) start: usize,
}

/// The tokens of a text.
#[derive(Debug, Default)]
pub(super) struct Tokens<'a> {
    /// Those that are complete, without comments.
    pub(super) list: Vec<Token<'a>>,
    /// The brackets that nothing closes, outermost first.
    pub(super) open_brackets: Vec<&'a str>,
    /// Whether the text ends inside a string or a comment.
    pub(super) is_inside_text: bool,
}

const OPENING: [&str; 8] = ["<@@", "<@", "[|", "[<", "{|", "(", "[", "{"];
const CLOSING: [&str; 8] = ["@@>", "@>", "|]", ">]", "|}", ")", "]", "}"];
const OPERATOR_SIGNS: &str = "!%&*+-./<=>?@^|~:$,;";
const BANG_WORDS: [&str; 8] = ["let", "use", "do", "return", "yield", "match", "and", "while"];

/// The tokens of `code`.
pub(super) fn scan(code: &str) -> Tokens<'_> {
    let mut scanner = Scanner { code, at: 0, tokens: Tokens::default() };
    while scanner.at < code.len() {
        scanner.step();
    }
    scanner.tokens
}

struct Scanner<'a> {
    code: &'a str,
    at: usize,
    tokens: Tokens<'a>,
}

impl<'a> Scanner<'a> {
    /// Takes in the next token, blank or comment; at least one character.
    fn step(&mut self) {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return };
        if first.is_whitespace() {
            self.at += first.len_utf8();
        } else if rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("(*") && !rest.starts_with("(*)") {
            self.comment();
        } else if let Some(end) = string_end(rest) {
            self.text(end);
        } else if let Some(name) = rest.strip_prefix("``") {
            let end = name.find(['\n', '`']).filter(|at| name[*at..].starts_with("``"));
            self.push(TokenKind::Word, end.map_or(2, |at| at + 4));
        } else if first == '\'' {
            let end = character_end(rest);
            self.push(if end.is_some() { TokenKind::Literal } else { TokenKind::Word }, end.unwrap_or(1));
        } else if first.is_ascii_digit() {
            self.push(TokenKind::Literal, number_end(rest));
        } else if first.is_alphabetic() || first == '_' || first == '#' {
            self.word();
        } else {
            self.signs();
        }
    }

    fn rest(&self) -> &'a str {
        &self.code[self.at..]
    }

    fn push(&mut self, kind: TokenKind, len: usize) {
        let text = &self.code[self.at..self.at + len];
        self.tokens.list.push(Token { kind, text, start: self.at });
        self.at += len;
    }

    fn open(&mut self, len: usize) {
        self.tokens.open_brackets.push(&self.code[self.at..self.at + len]);
        self.push(TokenKind::Open, len);
    }

    /// A bracket that closes nothing is left to the compiler.
    fn close(&mut self, len: usize) {
        let opened = self.tokens.open_brackets.pop();
        let is_attribute = opened == Some("[<");
        self.push(if is_attribute { TokenKind::AttributeEnd } else { TokenKind::Close }, len);
    }

    /// Scans a comment, which may nest.
    fn comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.code.len() {
            let rest = self.rest();
            if rest.starts_with("(*") && !rest.starts_with("(*)") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with("*)") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        self.tokens.is_inside_text = true;
    }

    fn text(&mut self, end: StringEnd) {
        match end {
            StringEnd::At(len) => self.push(TokenKind::Literal, len),
            StringEnd::Nowhere => {
                self.tokens.is_inside_text = true;
                self.at = self.code.len();
            }
        }
    }

    fn word(&mut self) {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
        let len = rest.char_indices().skip(1).find(|(_, c)| !is_part(*c)).map_or(rest.len(), |(at, _)| at);
        match &rest[..len] {
            "begin" => self.open(len),
            "end" => self.close(len),
            word if BANG_WORDS.contains(&word) && rest[len..].starts_with('!') => {
                self.push(TokenKind::Word, len + 1)
            }
            _ => self.push(TokenKind::Word, len),
        }
    }

    fn signs(&mut self) {
        let rest = self.rest();
        if rest.starts_with(";;") {
            self.push(TokenKind::Terminator, 2);
        } else if let Some(bracket) = OPENING.iter().find(|bracket| rest.starts_with(**bracket)) {
            self.open(bracket.len());
        } else if let Some(bracket) = CLOSING.iter().find(|bracket| rest.starts_with(**bracket)) {
            self.close(bracket.len());
        } else {
            self.push(TokenKind::Operator, operator_len(rest));
        }
    }
}

/// An operator ends where a bracket, a string or `;;` begins.
fn operator_len(rest: &str) -> usize {
    let ends = |at: usize| {
        let rest = &rest[at..];
        let is_part = rest.starts_with(|c| OPERATOR_SIGNS.contains(c));
        !is_part
            || rest.starts_with(";;")
            || string_end(rest).is_some()
            || CLOSING.iter().any(|b| rest.starts_with(b))
    };
    let mut starts = rest.char_indices().map(|(at, _)| at).skip(1);
    starts.find(|at| ends(*at)).unwrap_or(rest.len())
}

/// Where a string ends.
enum StringEnd {
    At(usize),
    Nowhere,
}

/// Where the string ends that `rest` begins with; none where it begins with something else.
fn string_end(rest: &str) -> Option<StringEnd> {
    let prefix = ["$@", "@$", "$", "@", ""]
        .into_iter()
        .find(|prefix| rest.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('"')))?;
    let body = &rest[prefix.len()..];
    let end = if let Some(inner) = body.strip_prefix("\"\"\"") {
        inner.find("\"\"\"").map(|at| at + 6)
    } else {
        quote(&body[1..], prefix.contains('@')).map(|at| at + 2)
    };
    Some(end.map_or(StringEnd::Nowhere, |len| StringEnd::At(prefix.len() + len)))
}

/// Where the closing quote is.
fn quote(inner: &str, is_verbatim: bool) -> Option<usize> {
    let mut chars = inner.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if !is_verbatim => {
                chars.next();
            }
            '"' if is_verbatim && chars.next_if(|(_, next)| *next == '"').is_some() => {}
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// The length of a character literal; none where the apostrophe begins a type variable.
fn character_end(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        return chars.skip(1).take(10).find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    chars.next().filter(|(_, c)| *c == '\'' && first != '\'').map(|(at, _)| at + 1)
}

fn number_end(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let is_hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        let is_part = match byte {
            b'.' => bytes.get(at + 1) != Some(&b'.') && !rest[..at].contains('.'),
            b'+' | b'-' => !is_hexadecimal && matches!(bytes[at - 1], b'e' | b'E'),
            byte => byte.is_ascii_alphanumeric() || *byte == b'_',
        };
        if !is_part {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(code: &str) -> Vec<&str> {
        scan(code).list.iter().map(|token| token.text).collect()
    }

    #[test]
    fn operators_end_where_brackets_and_strings_begin() {
        assert_eq!(texts("[|1..2|] |> f"), ["[|", "1", "..", "2", "|]", "|>", "f"]);
        assert_eq!(texts("x=@\"a\"\"b\";;"), ["x", "=", "@\"a\"\"b\"", ";;"]);
        assert_eq!(texts("<@ 1+2 @>"), ["<@", "1", "+", "2", "@>"]);
    }

    #[test]
    fn apostrophes_are_characters_type_variables_or_parts_of_names() {
        assert_eq!(
            texts("'a' '\\n' '\\u0041' '\"' x' 'T"),
            ["'a'", "'\\n'", "'\\u0041'", "'\"'", "x'", "'", "T"]
        );
    }

    #[test]
    fn numbers_keep_their_signs_and_suffixes() {
        assert_eq!(texts("1e-5 0x1E+2 1.5m 1. 1_000L"), ["1e-5", "0x1E", "+", "2", "1.5m", "1.", "1_000L"]);
    }

    #[test]
    fn names_may_be_of_any_script_or_in_backticks() {
        assert_eq!(texts("größe Ωx ``a b`` π"), ["größe", "Ωx", "``a b``", "π"]);
    }

    #[test]
    fn comments_are_left_out_and_nest() {
        assert_eq!(texts("a (* b (* c *) d *) e // f\ng"), ["a", "e", "g"]);
        assert!(scan("(* (* *)").is_inside_text);
        assert_eq!(texts("(*)"), ["(", "*", ")"]);
    }

    #[test]
    fn an_attribute_is_told_from_a_list_of_types() {
        let last = |code| scan(code).list.last().map(|token| token.kind);
        assert_eq!(last("[<Struct>]"), Some(TokenKind::AttributeEnd));
        assert_eq!(last("[typeof<int>]"), Some(TokenKind::Close));
    }

    #[test]
    fn any_text_is_scanned_to_its_end() {
        let signs = [
            "\"", "'", "`", "\\", "(", "*", ")", "$", "@", "<", "]", "|", ";", "1", ".", "e", "é", "🙂",
            "\n", " ",
        ];
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            texts =
                texts.iter().flat_map(|text| signs.iter().map(move |sign| format!("{text}{sign}"))).collect();
            for text in &texts {
                for token in scan(text).list {
                    assert_eq!(&text[token.start..token.start + token.text.len()], token.text);
                }
            }
        }
    }
}

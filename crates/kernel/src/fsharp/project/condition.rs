//! Conditions of project files, as far as they compare texts: `'$(A)' == 'x' and '$(B)' != 'y'`. `and` binds closer than `or`.

/// Whether a condition holds; nothing where it is not understood. `expand` gives a text with the values of its properties.
pub(super) fn holds(condition: &str, expand: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    let words = words(condition)?;
    let mut any = false;
    for side in words.split(|word| is_operator(word, "or")) {
        let mut all = true;
        for comparison in side.split(|word| is_operator(word, "and")) {
            all &= compared(comparison, expand)?;
        }
        any |= all;
    }
    Some(any)
}

#[derive(Debug, PartialEq, Eq)]
enum Word<'a> {
    /// Text in quotes, or a bare one such as `true` or `$(A)`.
    Text(&'a str),
    Equal,
    Unequal,
    /// The word `and` or `or`.
    Operator(&'a str),
}

fn is_operator(word: &Word<'_>, name: &str) -> bool {
    matches!(word, Word::Operator(operator) if operator.eq_ignore_ascii_case(name))
}

fn compared(words: &[Word<'_>], expand: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    let is_equal = |left: &str, right: &str| Some(expand(left)?.eq_ignore_ascii_case(&expand(right)?));
    match words {
        [Word::Text(left), Word::Equal, Word::Text(right)] => is_equal(left, right),
        [Word::Text(left), Word::Unequal, Word::Text(right)] => is_equal(left, right).map(|is| !is),
        [Word::Text(alone)] => match expand(alone)?.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn words(condition: &str) -> Option<Vec<Word<'_>>> {
    let mut words = Vec::new();
    let mut rest = condition.trim_start();
    while !rest.is_empty() {
        let (word, after) = if let Some(quoted) = rest.strip_prefix('\'') {
            let (text, after) = quoted.split_once('\'')?;
            (Word::Text(text), after)
        } else if let Some(after) = rest.strip_prefix("==") {
            (Word::Equal, after)
        } else if let Some(after) = rest.strip_prefix("!=") {
            (Word::Unequal, after)
        } else {
            bare(rest)?
        };
        words.push(word);
        rest = after.trim_start();
    }
    Some(words)
}

/// A word without quotes: `true`, `and`, `$(Name)`, `1.0`.
fn bare(rest: &str) -> Option<(Word<'_>, &str)> {
    let end = match rest.strip_prefix("$(") {
        Some(name) => name.find(')')? + 3,
        None => rest.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)).unwrap_or(rest.len()),
    };
    let (word, after) = rest.split_at(end);
    match word.to_ascii_lowercase().as_str() {
        "" => None,
        "and" | "or" => Some((Word::Operator(word), after)),
        _ => Some((Word::Text(word), after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(condition: &str) -> Option<bool> {
        holds(condition, &|text| match text {
            "$(A)" => Some("one".to_owned()),
            "$(Yes)" => Some("True".to_owned()),
            unknown if unknown.contains("$(") => None,
            text => Some(text.to_owned()),
        })
    }

    #[test]
    fn comparisons_are_understood() {
        for condition in [
            "'$(A)' == 'ONE'",
            " '$(A)'=='one' ",
            "'$(A)' != 'two'",
            "$(A) == one",
            "$(Yes)",
            "'$(A)' == 'two' or '$(A)' == 'one' AND true",
            "'x' == 'x' or false and false",
        ] {
            assert_eq!(of(condition), Some(true), "{condition}");
        }
        for condition in ["'$(A)' == ''", "'$(A)' == 'one' and 'a' != 'a'", "false"] {
            assert_eq!(of(condition), Some(false), "{condition}");
        }
    }

    #[test]
    fn others_are_not() {
        for condition in [
            "Exists('a')",
            "'$(B)' == ''",
            "'a",
            "$(A",
            "('a' == 'a')",
            "!true",
            "a b",
            "'a' ==",
            "and",
            "1 < 2",
            "'a' == 'a' or",
        ] {
            assert_eq!(of(condition), None, "{condition}");
        }
    }
}

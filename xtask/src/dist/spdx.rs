//! Expressions of licences, as <https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/> has them, against the licences that
//! `deny.toml` allows.

/// The licences that `deny.toml` allows; none where it has no such list.
pub(crate) fn allowed_by(deny: &str) -> Vec<&str> {
    let list = deny.split_once("\nallow = [").and_then(|(_, rest)| rest.split_once(']'));
    let names = list.map(|(names, _)| names.split(',')).into_iter().flatten();
    names.map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty()).collect()
}

/// Whether licences of the list alone satisfy an expression. One that cannot be read is satisfied by none.
pub(crate) fn is_satisfied(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    reader.any() == Some(true) && reader.words.is_empty()
}

/// Reads an expression from its words, and says of each part whether it is satisfied; nothing where that is no expression.
struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl Reader<'_> {
    fn any(&mut self) -> Option<bool> {
        let mut is_satisfied = self.all()?;
        while self.takes("OR") {
            is_satisfied |= self.all()?;
        }
        Some(is_satisfied)
    }

    fn all(&mut self) -> Option<bool> {
        let mut is_satisfied = self.one()?;
        while self.takes("AND") {
            is_satisfied &= self.one()?;
        }
        Some(is_satisfied)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let inner = self.any()?;
            return self.takes(")").then_some(inner);
        }
        let (name, rest) = self.words.split_first()?;
        self.words = rest;
        if !self.takes("WITH") {
            return Some(self.allowed.contains(name));
        }
        let (exception, rest) = self.words.split_first()?;
        self.words = rest;
        Some(self.allowed.contains(&format!("{name} WITH {exception}").as_str()))
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.words.split_first().filter(|(first, _)| **first == word);
        found.inspect(|(_, rest)| self.words = rest).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_deny_toml_is_read() {
        let deny = "[licenses]\nallow = [\"MIT\",\n  \"CC0-1.0\",]\nconfidence-threshold = 0.9\n";
        assert_eq!(allowed_by(deny), ["MIT", "CC0-1.0"]);
        assert!(allowed_by(include_str!("../../../deny.toml")).contains(&"Apache-2.0"));
        assert_eq!(allowed_by("[licenses]\n"), [""; 0]);
    }

    #[test]
    fn an_expression_is_satisfied_by_one_of_its_choices_and_all_of_its_parts() {
        let allowed = ["MIT", "Apache-2.0", "ISC"];
        for expression in [
            "MIT",
            "GPL-3.0-only OR MIT",
            "ISC AND (GPL-3.0-only OR Apache-2.0)",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "MIT OR Apache-2.0 AND GPL-3.0-only",
        ] {
            assert!(is_satisfied(expression, &allowed), "{expression}");
        }
        for expression in [
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "(MIT OR GPL-3.0-only) AND GPL-3.0-only",
            "Apache-2.0 WITH LLVM-exception",
            "MIT OR",
            "(MIT",
            "MIT Apache-2.0",
        ] {
            assert!(!is_satisfied(expression, &allowed), "{expression}");
        }
    }
}

//! What a reset of a session drops, in the words in which it is said before the reset, at a terminal and on the page.

use std::time::Duration;

/// How long a worker has to name the values of a session. One that does not answer must not keep its session from being reset.
pub const NAMING: Duration = Duration::from_secs(3);
/// How many of the names that are lost are said.
const NAMES_SAID: usize = 5;

/// Whether anything was said in a session that a reset could drop: it has run code, or has a title.
pub fn has_begun(evals: u64, title: Option<&str>) -> bool {
    evals > 0 || title.is_some()
}

/// What a reset drops of a session that has begun, to follow "this drops". `name` stands for the session, and `values` are the names that its
/// code has bound, as far as they are known.
pub fn what_is_lost(name: &str, is_agent: bool, values: &[impl AsRef<str>]) -> String {
    if is_agent {
        return format!("what {name} was told: the agent begins anew");
    }
    if values.is_empty() {
        return format!("what {name} has defined");
    }
    let more = if values.len() > NAMES_SAID { ", …" } else { "" };
    let said = values.iter().take(NAMES_SAID).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    let noun = if values.len() == 1 { "value" } else { "values" };
    format!("what {name} has defined, with {} {noun} ({said}{more})", values.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_that_are_lost_are_said() {
        let lost = |values: &[&str]| what_is_lost("it", false, values);
        assert_eq!(lost(&[]), "what it has defined");
        assert_eq!(lost(&["a"]), "what it has defined, with 1 value (a)");
        let many = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(lost(&many), "what it has defined, with 6 values (a, b, c, d, e, …)");
        assert_eq!(what_is_lost("it", true, &["a"]), "what it was told: the agent begins anew");
        assert_eq!([has_begun(0, None), has_begun(1, None), has_begun(0, Some("t"))], [false, true, true]);
    }
}

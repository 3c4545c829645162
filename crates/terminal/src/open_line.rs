//! The line on the screen that has no end yet.

use super::printable;

/// What code has printed since the last end of a line.
#[derive(Debug, Default)]
pub struct OpenLine(String);

impl OpenLine {
    /// Notes that more text was printed.
    pub fn push(&mut self, text: &str) {
        match text.rsplit_once('\n') {
            Some((_, begun)) => begun.clone_into(&mut self.0),
            None => self.0.push_str(text),
        }
    }

    /// Whether it says just this.
    pub fn says(&self, text: &str) -> bool {
        !self.0.is_empty() && printable(self.0.trim()) == text
    }

    /// Whether there is one.
    pub fn is_begun(&self) -> bool {
        !self.0.is_empty()
    }

    /// It is over; says whether there was one.
    pub fn take(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_begun_in_pieces_and_says_what_was_printed_since_the_last_end() {
        let mut line = OpenLine::default();
        assert!(!line.says(""));
        ["first\nNa", "me", "? "].iter().for_each(|text| line.push(text));
        assert!(line.says("Name?") && !line.says("Na"));
        assert!(line.take() && !line.take());
        line.push("whole\n");
        assert!(!line.take());
    }
}

//! Bytes of a stream, turned into text as they come.

/// Decodes UTF-8 across reads: a character that is cut by a read is kept for the next; bytes that are no UTF-8 become U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Utf8Stream {
    partial: Vec<u8>,
}

impl Utf8Stream {
    /// Takes in more bytes; gives the text that is complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.partial.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.partial.len());
        let mut rest = 0;
        for chunk in self.partial.utf8_chunks() {
            text.push_str(chunk.valid());
            rest += chunk.valid().len();
            let invalid = chunk.invalid();
            let is_last = rest + invalid.len() == self.partial.len();
            if is_last && is_begun_character(invalid) {
                break;
            }
            if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
            rest += invalid.len();
        }
        self.partial.drain(..rest);
        text
    }

    /// What is left when the stream has ended.
    pub(crate) fn finish(&mut self) -> String {
        let left = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial.clear();
        left
    }
}

/// Whether more bytes could make a character of these.
fn is_begun_character(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if !bytes.is_empty() && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_character_cut_by_a_read_arrives_whole() {
        let mut stream = Utf8Stream::default();
        let bytes = "é".as_bytes();
        assert_eq!(stream.push(&bytes[..1]), "");
        assert_eq!(stream.push(&bytes[1..]), "é");
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_text_is_that_of_the_whole(bytes: Vec<u8>, cuts: Vec<prop::sample::Index>) {
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.sort_unstable();
            let mut stream = Utf8Stream::default();
            let mut text = String::new();
            let mut from = 0;
            for to in at.into_iter().chain([bytes.len()]) {
                text.push_str(&stream.push(&bytes[from..to]));
                from = to;
            }
            text.push_str(&stream.finish());
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

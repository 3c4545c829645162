//! Takes bytes apart. Strict: whatever is accepted has exactly one way to be written.

/// Where a message cannot be read on, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}, at byte {at}")]
pub(crate) struct Malformed {
    at: usize,
    what: String,
}

/// What is left of a message.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of the bytes.
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Something is wrong here.
    pub(crate) fn malformed(&self, what: impl Into<String>) -> Malformed {
        Malformed { at: self.at, what: what.into() }
    }

    /// Fails when bytes are left to read.
    pub(super) fn end(&self) -> Result<(), Malformed> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            left => Err(self.malformed(format!("{left} bytes too many"))),
        }
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(|| self.malformed("it ends too soon"))?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads a BARE `bool`.
    pub(super) fn truth(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => {
                self.at -= 1;
                Err(self.malformed(format!("{other} is no bool")))
            }
        }
    }

    /// `uint`: seven bits a byte, the lowest first.
    pub(super) fn uint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let is_last = byte & 0x80 == 0;
            if bits.leading_zeros() < shift || (is_last && byte == 0 && shift > 0) {
                return Err(self.malformed("a uint that is too large, or longer than it must be"));
            }
            value |= bits << shift;
            if is_last {
                return Ok(value);
            }
        }
        Err(self.malformed("a uint that is too large"))
    }

    /// How many items follow, each of which takes a byte at least: so no more than there are bytes.
    pub(super) fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::try_from(self.uint()?).unwrap_or(usize::MAX);
        match count <= self.bytes.len() - self.at {
            true => Ok(count),
            false => Err(self.malformed(format!("{count} are to follow, which is more than there are"))),
        }
    }

    /// Reads a BARE `str`.
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        let count = self.count()?;
        let bytes = self.bytes.get(self.at..self.at + count).unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|_| self.malformed("a str that is no UTF-8"))?;
        self.at += count;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uint_has_one_way_to_be_written() {
        for (bytes, value) in [
            (vec![0], Some(0)),
            (vec![0x7f], Some(127)),
            (vec![0x80, 1], Some(128)),
            (vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Some(u64::MAX)),
            (vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], None),
            (vec![0xff; 11], None),
            (vec![0x80, 0], None),
            (vec![0x80], None),
            (vec![], None),
        ] {
            assert_eq!(Reader::new(&bytes).uint().ok(), value, "{bytes:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        for (bytes, said) in [
            (&[2, b'a'][..], "2 are to follow, which is more than there are, at byte 1"),
            (&[1, 0xff], "a str that is no UTF-8, at byte 1"),
            (&[], "it ends too soon, at byte 0"),
        ] {
            assert_eq!(Reader::new(bytes).text().unwrap_err().to_string(), said);
        }
        assert_eq!(Reader::new(&[2]).truth().unwrap_err().to_string(), "2 is no bool, at byte 0");
    }
}

//! Pictures: their format and size, as their bytes say, and the size that is wanted.

use std::fmt;

use super::MimeType;
use crate::base64::Base64;

/// How large a picture is to be shown, in CSS pixels, as far as it is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedSize {
    /// The width in pixels, if known.
    pub width: Option<u32>,
    /// The height in pixels, if known.
    pub height: Option<u32>,
}

/// A picture among the forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture<'a> {
    /// The MIME type of the picture.
    pub kind: &'a MimeType,
    /// The bytes of the picture.
    pub data: &'a Base64,
}

/// How a picture's bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// PNG, which loses nothing.
    Png,
    /// JPEG, which suits photographs.
    Jpeg,
    /// Of few colours; it may move.
    Gif,
    /// WebP, which suits any picture.
    Webp,
}

impl WantedSize {
    /// How large a picture is shown that has so many pixels, width and height: a side of which nothing is said goes along with the other.
    pub fn of(self, (width, height): (u32, u32)) -> (u32, u32) {
        let along = |own: u32, wanted: u32, other: u32| {
            let along = u64::from(own) * u64::from(wanted) / u64::from(other.max(1));
            u32::try_from(along).unwrap_or(u32::MAX).max(1)
        };
        match (self.width, self.height) {
            (None, None) => (width, height),
            (Some(wanted), None) => (wanted, along(height, wanted, width)),
            (None, Some(wanted)) => (along(width, wanted, height), wanted),
            (Some(width), Some(height)) => (width, height),
        }
    }

    /// How wide a picture is shown, where it is to be shown otherwise than it is.
    pub fn width_of(self, picture: &Picture<'_>) -> Option<u32> {
        let of_height = || self.height.and(picture.size()).map(|own| self.of(own).0);
        self.width.or_else(of_height)
    }
}

impl Picture<'_> {
    /// How much of a picture is looked at for its size, which in a JPEG may stand behind a smaller picture of it.
    const HEAD_BYTES: usize = 256 * 1024;

    /// What its first bytes say that it is, whatever it was called.
    pub fn format(&self) -> Option<PictureFormat> {
        let bytes = self.data.beginning(12);
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(PictureFormat::Png)
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            Some(PictureFormat::Jpeg)
        } else if bytes.starts_with(b"GIF8") {
            Some(PictureFormat::Gif)
        } else if bytes.starts_with(b"RIFF") && bytes.ends_with(b"WEBP") {
            Some(PictureFormat::Webp)
        } else {
            None
        }
    }

    /// Its width and height, where its first bytes tell.
    pub fn size(&self) -> Option<(u32, u32)> {
        match self.format()? {
            PictureFormat::Png => {
                let bytes = self.data.beginning(24);
                let side = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes);
                Some((side(16)?, side(20)?))
            }
            PictureFormat::Gif => {
                let bytes = self.data.beginning(10);
                let side = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u16::from_le_bytes);
                Some((side(6)?.into(), side(8)?.into()))
            }
            PictureFormat::Jpeg => jpeg_size(&self.data.beginning(Self::HEAD_BYTES)),
            PictureFormat::Webp => None,
        }
    }
}

/// What the header of a JPEG's frame says, which stands behind other segments.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.get(2..)?;
    loop {
        let [0xff, marker, high, low, segment @ ..] = rest else { return None };
        match marker {
            // These three are no frames but tables.
            0xc0..=0xcf if ![0xc4, 0xc8, 0xcc].contains(marker) => {
                let [_, height_high, height_low, width_high, width_low, ..] = *segment else { return None };
                let side = |high, low| u32::from(u16::from_be_bytes([high, low]));
                return Some((side(width_high, width_low), side(height_high, height_low)));
            }
            // Its length counts itself.
            _ => rest = rest.get(2 + usize::from(u16::from_be_bytes([*high, *low]))..)?,
        }
    }
}

/// What it is: `image/png, 640×480, 12 KB`.
impl fmt::Display for Picture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.kind)?;
        if let Some((width, height)) = self.size() {
            write!(f, "{width}×{height}, ")?;
        }
        f.write_str(&bytes_in_words(self.data.len()))
    }
}

/// How much this is, as people say it.
pub(super) fn bytes_in_words(bytes: usize) -> String {
    const KIB: usize = 1024;
    const MIB: usize = KIB * KIB;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..MIB => format!("{} KB", bytes.div_ceil(KIB)),
        MIB.. => format!("{:.1} MB", bytes as f64 / MIB as f64),
    }
}

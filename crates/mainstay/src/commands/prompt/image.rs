//! A picture in a file, as it is said to an agent.

use std::path::Path;

use mainstay_model::Error;
use mainstay_model::agent::Image;

/// Kinds of pictures that models take, by the ends of files' names.
const TYPES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

/// Reads a picture.
pub(super) fn read(file: &Path) -> Result<Image, Error> {
    let unusable = |reason: String| Error::InvalidArgument { argument: file.display().to_string(), reason };
    let end = file.extension().and_then(|end| end.to_str()).unwrap_or_default().to_lowercase();
    let known = TYPES.iter().find(|(name, _)| *name == end);
    let (_, mime_type) = known.ok_or_else(|| {
        let names: Vec<_> = TYPES.iter().map(|(name, _)| *name).collect();
        unusable(format!("a picture's name ends with one of {}", names.join(", ")))
    })?;
    let bytes = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
    Ok(Image { mime_type: (*mime_type).to_owned(), data: base64(&bytes) })
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4_usize {
            let sign = SIGNS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place > chunk.len() { '=' } else { char::from(sign) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_everyone_does() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        assert_eq!(cases.map(|(bytes, _)| base64(bytes.as_bytes())), cases.map(|(_, text)| text));
        assert_eq!(base64(&[0xff, 0xfe, 0xfd, 0x00]), "//79AA==");
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        let refused = read(Path::new("notes.txt")).unwrap_err().to_string();
        assert_eq!(
            refused,
            "notes.txt is not valid: a picture's name ends with one of png, jpg, jpeg, gif, webp"
        );
    }
}

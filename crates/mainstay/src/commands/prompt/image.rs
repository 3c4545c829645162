//! A picture in a file, as it is said to an agent.

use std::path::Path;

use mainstay_model::agent::Image;
use mainstay_model::{Base64, Error};

/// Kinds of pictures that models take, by the ends of files' names.
const TYPES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

/// Reads a picture from a file.
pub(super) fn read(file: &Path) -> Result<Image, Error> {
    let unusable = |reason: String| Error::InvalidArgument { argument: file.display().to_string(), reason };
    let end = file.extension().and_then(|end| end.to_str()).unwrap_or_default().to_lowercase();
    let known = TYPES.iter().find(|(name, _)| *name == end);
    let (_, mime_type) = known.ok_or_else(|| {
        let names: Vec<_> = TYPES.iter().map(|(name, _)| *name).collect();
        unusable(format!("a picture's name ends with one of {}", names.join(", ")))
    })?;
    let bytes = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
    Ok(Image { mime_type: (*mime_type).to_owned(), data: Base64::of(&bytes).into_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_picture_is_refused() {
        let refused = read(Path::new("notes.txt")).unwrap_err().to_string();
        assert_eq!(
            refused,
            "notes.txt is not valid: a picture's name ends with one of png, jpg, jpeg, gif, webp"
        );
    }
}

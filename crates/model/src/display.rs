//! Displays: what code shows besides the text it prints, in as many forms as it has, each under its MIME type.
//!
//! A form is text, a picture or other bytes (in base64, as Jupyter sends them), or JSON. One of them always is plain text, so
//! whoever can show nothing else has something to show. Nothing here draws or renders: that is whoever shows it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base64::Base64;
use crate::id::DisplayId;
use crate::screen::settled;

/// Something that code showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Display {
    /// What code calls it; a later display of the session with the same name stands for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<DisplayId>,
    /// Whether it is the value of the code's last expression, in more forms than the language prints.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_value: bool,
    /// Whether it only stands for what was shown under its name before, and has no place of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_update: bool,
    /// Whether a value stands in this place, before or after other output, and is not shown with the end of its code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_place: bool,
    /// The content, in one or more MIME types.
    pub data: Bundle,
}

impl Display {
    /// Whether it stands where it was shown. Any other value is shown with the end of its code.
    pub const fn is_put_out(&self) -> bool {
        !self.is_value || self.is_in_place
    }
}

/// One thing in several forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "BTreeMap<String, Value>", into = "BTreeMap<String, Value>")]
pub struct Bundle {
    text: String,
    /// None of them is plain text.
    forms: BTreeMap<MimeType, Form>,
    /// What is said of them beside: of each by its type.
    metadata: Map<String, Value>,
}

/// How large a picture is to be shown, in CSS pixels, as far as it is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedSize {
    /// The width in pixels, if known.
    pub width: Option<u32>,
    /// The height in pixels, if known.
    pub height: Option<u32>,
}

/// One form of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Content that is text.
    Text(String),
    /// Content that is bytes.
    Binary(Base64),
    /// A description that a program draws, or data.
    Json(Value),
}

/// Names a form: `text/html`, `image/png`. In lower case, without parameters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MimeType(String);

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

/// The form that is always there.
pub const PLAIN: &str = "text/plain";
/// A picture that is text.
pub const SVG: &str = "image/svg+xml";
/// A web page's part.
pub const HTML: &str = "text/html";
/// Rows with named columns.
pub const TABLE: &str = "application/vnd.dataresource+json";
/// Under which name a bundle that is written has what is said of its forms, as Jupyter's messages have it beside them. It is none of the forms.
pub const METADATA: &str = "application/vnd.mainstay.metadata+json";
/// What came of tests ([`TestRun`](crate::TestRun)).
pub const TESTS: &str = "application/vnd.mainstay.tests+json";
/// How far a run of tests has come ([`TestProgress`](crate::TestProgress)).
pub const TEST_PROGRESS: &str = "application/vnd.mainstay.test-progress+json";

impl Bundle {
    /// Creates a bundle of plain text alone.
    pub fn plain(text: String) -> Self {
        Self { text, forms: BTreeMap::new(), metadata: Map::new() }
    }

    /// It with what is said of its forms; more than this many bytes of it is not kept.
    #[must_use]
    pub fn with_metadata(self, metadata: Map<String, Value>) -> Self {
        const MOST: usize = 4096;
        let with = Self { metadata, ..self };
        if with.metadata_bytes() > MOST { Self { metadata: Map::new(), ..with } } else { with }
    }

    /// Changes every text in it, those in JSON too.
    pub fn for_each_text(&mut self, change: &mut impl FnMut(&mut String)) {
        fn in_json(value: &mut Value, change: &mut impl FnMut(&mut String)) {
            match value {
                Value::String(text) => change(text),
                Value::Array(items) => items.iter_mut().for_each(|item| in_json(item, change)),
                Value::Object(members) => members.values_mut().for_each(|member| in_json(member, change)),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        change(&mut self.text);
        for form in self.forms.values_mut() {
            match form {
                Form::Text(text) => change(text),
                Form::Json(value) => in_json(value, change),
                Form::Binary(_) => {}
            }
        }
    }

    /// What is said of its forms, of each by its type.
    pub const fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// How large its form of this type is to be shown.
    pub fn wanted_size(&self, kind: &str) -> WantedSize {
        let of = self.metadata.get(kind);
        let side = |name: &str| of?.get(name)?.as_f64().filter(|side| *side >= 1.0).map(|side| side as u32);
        WantedSize { width: side("width"), height: side("height") }
    }

    /// It as plain text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// It for who reads nothing else: as plain text without colours, or in the most readable other form where that only names an object,
    /// as IPython's does of what it shows.
    pub fn words(&self) -> Cow<'_, str> {
        match self.coloured_words() {
            Cow::Borrowed(words) => settled(words),
            made @ Cow::Owned(_) => made,
        }
    }

    /// The same with the control sequences that a plain text for terminals may have.
    pub fn coloured_words(&self) -> Cow<'_, str> {
        match names_object(&self.text) && !self.forms.is_empty() {
            true => Cow::Owned(made_text(self)),
            false => Cow::Borrowed(&self.text),
        }
    }

    /// The forms besides the plain text.
    pub fn forms(&self) -> impl Iterator<Item = (&MimeType, &Form)> {
        self.forms.iter()
    }

    /// The form of this type.
    pub fn form(&self, kind: &str) -> Option<&Form> {
        self.forms.get(&MimeType(kind.to_owned()))
    }

    /// The names of all its forms.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = self.forms.keys().map(MimeType::as_str).chain([PLAIN]).collect();
        kinds.sort_unstable();
        kinds
    }

    /// A picture that is bytes.
    pub fn picture(&self) -> Option<Picture<'_>> {
        self.pictures().next()
    }

    /// It as pictures that are bytes.
    pub fn pictures(&self) -> impl Iterator<Item = Picture<'_>> {
        self.forms.iter().filter_map(|(kind, form)| match form {
            Form::Binary(data) if kind.as_str().starts_with("image/") => Some(Picture { kind, data }),
            Form::Binary(_) | Form::Text(_) | Form::Json(_) => None,
        })
    }

    /// How many bytes the forms besides the plain text have, with what is said of them.
    pub fn form_bytes(&self) -> usize {
        self.forms.values().map(Form::bytes).sum::<usize>() + self.metadata_bytes()
    }

    fn metadata_bytes(&self) -> usize {
        // A map is JSON.
        if self.metadata.is_empty() {
            0
        } else {
            serde_json::to_string(&self.metadata).map_or(0, |text| text.len())
        }
    }

    /// It in at most this many bytes: forms are left out, the largest first, and the text says which. Of text that is too large by
    /// itself the beginning stays.
    #[must_use]
    pub fn cut(mut self, limit: usize) -> Self {
        if self.text.len() > limit {
            self.text.truncate(self.text.floor_char_boundary(limit));
            self.text.push_str(" … (cut)");
        }
        let room = limit.saturating_sub(self.text.len());
        self.keep_forms(room, |kind, bytes| {
            format!("{kind} left out: {}, over the limit", bytes_in_words(bytes))
        })
    }

    /// It with so much of the forms as this job may still show.
    #[must_use]
    pub fn within(self, room: usize) -> Self {
        self.keep_forms(room, |kind, bytes| {
            format!("{kind} left out: {}, and the job has shown as much as is kept", bytes_in_words(bytes))
        })
    }

    /// It with only the beginning of the text, of at most this many bytes.
    #[must_use]
    pub fn with_text_of(mut self, bytes: usize) -> Self {
        self.text.truncate(self.text.floor_char_boundary(bytes));
        self
    }

    fn keep_forms(mut self, room: usize, note: impl Fn(&MimeType, usize) -> String) -> Self {
        let mut bytes = self.form_bytes();
        while bytes > room {
            let largest = self.forms.iter().max_by_key(|(_, form)| form.bytes());
            let Some((kind, form)) = largest.map(|(kind, form)| (kind.clone(), form.bytes())) else {
                self.metadata.clear();
                break;
            };
            self.forms.remove(&kind);
            self.note(&note(&kind, form));
            bytes -= form;
        }
        self
    }

    /// Says something of it, on a line of its own.
    fn note(&mut self, note: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(&format!("[{note}]"));
    }
}

/// What is no form of its type, or has no type, is left out, and the text says so. Without a plain text one is made.
impl From<BTreeMap<String, Value>> for Bundle {
    fn from(data: BTreeMap<String, Value>) -> Self {
        let (mut text, mut forms, mut left_out) = (None, BTreeMap::new(), Vec::new());
        let mut metadata = Map::new();
        for (name, value) in data {
            if let (METADATA, Value::Object(said)) = (name.as_str(), &value) {
                metadata.clone_from(said);
                continue;
            }
            let Some(kind) = MimeType::new(&name) else {
                left_out.push(format!("a form left out: `{}` is no MIME type", name.escape_debug()));
                continue;
            };
            match Form::of(&kind, value) {
                Some(Form::Text(plain)) if kind.as_str() == PLAIN => text = Some(plain),
                Some(form) => {
                    forms.insert(kind, form);
                }
                None => left_out.push(format!("{kind} left out: it is not of this type")),
            }
        }
        let mut bundle = Self { text: String::new(), forms, metadata: Map::new() }.with_metadata(metadata);
        bundle.text = match text {
            Some(text) => text,
            None => made_text(&bundle),
        };
        left_out.iter().for_each(|note| bundle.note(note));
        bundle
    }
}

/// Whether it is what IPython says of a thing that has no words.
fn names_object(text: &str) -> bool {
    text.strip_prefix("<IPython.core.display.").is_some_and(|rest| rest.ends_with(" object>"))
}

/// A plain text for forms that came without: the most readable of them, or what they are.
fn made_text(bundle: &Bundle) -> String {
    if let Some(Form::Text(text)) = bundle.form("text/markdown").or_else(|| bundle.form("text/latex")) {
        return text.clone();
    }
    if let Some(picture) = bundle.picture() {
        return format!("[{picture}]");
    }
    if let Some(Form::Json(data)) = bundle.form("application/json") {
        return data.to_string();
    }
    let of = |(kind, form): (&MimeType, &Form)| format!("[{kind}, {}]", bytes_in_words(form.bytes()));
    bundle.forms().map(of).collect::<Vec<_>>().join("\n")
}

impl From<Bundle> for BTreeMap<String, Value> {
    fn from(Bundle { text, forms, metadata }: Bundle) -> Self {
        let forms = forms.into_iter().map(|(kind, form)| (kind.0, form.into_value()));
        let said = (!metadata.is_empty()).then(|| (METADATA.to_owned(), Value::Object(metadata)));
        forms.chain([(PLAIN.to_owned(), Value::String(text))]).chain(said).collect()
    }
}

impl Form {
    /// A form of this type; none where it is not of it. A text may come as its lines, as in a notebook.
    fn of(kind: &MimeType, value: Value) -> Option<Self> {
        if kind.is_json() {
            return Some(Self::Json(value));
        }
        let text = match value {
            Value::String(text) => text,
            Value::Array(lines) => match lines.iter().map(Value::as_str).collect::<Option<Vec<_>>>() {
                Some(lines) => lines.concat(),
                None => return kind.may_be_json().then_some(Self::Json(Value::Array(lines))),
            },
            // Not every type that stands for JSON says so in its name.
            value @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) if kind.may_be_json() => {
                return Some(Self::Json(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
        };
        match kind.is_binary() {
            true => Base64::new(&text).map(Self::Binary),
            false => Some(Self::Text(text)),
        }
    }

    /// As JSON has it.
    pub fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text),
            Self::Binary(data) => Value::String(data.into_string()),
            Self::Json(value) => value,
        }
    }

    /// How many bytes it has, as it is kept.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(data) => data.as_str().len(),
            Self::Json(value) => value.to_string().len(),
        }
    }
}

impl MimeType {
    const MAX_BYTES: usize = 127;

    /// A type as a worker names it; none where it is not one.
    pub fn new(name: &str) -> Option<Self> {
        let name = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_token = |part: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c);
            !part.is_empty() && part.chars().all(is_part)
        };
        let is_type = name.split_once('/').is_some_and(|(kind, form)| is_token(kind) && is_token(form));
        (is_type && name.len() <= Self::MAX_BYTES).then_some(Self(name))
    }

    /// Returns the name of the type.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// By its name; `application/vnd.vegalite.v6.json` is what Altair 6 says.
    fn is_json(&self) -> bool {
        ["/json", "+json", ".json"].iter().any(|end| self.0.ends_with(end))
    }

    /// Whether nothing in its name says that it stands for text or bytes.
    fn may_be_json(&self) -> bool {
        self.0.starts_with("application/") && !self.0.ends_with("+xml") && !self.is_binary()
    }

    fn is_binary(&self) -> bool {
        let is_bytes = ["image/", "audio/", "video/", "font/"].iter().any(|start| self.0.starts_with(start));
        is_bytes && !self.0.ends_with("+xml")
            || ["application/pdf", "application/octet-stream", "application/zip"].contains(&self.0.as_str())
    }
}

impl fmt::Display for MimeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
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
fn bytes_in_words(bytes: usize) -> String {
    const KIB: usize = 1024;
    const MIB: usize = KIB * KIB;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..MIB => format!("{} KB", bytes.div_ceil(KIB)),
        MIB.. => format!("{:.1} MB", bytes as f64 / MIB as f64),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The first 24 bytes of a PNG of 640 by 480, and some of its rest.
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=";

    fn bundle(data: Value) -> Bundle {
        serde_json::from_value(data).unwrap()
    }

    #[test]
    fn words_that_only_name_an_object_give_way_to_any_other_form() {
        let object = "<IPython.core.display.Thing object>";
        let words =
            |kind: &str, form: &str| bundle(json!({ "text/plain": object, kind: form })).words().into_owned();
        assert_eq!(words("text/markdown", "**b**"), "**b**");
        assert_eq!(words("text/latex", "$x^2$"), "$x^2$");
        assert_eq!(words("text/html", "<b>"), "[text/html, 3 bytes]");
        assert_eq!(bundle(json!({ "text/plain": object })).words(), object);
        assert_eq!(bundle(json!({ "text/plain": "it", "text/html": "<b>" })).words(), "it");
    }

    #[test]
    fn words_have_no_colours_unless_they_are_wanted() {
        let shown = bundle(json!({ "text/plain": "\u{1b}[1;31mred\u{1b}[0m\r\n" }));
        assert_eq!(shown.words(), "red\n");
        assert_eq!(shown.coloured_words(), "\u{1b}[1;31mred\u{1b}[0m\r\n");
    }

    #[test]
    fn a_bundle_without_plain_text_gets_one() {
        for (data, text) in [
            (json!({}), ""),
            (json!({ "text/html": "<b>" }), "[text/html, 3 bytes]"),
            (json!({ "text/html": "<b>", "text/markdown": "**b**" }), "**b**"),
            (json!({ "image/png": PNG, "image/svg+xml": "<svg/>" }), "[image/png, 640×480, 29 bytes]"),
            (json!({ "application/json": 1, "text/plain": "one" }), "one"),
            (json!({ "application/json": { "a": [1] } }), r#"{"a":[1]}"#),
            (json!({ "application/x+json": 1 }), "[application/x+json, 1 bytes]"),
        ] {
            assert_eq!(bundle(data.clone()).text(), text, "{data}");
        }
    }

    #[test]
    fn what_is_not_of_its_type_is_left_out_and_named() {
        let given = json!({ "image/png": "no base64!", "text/html": 3, "html": "<b>", "text/plain": "it" });
        let read = bundle(given);
        assert_eq!(read.kinds(), ["text/plain"]);
        insta::assert_snapshot!(read.text(), @"
        it
        [a form left out: `html` is no MIME type]
        [image/png left out: it is not of this type]
        [text/html left out: it is not of this type]
        ");
    }

    #[test]
    fn data_is_carried_under_whatever_name() {
        for (kind, data) in [
            ("application/vnd.vegalite.v6.json", json!({ "mark": "bar" })),
            ("application/vnd.vegalite.v6.json", json!("a text")),
            ("application/vnd.vegalite.v6.json", json!(["lines", "that are data"])),
            ("application/vnd.plotly.v1", json!({ "data": [] })),
            ("application/x.rows", json!([[1, 2]])),
            ("application/x.count", json!(3)),
        ] {
            let given = json!({ "text/plain": "it", kind: data });
            let read = bundle(given.clone());
            assert_eq!((read.form(kind), read.text()), (Some(&Form::Json(data)), "it"));
            assert_eq!(serde_json::to_value(read).unwrap(), given);
        }
        let given =
            json!({ "application/pdf": { "a": 1 }, "application/rss+xml": [1], "application/x": null });
        assert_eq!(bundle(given).kinds(), ["text/plain"]);
    }

    #[test]
    fn forms_are_read_as_notebooks_have_them() {
        let read = bundle(json!({
            "TEXT/HTML; charset=utf-8": ["<b>\n", "</b>"],
            "image/png": "iVBO\nRw==\n",
            "text/plain": ["a\n", "b"],
        }));
        assert_eq!(
            serde_json::to_value(&read).unwrap(),
            json!({ "image/png": "iVBORw==", "text/html": "<b>\n</b>", "text/plain": "a\nb" })
        );
        assert_eq!(read.picture().unwrap().data.len(), 4);
    }

    #[test]
    fn what_is_said_of_forms_goes_with_them_and_is_none() {
        let of = json!({ "image/png": { "width": 320, "height": "a lot" }, "isolated": true });
        let given = json!({ "image/png": PNG, "text/plain": "it", METADATA: of });
        let read = bundle(given.clone());
        assert_eq!((read.kinds(), read.text()), (vec!["image/png", "text/plain"], "it"));
        assert_eq!(Value::from(read.metadata().clone()), of);
        assert_eq!(serde_json::to_value(&read).unwrap(), given);
        let wanted = read.wanted_size("image/png");
        assert_eq!(wanted, WantedSize { width: Some(320), height: None });
        assert_eq!(wanted.of(read.picture().unwrap().size().unwrap()), (320, 240));
        let high = WantedSize { width: None, height: Some(960) };
        assert_eq!(high.width_of(&read.picture().unwrap()), Some(1280));
        assert_eq!(WantedSize::default().width_of(&read.picture().unwrap()), None);
        let endless = json!({ "text/plain": "it", METADATA: { "a": "x".repeat(5000) } });
        assert_eq!(bundle(endless), Bundle::plain("it".to_owned()));
        let none = bundle(json!({ "text/plain": "it", METADATA: 1 }));
        assert!(none.metadata().is_empty());
    }

    #[test]
    fn what_is_too_large_is_cut_down_with_a_note() {
        let page = "x".repeat(5000);
        let given = bundle(json!({ "text/html": page, "image/svg+xml": "<svg/>", "text/plain": "it" }));
        assert_eq!(given.clone().cut(6000), given);
        let cut = given.cut(100);
        assert_eq!(cut.kinds(), ["image/svg+xml", "text/plain"]);
        assert_eq!(cut.text(), "it\n[text/html left out: 5 KB, over the limit]");
        assert_eq!(Bundle::plain("é".repeat(10)).cut(3).text(), "é … (cut)");
    }

    #[test]
    fn pictures_tell_their_size() {
        let gif = bundle(json!({ "image/gif": "R0lGODlhIAAQAIAA" }));
        assert_eq!(gif.picture().unwrap().size(), Some((32, 16)));
        let jpeg = bundle(json!({ "image/jpeg": "/9j/4AAEAAD/wAALCAAQACADAQ==" }));
        assert_eq!(jpeg.picture().unwrap().size(), Some((32, 16)));
        let cut_off = bundle(json!({ "image/jpeg": "/9j/4AAEAAD/wAAL" }));
        assert_eq!(cut_off.picture().unwrap().size(), None);
        let unknown = bundle(json!({ "image/webp": "AAAA" }));
        assert_eq!(unknown.picture().unwrap().to_string(), "image/webp, 3 bytes");
    }

    #[test]
    fn what_a_picture_is_its_bytes_say_and_not_its_name() {
        let format = |kind: &str, data: &str| bundle(json!({ kind: data })).picture().unwrap().format();
        assert_eq!(format("image/jpeg", PNG), Some(PictureFormat::Png));
        assert_eq!(format("image/png", "R0lGODlhIAAQAIAA"), Some(PictureFormat::Gif));
        assert_eq!(format("image/png", "UklGRgAAAABXRUJQ"), Some(PictureFormat::Webp));
        assert_eq!(format("image/png", "iVBORw=="), None);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            ".{0,40}".prop_map(Value::from),
            "[A-Za-z0-9+/]{0,12}={0,2}".prop_map(Value::from),
            proptest::collection::vec(".{0,9}", 0..4).prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u8>().prop_map(|width| json!({ "image/png": { "width": width } })),
            Just(Value::Null),
        ]
    }

    fn any_map() -> impl Strategy<Value = BTreeMap<String, Value>> {
        let name = prop_oneof![
            ".{0,8}",
            Just(PLAIN.to_owned()),
            Just("image/png".to_owned()),
            Just("application/json".to_owned()),
            Just(METADATA.to_owned()),
            "text/[a-z]{1,3}",
        ];
        proptest::collection::btree_map(name, any_value(), 0..6)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again(data in any_map()) {
            let read = Bundle::from(data);
            let written = serde_json::to_string(&read).unwrap();
            prop_assert_eq!(serde_json::from_str::<Bundle>(&written).unwrap(), read);
        }

        #[test]
        fn what_is_cut_has_no_more_than_it_may_and_says_what_is_gone(data in any_map(), limit in 0_usize..60) {
            let whole = Bundle::from(data);
            let cut = whole.clone().cut(limit);
            prop_assert!(cut.form_bytes() <= limit);
            for (kind, form) in whole.forms() {
                match cut.form(kind.as_str()) {
                    Some(kept) => prop_assert_eq!(kept, form),
                    None => prop_assert!(cut.text().contains(kind.as_str())),
                }
            }
            if whole.text().len() + whole.form_bytes() <= limit {
                prop_assert_eq!(cut, whole);
            }
        }
    }
}

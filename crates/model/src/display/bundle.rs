//! Bundles: one thing that was shown, in as many forms as it has. One of them is always plain text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::mime_type::MimeType;
use super::picture::{Picture, WantedSize, bytes_in_words};
use super::{METADATA, PLAIN};
use crate::base64::Base64;
use crate::screen::settled;

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
    pub(super) fn of(kind: &MimeType, value: Value) -> Option<Self> {
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

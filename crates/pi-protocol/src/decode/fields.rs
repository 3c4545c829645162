//! Single fields of a frame, checked.

use serde_json::Value;

use super::{Check, PATH};

impl Check<'_> {
    pub(super) fn required(&mut self, name: &str) -> Option<String> {
        let text = self.text(name).filter(|text| !text.is_empty()).map(str::to_owned);
        if text.is_none() {
            self.wrong(name, "Required string");
        }
        text
    }

    pub(super) fn optional_text(&mut self, name: &str, otherwise: &str) -> Option<String> {
        let given = self.fields.get(name)?;
        let text = given.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong(name, otherwise);
        }
        text
    }

    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        let flag = self.fields.get(name).and_then(Value::as_bool);
        if flag.is_none() {
            self.wrong(name, "Required boolean");
        }
        flag
    }

    pub(super) fn path(&mut self, name: &str) -> Option<String> {
        let path = self.required(name)?;
        if path.chars().count() > PATH {
            self.wrong(name, format!("{name} too long (max {PATH} chars)"));
        } else if path.contains("..") || path.starts_with('~') || path.contains('\0') {
            self.wrong(name, format!("{name} contains potentially dangerous path components"));
        }
        Some(path)
    }
}

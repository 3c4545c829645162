//! How many of something a client may ask for at once: its schema says it, and more is refused rather than cut.

use std::borrow::Cow;

use mainstay_model::Error;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// The longest wait that a client may ask for, in seconds.
pub(super) const LONGEST_WAIT: u32 = 3600;

/// A number from `LEAST` to `MOST`, as a client gives it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Within<const LEAST: u32, const MOST: u32>(u32);

impl<const LEAST: u32, const MOST: u32> Within<LEAST, MOST> {
    /// The number that was given, or else the usual one.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is out of bounds.
    pub(super) fn given(number: Option<Self>, argument: &str, usual: u32) -> Result<u32, Error> {
        match number {
            None => Ok(usual),
            Some(Self(number)) if (LEAST..=MOST).contains(&number) => Ok(number),
            Some(Self(number)) => Err(Error::InvalidArgument {
                argument: argument.to_owned(),
                reason: format!("it is {number}, and must be between {LEAST} and {MOST}"),
            }),
        }
    }
}

impl<const LEAST: u32, const MOST: u32> JsonSchema for Within<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Within{LEAST}And{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }
}

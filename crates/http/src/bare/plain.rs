//! Numbers, texts, lists: what all messages are made of.

use std::collections::BTreeMap;

use mainstay_model::{
    AskId, CommandId, DisplayId, JobId, LineNumber, Position, Principal, Seq, SessionId, SessionKind,
    Timestamp, Version,
};
use serde_json::Value;

use super::{Decode, Encode, Field, Fields, Malformed, Reader, Schema, Shape};

/// Appends a BARE `uint`.
pub(super) fn uint(mut value: u64, to: &mut Vec<u8>) {
    while value > 0x7f {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Appends a member of a union.
pub(crate) fn member(number: u32, it: &(impl Encode + ?Sized), to: &mut Vec<u8>) {
    number.encode(to);
    it.encode(to);
}

impl<T: Shape + ?Sized> Shape for &T {
    fn shape(schema: &mut Schema) -> String {
        T::shape(schema)
    }
}

impl<T: Fields> Fields for &T {
    fn fields(schema: &mut Schema) -> Vec<Field> {
        T::fields(schema)
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, to: &mut Vec<u8>) {
        T::encode(self, to);
    }
}

macro_rules! counts {
    ($($type:ty),*) => {$(
        impl Shape for $type {
            fn shape(_: &mut Schema) -> String {
                "uint".to_owned()
            }
        }

        impl Encode for $type {
            fn encode(&self, to: &mut Vec<u8>) {
                // None of them has more bits.
                uint(*self as u64, to);
            }
        }

        impl Decode for $type {
            fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let value = from.uint()?;
                Self::try_from(value).map_err(|_| from.malformed(format!("{value} is too large")))
            }
        }
    )*};
}

counts!(u16, u32, u64, usize);

macro_rules! counters {
    ($($type:ident),*) => {$(
        impl Shape for $type {
            fn shape(schema: &mut Schema) -> String {
                u64::shape(schema)
            }
        }

        impl Encode for $type {
            fn encode(&self, to: &mut Vec<u8>) {
                let Self(number) = self;
                number.encode(to);
            }
        }

        impl Decode for $type {
            fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                u64::decode(from).map(Self)
            }
        }
    )*};
}

counters!(Seq, Position, Version, LineNumber);

macro_rules! uuids {
    ($($type:ident),*) => {$(
        impl Shape for $type {
            fn shape(schema: &mut Schema) -> String {
                schema.define("Uuid", "A UUID.", |_| "data[16]".to_owned())
            }
        }

        impl Encode for $type {
            fn encode(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(self.as_uuid().as_bytes());
            }
        }
    )*};
}

uuids!(SessionId, JobId, AskId);

impl Shape for str {
    fn shape(_: &mut Schema) -> String {
        "str".to_owned()
    }
}

impl Encode for str {
    fn encode(&self, to: &mut Vec<u8>) {
        uint(self.len() as u64, to);
        to.extend_from_slice(self.as_bytes());
    }
}

impl Shape for String {
    fn shape(schema: &mut Schema) -> String {
        str::shape(schema)
    }
}

impl Encode for String {
    fn encode(&self, to: &mut Vec<u8>) {
        self.as_str().encode(to);
    }
}

impl Decode for String {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.text().map(str::to_owned)
    }
}

macro_rules! names {
    ($($type:ident),*) => {$(
        impl Shape for $type {
            fn shape(schema: &mut Schema) -> String {
                str::shape(schema)
            }
        }

        impl Encode for $type {
            fn encode(&self, to: &mut Vec<u8>) {
                self.as_str().encode(to);
            }
        }

        impl Decode for $type {
            fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let text = from.text()?;
                Self::new(text).map_err(|error| from.malformed(error.to_string()))
            }
        }
    )*};
}

names!(CommandId, SessionKind, DisplayId, Principal);

impl Shape for bool {
    fn shape(_: &mut Schema) -> String {
        "bool".to_owned()
    }
}

impl Encode for bool {
    fn encode(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }
}

impl Decode for bool {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.truth()
    }
}

impl<T: Shape> Shape for Option<T> {
    fn shape(schema: &mut Schema) -> String {
        format!("optional<{}>", T::shape(schema))
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, to: &mut Vec<u8>) {
        self.is_some().encode(to);
        if let Some(it) = self {
            it.encode(to);
        }
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.truth()?.then(|| T::decode(from)).transpose()
    }
}

impl<T: Shape> Shape for [T] {
    fn shape(schema: &mut Schema) -> String {
        format!("list<{}>", T::shape(schema))
    }
}

impl<T: Encode> Encode for [T] {
    fn encode(&self, to: &mut Vec<u8>) {
        uint(self.len() as u64, to);
        self.iter().for_each(|item| item.encode(to));
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn shape(schema: &mut Schema) -> String {
        <[T]>::shape(schema)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, to: &mut Vec<u8>) {
        self.as_slice().encode(to);
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = from.count()?;
        (0..count).map(|_| T::decode(from)).collect()
    }
}

/// Two numbers, as JSON has them in an array.
impl Shape for (u64, u64) {
    fn shape(_: &mut Schema) -> String {
        "list<uint>[2]".to_owned()
    }
}

impl Encode for (u64, u64) {
    fn encode(&self, to: &mut Vec<u8>) {
        let (first, second) = self;
        uint(*first, to);
        uint(*second, to);
    }
}

impl Decode for (u64, u64) {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok((from.uint()?, from.uint()?))
    }
}

impl<T: Shape> Shape for BTreeMap<String, T> {
    fn shape(schema: &mut Schema) -> String {
        format!("map<str><{}>", T::shape(schema))
    }
}

impl<T: Encode> Encode for BTreeMap<String, T> {
    fn encode(&self, to: &mut Vec<u8>) {
        uint(self.len() as u64, to);
        for (name, item) in self {
            name.encode(to);
            item.encode(to);
        }
    }
}

impl Shape for Timestamp {
    fn shape(schema: &mut Schema) -> String {
        schema.define("Timestamp", "Microseconds since the beginning of 1970, UTC.", |_| "i64".to_owned())
    }
}

impl Encode for Timestamp {
    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.as_microsecond().to_le_bytes());
    }
}

/// The name of what is said in JSON also here.
pub(super) fn json_shape(schema: &mut Schema) -> String {
    let about = "JSON, as text: what has no form of its own, or forms that only grow.";
    schema.define("Json", about, |_| "str".to_owned())
}

impl Shape for Value {
    fn shape(schema: &mut Schema) -> String {
        json_shape(schema)
    }
}

impl Encode for Value {
    fn encode(&self, to: &mut Vec<u8>) {
        self.to_string().encode(to);
    }
}

impl Decode for Value {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let text = from.text()?;
        serde_json::from_str(text).map_err(|error| from.malformed(format!("a Json that is none: {error}")))
    }
}

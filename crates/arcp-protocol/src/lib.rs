//! The messages of ARCP, both dialects: types, decoding, encoding. No I/O, no clock, no state. Source: protocols/arcp.md.

pub mod a;
pub mod b;
mod dialect;
pub mod ids;

pub use dialect::{Dialect, DialectError};

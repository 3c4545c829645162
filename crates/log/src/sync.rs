//! What threads meet through. With the feature `shuttle` a test decides which of them goes on at each use of it.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{
    sync::{atomic, mpsc},
    thread,
};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::{atomic, mpsc},
    thread,
};

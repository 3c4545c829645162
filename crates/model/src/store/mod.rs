//! What clients see of a store: its statistics, its collections and its backups. The store itself is in `log`.

mod backup;
mod collection;
mod statistics;

pub use backup::Manifest;
pub use collection::{Collected, Collection};
pub use statistics::{SessionStatistics, StoreStatistics};

//! Backups: all that a store holds at one moment, in a folder that is a store itself. It is whole once its manifest is there.

/// The name of the file that ends a backup.
pub const MANIFEST: &str = "backup.json";

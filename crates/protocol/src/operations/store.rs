//! The store: its statistics, collections and backups.

use mainstay_model::store::{Collected, Collection, Manifest, StoreStatistics};
use serde::{Deserialize, Serialize};

operations! {
    /// What the store holds, in numbers.
    "store/statistics" GetStoreStatistics {} -> StoreStatistics;

    /// Removes some of what deleted sessions have left and no other has.
    "store/collect" Collect {
        /// Where to go on; from the beginning where it does not say.
        #[serde(default)]
        from: Collection,
    } -> CollectedPart;

    /// Writes a backup of all that is stored now.
    "store/backup" BackUp {
        /// A folder on the daemon's machine, absolute, that is empty or not there.
        folder: String,
    } -> Manifest;
}

/// A part of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollectedPart {
    /// What this part of the collection removed.
    #[serde(flatten)]
    pub collected: Collected,
    /// Where to go on; nothing more to do where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Collection>,
}

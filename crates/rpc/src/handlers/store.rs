//! The store: its statistics, collections and backups.

use super::call::Call;
use mainstay_model::Error;
use mainstay_model::store::{Manifest, StoreStatistics};
use mainstay_protocol::operations::{BackUp, Collect, CollectedPart, GetStoreStatistics};

pub(crate) async fn statistics(call: Call, _: GetStoreStatistics) -> Result<StoreStatistics, Error> {
    call.client.store_statistics().await
}

pub(crate) async fn collect(call: Call, asked: Collect) -> Result<CollectedPart, Error> {
    let (collected, next) = call.client.collect(asked.from).await?;
    Ok(CollectedPart { collected, next })
}

pub(crate) async fn back_up(call: Call, asked: BackUp) -> Result<Manifest, Error> {
    call.client.back_up(asked.folder.into()).await
}

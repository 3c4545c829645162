//! Texts of source files that are not saved.

use mainstay_engine::NewBuffer;
use mainstay_model::{BufferRun, Error, UnsavedBuffer};
use mainstay_protocol::operations::{DiscardBuffer, ListBuffers, Nothing, PutBuffer};

use super::call::Call;

pub(crate) async fn put(call: Call, asked: PutBuffer) -> Result<BufferRun, Error> {
    let PutBuffer { session, path, version, text } = asked;
    call.client.put_buffer(call.resolve(&session).await?, NewBuffer { path, version, text }).await
}

pub(crate) async fn discard(call: Call, asked: DiscardBuffer) -> Result<Nothing, Error> {
    let DiscardBuffer { session, path } = asked;
    call.client.discard_buffer(call.resolve(&session).await?, path).await?;
    Ok(Nothing {})
}

pub(crate) async fn list(call: Call, asked: ListBuffers) -> Result<Vec<UnsavedBuffer>, Error> {
    call.client.buffers(call.resolve(&asked.session).await?).await
}

//! Export and import of sessions.

use super::call::{Call, unexpected};
use super::page::PAGE_BYTES;
use mainstay_engine::ExportPage;
use mainstay_formats::exchange::{self, SessionFile};
use mainstay_gateway::command::id_of;
use mainstay_model::{Error, Outcome, Response, Timestamp};
use mainstay_protocol::operations::{ExportSession, Exported, ImportSession, Imported};

pub(crate) async fn export(call: Call, export: ExportSession) -> Result<Exported, Error> {
    let session = call.resolve(&export.session).await?;
    let ExportPage { header, items, next } = call.client.export(session, export.cursor, PAGE_BYTES).await?;
    Ok(Exported { header, items, next })
}

pub(crate) async fn import(call: Call, import: ImportSession) -> Result<Imported, Error> {
    let ImportSession { command, file, working_directory, name } = import;
    let file = exchange::read_session_file(&file, Timestamp::now())?;
    let entries = file.entries();
    let create = file.creation(working_directory, name);
    let SessionFile { imported, format, left_out } = file;
    let import = mainstay_engine::ImportSession { create, imported };
    match call.client.import(id_of(command)?, import).await? {
        Outcome::Done { response: Response::Created { session } } => {
            Ok(Imported { session: call.view(session).await?, format, entries, left_out })
        }
        outcome => Err(unexpected(&outcome)),
    }
}

//! The whole schema as a document: every command and its answers, and the frames of streams.

use super::super::endpoint::{Answer, Endpoint, Message};
use super::super::signals::Frame;
use super::super::submission::Accepted;
use super::schema::Schema;
use super::{Shape, VERSION};
use mainstay_protocol::view::SessionView;

/// The whole schema: the bodies of commands and their answers, and the frames of streams.
pub(crate) fn document() -> String {
    let mut schema = Schema::default();
    let mut commands = String::new();
    for Endpoint { method, path, body, answer, .. } in super::super::routes::endpoints() {
        let Some(Message { bare: Some(body), .. }) = body else { continue };
        let body = body(&mut schema);
        let answers = match answer {
            Answer::Command(Message { bare: Some(outcome), .. }) => {
                format!("{} or {}", Accepted::shape(&mut schema), outcome(&mut schema))
            }
            Answer::Session => {
                format!("{} or {}", Accepted::shape(&mut schema), SessionView::shape(&mut schema))
            }
            Answer::Command(Message { bare: None, .. }) | Answer::Json(_) | Answer::Created(_) => {
                "JSON alone".to_owned()
            }
            Answer::Text | Answer::Stream(_) | Answer::Frames | Answer::Nothing => "nothing".to_owned(),
        };
        commands.push_str(&format!("# {method} {path}: {body}, answered with {answers}\n"));
    }
    let frame = Frame::shape(&mut schema);
    format!(
        "# Mainstay over HTTP in BARE (draft-devault-bare): application/bare; version={VERSION}\n\
         #\n\
         # Made of the types; a test compares it, and has another implementation of BARE read with it what these\n\
         # types write (vectors.json). Names and meanings are those of the JSON (openapi.json, signals.json); what\n\
         # JSON leaves out is an empty list, false, 0, or none where it is optional.\n\
         #\n\
         # What a version says never changes. The next one may add fields, and members at the end of enums and unions;\n\
         # a client says in Accept and Content-Type which one it speaks, and without a version it speaks 1.\n\
         #\n\
         # What clients say, and are answered (the second with Prefer: wait). Problems are application/problem+json.\n\
         {commands}# GET /stream, as a WebSocket: each binary frame is a {frame}\n{}",
        schema.definitions()
    )
}

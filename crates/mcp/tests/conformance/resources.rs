//! The resources that the suite knows by address.

use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::tools::PNG;

/// Returns the resources that the server lists.
pub(crate) fn listed() -> Vec<Resource> {
    ["static-text", "static-binary", "watched-resource"]
        .map(|name| {
            Resource::new(format!("test://{name}"), name).with_description("The conformance suite reads it.")
        })
        .into()
}

/// The one that stands for many.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("test://template/{id}/data", "template")
        .with_description("The conformance suite reads it.")
}

/// What is at an address, where it is one of these.
pub(crate) fn read(uri: &str) -> Option<ReadResourceResult> {
    let of_template = || uri.strip_prefix("test://template/")?.strip_suffix("/data");
    let content = match uri {
        "test://static-text" => {
            ResourceContents::text("This is the content of the static text resource.", uri)
                .with_mime_type("text/plain")
        }
        "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        "test://watched-resource" => {
            ResourceContents::text("It is watched.", uri).with_mime_type("text/plain")
        }
        _ => {
            let id = of_template()?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
        }
    };
    Some(ReadResourceResult::new(vec![content]))
}

/// The product's own resource that stands for the one that is to be watched.
pub(crate) fn followed(uri: String) -> String {
    if uri == "test://watched-resource" { "mainstay://sessions".to_owned() } else { uri }
}

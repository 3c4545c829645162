//! What code shows besides text: the best of its forms that a page can show. HTML and SVG come from an address of their own, and are shown where
//! they can run nothing and reach nothing: in a frame without any rights, and as a picture.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use mainstay_model::display::{HTML, SVG, TABLE};
use mainstay_model::{Bundle, Error, EventBody, Form, Seq, SessionId};
use maud::{Markup, html};
use serde_json::Value;

use super::guard::{Refused, Viewer};

/// Pictures that a page shows.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// How many rows of a table are shown.
const ROWS: usize = 200;
/// What HTML that code made may do: look as it likes.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'self'";

/// It, in the form that says most.
pub(super) fn shown(session: SessionId, seq: Seq, data: &Bundle) -> Markup {
    let address = |kind: &str| format!("/ui/sessions/{session}/displays/{seq}/{kind}");
    let table = data.form(TABLE).and_then(rows);
    let picture = data.picture().filter(|picture| PICTURES.contains(&picture.kind.as_str()));
    html! {
        @if let Some((columns, rows)) = table { (table_of(&columns, rows)) }
        @else if data.form(SVG).is_some() { img src=(address("svg")) alt=(data.text()); }
        @else if let Some(picture) = picture {
            img src={ "data:" (picture.kind) ";base64," (picture.data.as_str()) } alt=(data.text());
        }
        @else if data.form(HTML).is_some() {
            iframe src=(address("html")) sandbox="" title="What the code shows" loading="lazy" referrerpolicy="no-referrer" {}
        }
        @else { pre tabindex="0" { (data.text()) } }
    }
}

/// The columns of a table, and its rows.
fn rows(form: &Form) -> Option<(Vec<String>, &Vec<Value>)> {
    let Form::Json(table) = form else { return None };
    let fields = table["schema"]["fields"].as_array()?;
    let columns = fields.iter().filter_map(|field| field["name"].as_str().map(str::to_owned)).collect();
    Some((columns, table["data"].as_array()?))
}

fn table_of(columns: &[String], rows: &[Value]) -> Markup {
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    html! {
        div.table tabindex="0" role="region" aria-label="Table" {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody {
                    @for row in rows.iter().take(ROWS) {
                        tr { @for column in columns { td.number[row[column.as_str()].is_number()] { (cell(&row[column.as_str()])) } } }
                    }
                }
            }
            @if rows.len() > ROWS { p.faint { "and " (rows.len() - ROWS) " other rows" } }
        }
    }
}

/// One form of what an event shows.
pub(super) async fn serve(
    viewer: Viewer,
    Path((id, seq, kind)): Path<(String, u64, String)>,
) -> Result<Response, Refused> {
    let session = viewer.session(&id).await?;
    let (kind, media) = match kind.as_str() {
        "svg" => (SVG, SVG),
        _ => (HTML, "text/html; charset=utf-8"),
    };
    let events = viewer.client.events(session, Seq(seq.saturating_sub(1)), 1).await?;
    let event = events.first().filter(|event| event.seq == Seq(seq));
    let form = match event.map(|event| &event.body) {
        Some(EventBody::OutputDisplayed { display, .. }) => display.data.form(kind),
        Some(_) | None => None,
    };
    let Some(Form::Text(text)) = form else {
        let reason = format!("event {seq} of this session shows nothing of that kind");
        return Err(Refused(Error::InvalidArgument { argument: "display".to_owned(), reason }));
    };
    Ok(([(header::CONTENT_TYPE, media), (header::CONTENT_SECURITY_POLICY, POLICY)], text.clone())
        .into_response())
}

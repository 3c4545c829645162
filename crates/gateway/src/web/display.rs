//! What code shows besides text: the best of its forms that a page can show. HTML and SVG come from an address of their own, and are shown where
//! they can run nothing and reach nothing: in a frame without any rights, and as a picture.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use mainstay_model::display::{HTML, SVG, TABLE};
use mainstay_model::entry::FORMS;
use mainstay_model::{Bundle, Error, EventBody, Form, Seq, SessionId};
use maud::{Markup, html};
use serde_json::Value;

use super::guard::{Refused, Viewer};
use super::markdown;

/// Pictures that a page shows.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Markdown.
const MARKDOWN: &str = "text/markdown";
/// Descriptions of charts: what is drawn of them, where anything is, is another form.
const CHARTS: [&str; 3] =
    ["application/vnd.vegalite.v5+json", "application/vnd.vega.v5+json", "application/vnd.plotly.v1+json"];
/// How many rows of a table are shown.
const ROWS: usize = 200;
/// What HTML that code made may do: look as it likes.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'self'";

/// Where a form is of what an event shows.
pub(super) fn address(session: SessionId, seq: Seq) -> impl Fn(&str) -> String {
    move |kind| format!("/ui/sessions/{session}/displays/{seq}/{kind}")
}

/// It, in the form that says most; `address` is where its forms are.
pub(super) fn shown(data: &Bundle, address: &impl Fn(&str) -> String) -> Markup {
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
        @else if let Some(Form::Text(text)) = data.form(MARKDOWN).filter(|form| is_short(form)) {
            div.markdown { (markdown::shown(text)) }
        }
        @else {
            pre tabindex="0" { (data.text()) }
            @for (kind, form) in charts(data) {
                details.chart {
                    summary { "a chart as " (kind) ", which this page does not draw" }
                    pre tabindex="0" { (serde_json::to_string_pretty(form).unwrap_or_default()) }
                }
            }
        }
    }
}

fn is_short(form: &Form) -> bool {
    matches!(form, Form::Text(text) if text.len() <= markdown::LONGEST)
}

/// Descriptions of charts, which libraries draw that make functions of them.
fn charts(data: &Bundle) -> impl Iterator<Item = (&'static str, &Value)> {
    CHARTS.into_iter().filter_map(|kind| match data.form(kind)? {
        Form::Json(chart) => Some((kind, chart)),
        Form::Text(_) | Form::Binary(_) => None,
    })
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
    let events = viewer.client.events(session, Seq(seq.saturating_sub(1)), 1).await?;
    let event = events.into_iter().next().filter(|event| event.seq == Seq(seq));
    let data = match event.map(|event| event.body) {
        Some(EventBody::OutputDisplayed { display, .. }) => Some(display.data),
        Some(_) | None => None,
    };
    form(data.as_ref(), &kind)
}

/// One form of what an entry of a transcript shows.
pub(super) async fn serve_entry(
    viewer: Viewer,
    Path((id, index, kind)): Path<(String, u64, String)>,
) -> Result<Response, Refused> {
    let session = viewer.session(&id).await?;
    let entries = viewer.client.whole_entries(session, index, 1).await?;
    let entry =
        entries.first().map(|placed| &placed.entry).filter(|entry| entry.metadata.contains_key(FORMS));
    let data = entry.and_then(|entry| serde_json::from_str::<Bundle>(entry.content.beginning()).ok());
    form(data.as_ref(), &kind)
}

fn form(data: Option<&Bundle>, kind: &str) -> Result<Response, Refused> {
    let (kind, media) = match kind {
        "svg" => (SVG, SVG),
        _ => (HTML, "text/html; charset=utf-8"),
    };
    let Some(Form::Text(text)) = data.and_then(|data| data.form(kind)) else {
        let reason = "nothing of that kind is shown there".to_owned();
        return Err(Refused(Error::InvalidArgument { argument: "display".to_owned(), reason }));
    };
    Ok(([(header::CONTENT_TYPE, media), (header::CONTENT_SECURITY_POLICY, POLICY)], text.clone())
        .into_response())
}

//! What code shows, as HTML: the richest form that a page can show. HTML and SVG are shown where nothing of
//! theirs runs or reaches anything: in a frame without rights, and as a picture. What runs in the frame is a script of ours, which says how high
//! it is. The frame has the same address for everything: the page fetches what it shows, and hands it over.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use mainstay_model::display::{HTML, MimeType, SVG, TABLE, TEST_PROGRESS, TESTS};
use mainstay_model::entry::FORMS;
use mainstay_model::{Base64, Bundle, Error, EventBody, Form, Seq, SessionId};
use mainstay_plot::{Chart, drawn};
use maud::{Markup, html};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::guard::{Refused, Viewer};
use super::{markdown, printed_text};

/// Pictures that a page shows.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The MIME type of Markdown.
const MARKDOWN: &str = "text/markdown";
/// The MIME type of formulas in LaTeX.
const LATEX: &str = "text/latex";
/// Descriptions of charts, of whatever version.
const CHARTS: [&str; 3] = ["application/vnd.vegalite.", "application/vnd.vega.", "application/vnd.plotly."];
/// How many rows of a table are shown.
const ROWS: usize = 200;
/// What stands before HTML that code made: tables look like tables, and the frame becomes as high as what is in it. It says so whenever that
/// changes, and with what a scroll bar takes.
const FRAME_STYLE: &str = "body{margin:.5rem;font:14px/1.45 system-ui,sans-serif;color:#1b1f24}\
    table{border-collapse:collapse;border:0;font-variant-numeric:tabular-nums}\
    th,td{padding:.15rem .6rem;border:0;border-bottom:1px solid #d8dee4;text-align:right;vertical-align:top}\
    thead th{border-bottom:1px solid #8c959f}";
const FRAME_SCRIPT: &str = "addEventListener('message',({source,data})=>{if(source===parent)document.body.innerHTML=data.html});\
    addEventListener('DOMContentLoaded',()=>parent.postMessage({ready:true},'*'));\
    new ResizeObserver(()=>{const root=document.documentElement;\
    parent.postMessage({height:root.getBoundingClientRect().height+innerHeight-root.clientHeight},'*')})\
    .observe(document.documentElement)";
/// What HTML and SVG that code made may do: look as they like.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'self'";
/// The same, and run that script, by what it is.
static FRAME_POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = Base64::of(&Sha256::digest(FRAME_SCRIPT));
    POLICY.replacen("sandbox;", &format!("sandbox allow-scripts; script-src 'sha256-{}';", hash.as_str()), 1)
});

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
        @else if let Some(Form::Text(svg)) = data.form(SVG) {
            img src={ "data:image/svg+xml;base64," (Base64::of(svg.as_bytes()).as_str()) } alt=(data.text()) width=[data.wanted_size(SVG).width];
        }
        @else if let Some(picture) = picture {
            @let width = data.wanted_size(picture.kind.as_str()).width_of(&picture);
            img src={ "data:" (picture.kind) ";base64," (picture.data.as_str()) } alt=(data.text()) width=[width];
        }
        @else if let Some(chart) = chart(data) { (drawn(&chart, data.text())) }
        // What comes as HTML with a chart's description is a script that draws it.
        @else if data.form(HTML).is_some() && !has_chart(data) {
            iframe src="/ui/frame" data-shows=(address("html")) sandbox="allow-scripts" title="What the code shows" loading="lazy"
                referrerpolicy="no-referrer" data-preserve-attr="style" {}
        }
        @else if let Some(Form::Text(text)) = data.form(MARKDOWN).filter(|form| is_short(form)) {
            div.markdown { (markdown::shown(text)) }
        }
        @else if let Some(Form::Text(formula)) = data.form(LATEX) {
            pre.latex tabindex="0" { code { (formula.trim()) } }
        }
        @else {
            pre tabindex="0" { (printed_text::text(&data.coloured_words())) }
            @for (kind, form) in descriptions(data) {
                details.folded {
                    summary { @if is_chart(kind) { "a chart as " (kind) ", which this page does not draw" } @else { (kind) } }
                    pre tabindex="0" { (serde_json::to_string_pretty(form).unwrap_or_default()) }
                }
            }
        }
    }
}

fn is_short(form: &Form) -> bool {
    matches!(form, Form::Text(text) if text.len() <= markdown::LONGEST)
}

/// What programs read of it: data, and descriptions of charts. What tests came to the text says.
fn descriptions(data: &Bundle) -> impl Iterator<Item = (&MimeType, &Value)> {
    let is_of_tests = |kind: &MimeType| [TESTS, TEST_PROGRESS].contains(&kind.as_str());
    data.forms().filter(move |(kind, _)| !is_of_tests(kind)).filter_map(|(kind, form)| match form {
        Form::Json(value) => Some((kind, value)),
        Form::Text(_) | Form::Binary(_) => None,
    })
}

/// The chart that is described, where it is one that is drawn here.
fn chart(data: &Bundle) -> Option<Chart> {
    descriptions(data).find_map(|(kind, description)| Chart::read(kind.as_str(), description))
}

fn has_chart(data: &Bundle) -> bool {
    descriptions(data).any(|(kind, _)| is_chart(kind))
}

fn is_chart(kind: &MimeType) -> bool {
    CHARTS.iter().any(|chart| kind.as_str().starts_with(chart))
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
    let Some(Form::Text(shown)) = data.filter(|_| kind == "html").and_then(|data| data.form(HTML)) else {
        let reason = "nothing of that kind is shown there".to_owned();
        return Err(Refused(Error::InvalidArgument { argument: "display".to_owned(), reason }));
    };
    // Opened by itself it may do nothing either.
    let headers =
        [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, POLICY)];
    Ok((headers, shown.clone()).into_response())
}

/// The frame, before it is handed anything.
pub(super) async fn frame() -> impl IntoResponse {
    let html = format!("<!doctype html><style>{FRAME_STYLE}</style><script>{FRAME_SCRIPT}</script><body>");
    let policy = FRAME_POLICY.as_str();
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, policy)], html)
}

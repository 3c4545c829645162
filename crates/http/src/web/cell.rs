//! Cells as HTML. Everything that was said by someone is escaped; what code shows as HTML stands in a frame of its own ([`display`]).

use mainstay_model::{Diagnostic, JobSpec, Language, PartRole, RaisedError, Severity, Source, Timestamp};
use maud::{Markup, html};

use super::cell_state::{Body, Cell, CellEnd, CellPart, Ending, ReturnedValue, Tone, ToolState, name_of};
use super::display;
use super::page::Change;
use super::patch::Patch;
use super::printed_text;
use mainstay_highlight::{self as highlight, Syntax};

/// The id of the element that holds the cells.
pub(super) const CELLS: &str = "cells";
/// Code of more bytes is shown without colours.
const COLOURED_BYTES: usize = 64 * 1024;

/// What brings a page up to date with a cell that has changed so.
pub(super) fn patches(cell: &Cell, change: &Change, language: Option<&Language>) -> Vec<Patch> {
    if change.is_new {
        let (to, id) = (CELLS.to_owned(), format!("cell-{}", cell.seq));
        return vec![Patch::Add { to, id, html: whole(cell, language).into_string() }];
    }
    let parts = cell.parts.iter().enumerate();
    let added = change.added_from.unwrap_or(usize::MAX);
    let replaced = parts.clone().filter(|(index, _)| *index < added && change.replaced.contains(index));
    let mut patches: Vec<Patch> =
        replaced.map(|(index, part_of)| Patch::morph(part(cell, index, part_of))).collect();
    let new = html! { @for (index, part_of) in parts.skip_while(|(index, _)| *index < added) { (part(cell, index, part_of)) } };
    if change.added_from.is_some() {
        patches.push(Patch::Append { to: format!("c{}-parts", cell.seq), html: new.into_string() });
    }
    if change.is_reframed {
        patches.push(Patch::morph(html! { (head(cell)) (foot(cell)) }));
    }
    patches
}

/// A cell of a session that runs this language, if that is known.
pub(super) fn whole(cell: &Cell, language: Option<&Language>) -> Markup {
    let seq = cell.seq;
    let kind = match &cell.body {
        Body::Eval { .. } => "eval",
        Body::Work { .. } | Body::Message { .. } => "work",
        Body::Note { tone: Tone::Plain, .. } | Body::Brought { .. } => "note",
        Body::Note { tone: Tone::Warning, .. } => "note warning",
        Body::Note { tone: Tone::Error, .. } => "note error",
    };
    html! {
        article.cell.{ (kind) } id={ "cell-" (seq) } tabindex="-1" aria-labelledby={ "c" (seq) "-head" } {
            (head(cell))
            (said(cell, language))
            div.parts id={ "c" (seq) "-parts" } {
                @for (index, part_of) in cell.parts.iter().enumerate() { (part(cell, index, part_of)) }
            }
            (foot(cell))
        }
    }
}

/// Who, when, and how it stands.
fn head(cell: &Cell) -> Markup {
    let seq = cell.seq;
    html! {
        header id={ "c" (seq) "-head" } {
            a.seq href={ "#cell-" (seq) } title="The event that began it" { (seq) }
            @if let Body::Message { role, .. } = &cell.body { span.role { (speaker(*role)) } } @else { (who(&cell.source)) }
            (moment(cell.at))
            @match &cell.body {
                Body::Message { model, .. } => { @if let Some(model) = model { span.file { (model) } } }
                Body::Eval { file, is_brought, .. } => {
                    @if let Some(file) = file { span.file { (file) } }
                    @if *is_brought { span.file { "brought" } }
                    (state(cell))
                }
                Body::Work { work, .. } => { span.file { (work.kind().name()) } (state(cell)) }
                Body::Note { .. } | Body::Brought { .. } => {}
            }
        }
    }
}

/// Who says a message that has this part first.
const fn speaker(role: PartRole) -> &'static str {
    match role {
        PartRole::System => "system",
        PartRole::User => "user",
        PartRole::Assistant | PartRole::Thinking | PartRole::ToolCall => "assistant",
        PartRole::ToolResult => "tool",
    }
}

fn state(cell: &Cell) -> Markup {
    let (class, words) = match (&cell.end, &cell.cancelled_by) {
        (None, None) => ("runs", "runs".to_owned()),
        (None, Some(by)) => ("runs", format!("{} cancels", name_of(by))),
        (Some(CellEnd { how, duration_ms, .. }), by) => {
            let (class, words) = ended(how);
            let by = by.as_ref().map(|by| format!(" by {}", name_of(by))).unwrap_or_default();
            let took = duration_ms.map(|took| format!(" in {}", duration(took))).unwrap_or_default();
            (class, format!("{words}{by}{took}"))
        }
    };
    html! { span.state.{ (class) } { (words) } }
}

const fn ended(how: &Ending) -> (&'static str, &'static str) {
    match how {
        Ending::Completed => ("ok", "done"),
        Ending::Rejected => ("bad", "has errors"),
        Ending::Raised(_) => ("bad", "raised"),
        Ending::WorkerExited(_) => ("bad", "ended its worker"),
        Ending::Cancelled => ("off", "cancelled"),
        Ending::Interrupted => ("off", "cut off"),
        Ending::Failed(_) => ("bad", "failed"),
    }
}

/// What was asked for.
fn said(cell: &Cell, language: Option<&Language>) -> Markup {
    html! {
        @match &cell.body {
            Body::Eval { is_withheld: true, .. } => { p.faint { "The code is withheld." } }
            Body::Eval { code, .. } => { (painted(code, language)) }
            Body::Work { work: JobSpec::Turn { prompt }, .. } => { p.prompt { (prompt) } }
            Body::Work { work, .. } => { p.prompt { (work) } }
            Body::Note { text, .. } => { p { (text) } }
            // Its parts are all there is.
            Body::Message { .. } => {}
            Body::Brought { from, entries, is_fork } => {
                p {
                    (if *is_fork { "begins with " } else { "has " }) (entries) " entries of "
                    a href={ "/ui/sessions/" (from) } { "another session" }
                }
            }
        }
    }
}

fn part(cell: &Cell, index: usize, part: &CellPart) -> Markup {
    let id = format!("c{}-p{index}", cell.seq);
    match part {
        CellPart::Printed(screen) => html! { span id=(id) { (printed_text::shown(screen)) } },
        CellPart::Displayed { seq, display } => {
            html! { div.display id=(id) { (display::shown(&display.data, &display::address(cell.session, *seq))) } }
        }
        CellPart::Gone => html! { span id=(id) hidden {} },
        CellPart::Cut { left_out: 0, is_over_limit } => html! {
            span.cut id=(id) hidden[!is_over_limit] { "… of what follows only the end is kept" }
        },
        CellPart::Cut { left_out, .. } => {
            html! { span.cut id=(id) { "… " (left_out) " bytes are not shown here" } }
        }
        CellPart::Said { role: PartRole::Thinking, text, is_open } => html! {
            details.thinking id=(id) open[*is_open] data-preserve-attr="open" { summary { "thinking" } p { (text) } }
        },
        CellPart::Said { role: PartRole::User, text, .. } => html! { p.prompt id=(id) { (text) } },
        CellPart::Said {
            role: PartRole::Assistant | PartRole::System | PartRole::ToolCall | PartRole::ToolResult,
            text,
            is_open,
        } => html! { p.said id=(id) data-open[*is_open] hidden[text.is_empty()] { (text) } },
        CellPart::Called { tool, arguments, state, .. } => called(&id, tool, arguments, state),
        CellPart::Noted { tone, text } => html! { p.noted.{ (tone_class(*tone)) } id=(id) { (text) } },
    }
}

fn called(id: &str, tool: &str, arguments: &str, state: &ToolState) -> Markup {
    let (class, mark, text) = match state {
        ToolState::Said => ("runs", "…", ""),
        ToolState::Runs(so_far) => ("runs", "runs", so_far.as_str()),
        ToolState::Answered { text, is_error: false } => ("ok", "✓", text.as_str()),
        ToolState::Answered { text, is_error: true } => ("bad", "✗", text.as_str()),
        ToolState::Unanswered => ("off", "no answer", ""),
    };
    html! {
        details.tool id=(id) data-preserve-attr="open" {
            summary { span.state.{ (class) } { (mark) } " " b { (if tool.is_empty() { "tool" } else { tool }) } " " code { (beginning(arguments)) } }
            @if !arguments.is_empty() { pre tabindex="0" { (arguments) } }
            @if !text.is_empty() { pre.answer tabindex="0" { (printed_text::text(text)) } }
        }
    }
}

/// How a text begins, on one line.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 100;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What came of it.
fn foot(cell: &Cell) -> Markup {
    html! {
        footer id={ "c" (cell.seq) "-foot" } {
            @if let Some(CellEnd { how, result, .. }) = &cell.end {
                (given(result, |value| is_shown(cell, value)))
                @match how {
                    Ending::Raised(error) => { (raised(error)) }
                    Ending::WorkerExited(exit) => {
                        p.error { "The code ended its worker with " (exit) "; the session is rebuilt from its earlier definitions." }
                    }
                    Ending::Failed(message) => { p.error { (message) } }
                    Ending::Interrupted => { p.faint { "Its worker or the daemon was lost while it ran." } }
                    Ending::Completed | Ending::Rejected | Ending::Cancelled => {}
                }
            }
        }
    }
}

/// Whether a value stands above in a form that says more than this text of it, as a table does.
fn is_shown(cell: &Cell, value: &str) -> bool {
    cell.parts.iter().any(|part| match part {
        CellPart::Displayed { display, .. } => {
            display.is_value
                && (display.data.text() == value
                    || display.data.form(mainstay_model::display::HTML).is_some())
        }
        CellPart::Printed(_)
        | CellPart::Gone
        | CellPart::Cut { .. }
        | CellPart::Said { .. }
        | CellPart::Called { .. }
        | CellPart::Noted { .. } => false,
    })
}

fn given(given: &ReturnedValue, is_shown: impl Fn(&str) -> bool) -> Markup {
    let ReturnedValue { value, value_type, bindings, diagnostics, words } = given;
    html! {
        @if let Some(words) = words { pre.words tabindex="0" { (words) } }
        @if value.is_some() || !bindings.is_empty() {
            dl.values {
                @for binding in bindings {
                    dt { (binding.name) span.type { " : " (binding.value_type) } }
                    dd { @if let Some(value) = &binding.value { code { (value) } } }
                }
                @if let Some(value) = value {
                    dt { "it" @if let Some(of) = value_type { span.type { " : " (of) } } }
                    dd { @if !is_shown(value) { code { (value) } } }
                }
            }
        }
        (problems(diagnostics))
    }
}

/// What a compiler says of code, as a list; hidden remarks are for tools.
pub(super) fn problems(diagnostics: &[Diagnostic]) -> Markup {
    let shown: Vec<&Diagnostic> =
        diagnostics.iter().filter(|diagnostic| diagnostic.severity != Severity::Hidden).collect();
    html! {
        @if !shown.is_empty() {
            ul.problems {
                @for diagnostic @ Diagnostic { severity, code, message, start, .. } in shown {
                    li.{ (severity.name()) } {
                        b { (severity.name()) } " "
                        span.place data-line=(start.line) data-column=(start.column) { (diagnostic.place()) }
                        " " span.id { (code) } " " span.message { (message) }
                    }
                }
            }
        }
    }
}

fn raised(RaisedError { kind, message, stack, coloured_stack }: &RaisedError) -> Markup {
    let stack = coloured_stack.as_deref().or(stack.as_deref());
    html! {
        div.error {
            p { b { (kind) } ": " (message) }
            @if let Some(stack) = stack { details { summary { "stack" } pre tabindex="0" { (printed_text::text(stack)) } } }
        }
    }
}

/// Code in colours, where its language is known.
pub(super) fn painted(code: &str, language: Option<&Language>) -> Markup {
    let spans = if code.len() > COLOURED_BYTES {
        vec![(Syntax::Plain, 0..code.len())]
    } else {
        highlight::spans(code, language)
    };
    // A grammar that splits a character leaves the code without colours.
    let pieces: Option<Vec<_>> =
        spans.into_iter().map(|(syntax, range)| Some((syntax, code.get(range)?))).collect();
    html! {
        pre.code tabindex="0" {
            code {
                @match pieces {
                    Some(pieces) => @for (syntax, text) in pieces {
                        @match class_of(syntax) {
                            Some(class) => span.{ (class) } { (text) },
                            None => (text),
                        }
                    },
                    None => (code),
                }
            }
        }
    }
}

const fn class_of(syntax: Syntax) -> Option<&'static str> {
    match syntax {
        Syntax::Keyword => Some("k"),
        Syntax::Type => Some("t"),
        Syntax::Text => Some("s"),
        Syntax::Number => Some("n"),
        Syntax::Operator => Some("o"),
        Syntax::Comment => Some("c"),
        Syntax::Plain => None,
    }
}

const fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Warning => "warning",
        Tone::Error => "error",
    }
}

/// Someone, with a colour of their own.
pub(super) fn who(source: &Source) -> Markup {
    const COLOURS: u32 = 8;
    let name = name_of(source);
    let colour =
        name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % COLOURS;
    html! { span.who.{ "h" (colour) } { (name) } }
}

/// A moment; the browser writes it as its people do, and how long ago that is.
pub(super) fn moment(at: Timestamp) -> Markup {
    let written = format!("{at:.0}");
    html! { m-time datetime=(written) { (written) } }
}

/// How long something took.
pub(super) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

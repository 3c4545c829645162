//! What a reset would drop, as a form for a dialog that asks before it. The reset itself goes to the HTTP API.

use axum::extract::Path;
use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use mainstay_model::{Error, Session};
use mainstay_runner::query::KernelQuery;
use maud::{Markup, html};

use super::guard::{Refused, Viewer, argument};
use mainstay_protocol::reset_warning::{NAMING, has_begun, what_is_lost};

/// The resets that the page has buttons for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    Plain,
    Hard,
    Build,
}

impl Reset {
    fn named(name: &str) -> Option<Self> {
        [Self::Plain, Self::Hard, Self::Build].into_iter().find(|reset| reset.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "reset",
            Self::Hard => "hardReset",
            Self::Build => "rebuild",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Plain => "Reset",
            Self::Hard => "Hard reset",
            Self::Build => "Build and reset",
        }
    }

    /// What is to be known of it besides.
    const fn remark(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Hard => Some("Code that runs is ended, and a new worker takes the place of this one."),
            Self::Build => Some("Where the build fails, nothing is dropped."),
        }
    }
}

/// The question; no content where there is nothing to lose.
pub(super) async fn question(viewer: Viewer, Path(id): Path<String>, uri: Uri) -> Result<Response, Refused> {
    let session = viewer.client.status(viewer.session(&id).await?).await?.session;
    let how = argument(&uri, "how").unwrap_or_default();
    let reset = Reset::named(&how).ok_or_else(|| Error::InvalidArgument {
        argument: "how".to_owned(),
        reason: format!("`{how}` is none of reset, hardReset and rebuild"),
    })?;
    if !has_begun(session.evals, session.title.as_deref()) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let lost = what_is_lost("this session", session.is_agent(), &names(&viewer, &session).await);
    Ok(Html(form(reset, &lost).into_string()).into_response())
}

/// The names that its code has bound; none where its worker cannot be asked, or does not answer: it has its definitions all the same.
async fn names(viewer: &Viewer, session: &Session) -> Vec<String> {
    let asked = viewer.client.query(session.id, KernelQuery::Values);
    let Ok(Ok(answer)) = tokio::time::timeout(NAMING, asked).await else { return Vec::new() };
    let values = answer.values().unwrap_or_default();
    values.into_iter().map(|value| value.name).collect()
}

fn form(reset: Reset, lost: &str) -> Markup {
    html! {
        form #reset method="dialog" {
            h2 { (reset.title()) }
            p { "This drops " (lost) "." }
            @if let Some(remark) = reset.remark() { p { (remark) } }
            p.faint { "The transcript is kept: “Undo the reset” then makes a session of what is there now." }
            div.buttons {
                button value="" { "Leave it" }
                button.primary value="yes" { (reset.title()) }
            }
        }
    }
}

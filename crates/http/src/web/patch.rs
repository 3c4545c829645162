//! What is sent to a page that is open: events `datastar-patch-elements`, each of which may come twice and change nothing then.
//! `assets/live.js` applies them.
//! Source: data-star.dev, "SSE events". The official crate would bring the same few lines, and another version of axum's traits with them.

use std::fmt::Write;

use maud::Markup;

/// A change of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Patch {
    /// Each of these elements takes the place of the one with its id.
    Morph(String),
    /// An element with this id stands at the end of another, once.
    Add {
        /// The id of the element at whose end it is put.
        to: String,
        /// The id of the new element.
        id: String,
        html: String,
    },
    /// These elements follow at the end of another. Whoever sends it twice has sent the other whole before.
    Append {
        /// The id of the element to which it is appended.
        to: String,
        html: String,
    },
    /// These elements stand before all others of another.
    Prepend {
        /// The id of the element to which it is prepended.
        to: String,
        html: String,
    },
}

impl Patch {
    pub(super) fn morph(html: Markup) -> Self {
        Self::Morph(html.into_string())
    }

    /// Its lines of the stream.
    pub(super) fn events(&self) -> String {
        match self {
            Self::Morph(html) => event(None, html),
            Self::Add { to, id, html } => {
                event(Some(("remove", id)), "") + &event(Some(("append", to)), html)
            }
            Self::Append { to, html } => event(Some(("append", to)), html),
            Self::Prepend { to, html } => event(Some(("prepend", to)), html),
        }
    }
}

/// Says how far the page is, once all before it was taken in: where its next connection goes on.
pub(super) fn reached(place: u64) -> String {
    format!("id: {place}\n\n")
}

/// Says that the connection lives.
pub(super) const KEEP_ALIVE: &str = ": \n\n";

/// One event; `what` is done with the element of this id, a morph of all in `html` where there is none.
fn event(what: Option<(&str, &str)>, html: &str) -> String {
    let mut event = "event: datastar-patch-elements\n".to_owned();
    if let Some((mode, id)) = what {
        // Writing to a text does not fail.
        writeln!(event, "data: mode {mode}\ndata: selector #{id}").ok();
    }
    // A return alone would end a line of the stream too. In HTML it says what a line feed says.
    let html = html.replace("\r\n", "\n").replace('\r', "\n");
    for line in html.split('\n').filter(|_| !html.is_empty()) {
        writeln!(event, "data: elements {line}").ok();
    }
    event.push('\n');
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_html_is_a_line_of_data() {
        let (to, id) = ("cells".to_owned(), "cell-3".to_owned());
        let add = Patch::Add { to, id, html: "<p>a\r\nb\rc</p>".to_owned() };
        insta::assert_snapshot!(add.events() + &reached(3), @"
        event: datastar-patch-elements
        data: mode remove
        data: selector #cell-3

        event: datastar-patch-elements
        data: mode append
        data: selector #cells
        data: elements <p>a
        data: elements b
        data: elements c</p>

        id: 3
        ");
        insta::assert_snapshot!(Patch::Morph("<p id=\"x\">\n\n</p>".to_owned()).events(), @r#"
        event: datastar-patch-elements
        data: elements <p id="x">
        data: elements 
        data: elements </p>
        "#);
    }
}

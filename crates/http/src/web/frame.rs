//! What surrounds every screen: the head of the document, the way to the other screens, and the help.

use axum::response::Html;
use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON, SCRIPT, STYLE};

/// A screen of its own; `stream` is where its changes come from.
pub(super) fn screen(title: &str, stream: &str, body: &Markup) -> Html<String> {
    document(
        title,
        &html! {
            div id="follow" data-follow=(stream) {}
            p id="away" role="status" hidden { "Mainstay is away. Run " code { "mainstay web" } " to start it; this page goes on by itself once it is back." }
            (body)
        },
    )
}

/// A screen that does not change.
pub(super) fn plain(title: &str, body: &Markup) -> Html<String> {
    document(title, &html! { main.plain id="main" { (body) } })
}

/// The document in which each screen is shown: `assets/origin.js` puts the body of the screen in the place of this one.
pub(super) fn shell() -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Mainstay" }
                link rel="icon" href=(ICON.address());
                link rel="stylesheet" href=(STYLE.address());
                script type="module" src=(SCRIPT.address()) {}
            }
            body {
                noscript { main.plain { h1 { "Mainstay" } p { "This page needs JavaScript. " code { "mainstay" } " in a terminal does the same." } } }
                main.plain id="main" hidden {
                    h1 { "This browser is not let in" }
                    p { "Run " code { "mainstay web" } " in a terminal: it opens this page with a link that works once." }
                    p { "A browser that was let in before is asked again after some time, and when the daemon has another token or port." }
                }
            }
        }
    };
    Html(page.into_string())
}

/// A screen, which the shell shows.
fn document(title: &str, body: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) " · Mainstay" }
                // Seen where it is opened by itself.
                link rel="stylesheet" href=(STYLE.address());
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (bar())
                (body)
                div id="notice" role="alert" {}
                (help())
            }
        }
    };
    Html(page.into_string())
}

fn bar() -> Markup {
    html! {
        nav.bar aria-label="Mainstay" {
            a.home href="/ui" { "Mainstay" }
            form.search action="/ui/search" role="search" {
                input #search type="search" name="q" placeholder="Search all sessions  /" aria-label="Search all sessions" autocomplete="off";
            }
            a href="/ui/history" { "History" }
            a href="/ui/health" { "Health" }
            button.key type="button" data-do="help" aria-label="Keys" { "?" }
        }
    }
}

fn help() -> Markup {
    let keys = [
        ("e", "write"),
        ("Ctrl Enter", "run what is written"),
        ("Ctrl Space", "complete"),
        ("↑ ↓, Alt ↑ ↓", "what was run before"),
        ("Ctrl R", "search in it"),
        ("j k", "next cell, cell before"),
        ("c", "copy the cell's code to the editor"),
        ("/", "search"),
        ("a", "answer what is asked"),
        ("Esc Esc", "cancel what runs"),
        ("?", "this"),
    ];
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            dl.keys { @for (key, what) in keys { dt { kbd { (key) } } dd { (what) } } }
            form method="dialog" { button { "Close" } }
        }
    }
}

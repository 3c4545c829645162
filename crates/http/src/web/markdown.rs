//! Markdown as HTML. HTML that stands in it is shown as it is written, links lead to the web and to mail only, and pictures are their words:
//! nothing is loaded from anywhere.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::html::push_html;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

/// Markdown of more bytes is shown as it is written.
pub(super) const LONGEST: usize = 256 * 1024;

pub(super) fn shown(text: &str) -> Markup {
    let mut links = Vec::new();
    let events = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let events = events.filter_map(|event| safe(event, &mut links));
    let mut written = String::new();
    push_html(&mut written, events);
    PreEscaped(written)
}

/// What of it is shown. `links` are those that are open, and whether each leads somewhere.
fn safe<'a>(event: Event<'a>, links: &mut Vec<bool>) -> Option<Event<'a>> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        Event::Start(Tag::Link { dest_url, .. }) => {
            let leads = is_followed(&dest_url);
            links.push(leads);
            leads.then(|| {
                raw(format!(
                    "<a href=\"{}\" rel=\"noopener noreferrer\" target=\"_blank\">",
                    escaped(&dest_url)
                ))
            })
        }
        Event::End(TagEnd::Link) => links.pop().unwrap_or_default().then(|| raw("</a>".to_owned())),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        other => Some(other),
    }
}

fn is_followed(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https" | "mailto"))
}

fn raw(html: String) -> Event<'static> {
    Event::InlineHtml(CowStr::from(html))
}

fn escaped(text: &str) -> String {
    html! { (text) }.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_shown_and_nothing_of_it_is_html_or_leads_elsewhere() {
        let text = "# One *two*\n\n| a |\n|---|\n| 1 |\n\n<script>alert(1)</script>\n\na <b onclick=x>b</b> ![alt](http://x/y.png)\n\n\
                    [web](https://a.b/?c=\"d\") [mail](mailto:a@b) [bad](javascript:alert(1)) [here](/ui)\n\n```html\n<i>\n```\n";
        let shown = shown(text).into_string();
        insta::assert_snapshot!(shown);
        for bad in ["<script", "<b ", "<img", "javascript:", "href=\"/ui"] {
            assert!(!shown.contains(bad), "{bad} in {shown}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_written_has_no_tag_of_its_own(text in "[<>a-z\"'=/! \\[\\]():*_`#|\\-\n&;]{0,80}") {
            let shown = shown(&text).into_string();
            for bad in ["<script", "<img", "<iframe", "<svg", "<style", "href=\"javascript:"] {
                proptest::prop_assert!(!shown.contains(bad), "{}", shown);
            }
        }
    }
}

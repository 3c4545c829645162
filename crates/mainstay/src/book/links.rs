//! The links of a page, and the anchors that links can name.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A page as links see it.
pub(super) struct Links {
    /// Where the page links to, in its order.
    pub(super) targets: Vec<String>,
    /// The anchors of its headings.
    pub(super) anchors: Vec<String>,
}

/// Reads the links and the headings of a page.
pub(super) fn links(markdown: &str) -> Links {
    let mut links = Links { targets: Vec::new(), anchors: Vec::new() };
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default(), &links.anchors);
                links.anchors.push(anchor);
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.targets.push(dest_url.into_string());
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    links
}

/// The anchor of a heading, as mdBook and GitHub make it: repeated ones are numbered.
fn anchor(heading: &str, before: &[String]) -> String {
    let kept = heading.trim().chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ => character.is_alphanumeric().then(|| character.to_ascii_lowercase()),
    });
    let name: String = kept.collect();
    let numbered = |number: usize| format!("{name}-{number}");
    match before.contains(&name) {
        false => name,
        true => (1..).map(numbered).find(|anchor| !before.contains(anchor)).unwrap(),
    }
}

#[test]
fn a_heading_has_the_anchor_that_readers_of_the_book_use() {
    let anchors = links("# What is kept, and for how long\n## `mainstay -d`\n## A_b C\n## A_b C\n").anchors;
    assert_eq!(anchors, ["what-is-kept-and-for-how-long", "mainstay--d", "a_b-c", "a_b-c-1"]);
}

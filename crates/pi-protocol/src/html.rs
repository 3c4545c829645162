//! A conversation as a page. It loads nothing and runs nothing.

use mainstay_model::TranscriptEntry;

/// Renders a transcript as a page of HTML.
pub(super) fn page(title: &str, entries: &[(TranscriptEntry, String)]) -> String {
    let title = escaped(title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>\
         body{{font:16px/1.5 sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}}\
         pre{{white-space:pre-wrap;overflow-wrap:anywhere}}h2{{font-size:.8rem;color:#666;margin:1.5rem 0 0}}\
         </style></head><body>\n<h1>{title}</h1>\n"
    );
    for (placed, text) in entries {
        let role = placed.entry.role.name();
        let tool = placed.entry.tool().map(|tool| format!(" {}", escaped(tool))).unwrap_or_default();
        page.push_str(&format!("<h2>{role}{tool}</h2><pre>{}</pre>\n", escaped(text)));
    }
    page.push_str("</body></html>\n");
    page
}

/// A text in which nothing is markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_no_markup() {
        assert_eq!(escaped("<b a=\"&\">"), "&lt;b a=&quot;&amp;&quot;&gt;");
        assert!(page("<script>", &[]).contains("<title>&lt;script&gt;</title>"));
    }
}

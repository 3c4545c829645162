//! Markdown as a terminal shows it: what is obeyed stands in angle brackets here.

use super::*;

/// With marks instead of colours.
fn shown(source: &str, columns: usize) -> String {
    let mut text = rendered(source, columns).replace("\u{1b}[0m", "‹›");
    for (code, mark) in [
        ("1;4", "H1"),
        ("1;3;4", "H1,i"),
        ("1", "b"),
        ("3", "i"),
        ("4", "u"),
        ("9", "s"),
        ("3;9", "i,s"),
        ("36", "code"),
        ("90", "faint"),
        ("31", "red"),
        ("32", "green"),
        ("33", "yellow"),
        ("34", "blue"),
        ("35", "magenta"),
    ] {
        text = text.replace(&format!("\u{1b}[{code}m"), &format!("‹{mark}›"));
    }
    text
}

#[test]
fn headings_emphasis_code_and_links() {
    let text = "# One *two*\n\nA **bold** word, an *old* one, ~~gone~~, `let x = 1`.\nSee [the book](https://a.b/c) or <https://d.e>.\n\n### Three";
    insta::assert_snapshot!(shown(text, 60), @"
    ‹H1›One‹› ‹H1,i›two‹›

    A ‹b›bold‹› word, an ‹i›old‹› one, ‹s›gone‹›, ‹code›let‹› ‹code›x‹› ‹code›=‹› ‹code›1‹›.
    See ‹u›the‹› ‹u›book‹› ‹faint›(https://a.b/c)‹› or ‹u›https://d.e‹›.

    ‹b›Three‹›
    ");
}

#[test]
fn lists_and_quotes_are_wrapped_under_their_first_word() {
    let text = "Do:\n- one two three four five six seven\n  1. deep\n  2. deeper\n- [x] done\n\n- last\n\n> a quote of several words that goes on\n> and on\n>\n> - in it";
    insta::assert_snapshot!(shown(text, 26), @"
    Do:
    ‹faint›- ‹›one two three four five
      six seven
      ‹faint›1. ‹›deep
      ‹faint›2. ‹›deeper
    ‹faint›- ‹›[x] done

    ‹faint›- ‹›last

    ‹faint›│ ‹›a quote of several words
    ‹faint›│ ‹›that goes on
    ‹faint›│ ‹›and on
    ‹faint›│ ‹›
    ‹faint›│ ‹›‹faint›- ‹›in it
    ");
}

#[test]
fn code_is_coloured_where_its_language_is_known_and_never_wrapped() {
    let text = "```fsharp\nlet x = 1 // one\n\nlet y = \"a long text that does not fit\"\n```\n\n```\nplain\ttext\n```\n```diff\n-a\n+b\n c\n```";
    insta::assert_snapshot!(shown(text, 20), @r#"
    ‹magenta›let‹› x ‹blue›=‹› ‹yellow›1‹› ‹faint›// one‹›

    ‹magenta›let‹› y ‹blue›=‹› ‹green›"a long text that does not fit"‹›

    plain    text
    ‹red›-a‹›
    ‹green›+b‹›
     c
    "#);
}

#[test]
fn tables_fit() {
    let text = "| Name | What it does |\n|---|:-:|\n| `a` | one **two** three four |\n| 漢字 | x |\n";
    insta::assert_snapshot!(shown(text, 60), @"
    ‹b›Name‹›‹faint› │ ‹›   ‹b›What‹› ‹b›it‹› ‹b›does‹›
    ‹faint›─────┼───────────────────‹›
    ‹code›a‹›   ‹faint› │ ‹›one ‹b›two‹› three four
    漢字‹faint› │ ‹›        x
    ");
    insta::assert_snapshot!(shown(text, 22), @"
    ‹b›Name‹›‹faint› │ ‹› ‹b›What‹› ‹b›it‹› ‹b›does‹›
    ‹faint›─────┼────────────────‹›
    ‹code›a‹›   ‹faint› │ ‹› one ‹b›two‹› three
        ‹faint› │ ‹›     four
    漢字‹faint› │ ‹›       x
    ");
}

#[test]
fn what_markdown_has_no_use_for_is_shown_as_it_is_written() {
    insta::assert_snapshot!(shown("<b>x</b> a < b & c\n\n<div>\n  y\n</div>\n\n---\nend", 60), @"
    <b>x</b> a < b & c

    <div>
    y
    </div>

    ‹faint›────────────────────────────────────────‹›
    end
    ");
    assert_eq!(shown("[a]: https://b.c\n", 60), "[a]: https://b.c");
}

proptest::proptest! {
    /// What a model says is never obeyed, however it is spelled.
    #[test]
    fn nothing_is_obeyed_but_what_is_drawn_here(text in "([a-z \\n*`>#|~\\-\\[\\]()<]|\u{1b}|\u{7}|\u{9b}|&#27;|&#155;|\\]0;){0,60}") {
        let shown = shown(&text, 40);
        let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
        proptest::prop_assert!(!shown.contains(is_obeyed), "{shown:?}");
    }
}

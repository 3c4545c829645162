use proptest::prelude::*;

use super::*;

fn shown(text: &str) -> String {
    settled(text).into_owned()
}

#[test]
fn a_progress_bar_is_one_line() {
    let bar: String =
        (0..=100).map(|percent| format!("\r{percent:3}%|{:<10}|", "█".repeat(percent / 10))).collect();
    assert_eq!(shown(&format!("before\n{bar}\nafter")), "before\n100%|██████████|\nafter");
}

#[test]
fn bars_below_each_other_are_written_over_by_moving_up() {
    // As `tqdm` does with `position=1`.
    let text = "outer 0\n\rinner 0\u{1b}[A\n\rinner 1\u{1b}[A\router 1\n\n";
    assert_eq!(shown(text), "outer 1\ninner 1\n");
}

#[test]
fn a_shorter_text_leaves_what_it_does_not_cover_unless_it_is_erased() {
    assert_eq!(shown("downloading\rdone"), "doneloading");
    assert_eq!(shown("downloading\r\u{1b}[Kdone"), "done");
    assert_eq!(shown("downloading\r\u{1b}[2Kdone"), "done");
    assert_eq!(shown("abc\u{8}\u{8}X"), "aXc");
}

#[test]
fn what_is_half_written_over_leaves_a_blank() {
    assert_eq!(shown("漢字x\ra"), "a 字x");
    assert_eq!(shown("漢字x\r\u{1b}[Ca"), " a字x");
    assert_eq!(shown("abcd\r漢"), "漢cd");
    assert_eq!(shown("e\u{301}x\rab"), "ab");
    assert_eq!(shown("a\tb\rxy"), "xy      b");
}

#[test]
fn ends_of_lines_of_other_systems_are_ends_of_lines() {
    assert_eq!(shown("a\r\nb\r\n"), "a\nb\n");
}

#[test]
fn a_cleared_screen_begins_anew() {
    assert_eq!(shown("old\nolder\n\u{1b}[H\u{1b}[2Jnew\n"), "new\n");
    assert_eq!(shown("old\nolder\n\u{1b}[2J\u{1b}[Hnew\n"), "new\n");
    assert_eq!(shown("old\nolder\u{1b}[H\u{1b}[Jnew"), "new");
}

#[test]
fn colours_are_told_apart_by_runs() {
    let mut screen = Screen::default();
    screen.print(
        OutputStream::Stdout,
        "a\u{1b}[1;31mb\u{1b}[0m\u{1b}[38;5;208mc\u{1b}[38;2;1;2;3;44md\u{1b}[39;49m\n",
    );
    screen.print(OutputStream::Stderr, "e");
    let plain = Style::default();
    let run = |stream, text: &str, style| Run { stream, style, text: text.to_owned() };
    let out = |text: &str, style| run(OutputStream::Stdout, text, style);
    let blue = Some(Colour::Indexed(4));
    assert_eq!(
        screen.runs(),
        [
            out("a", plain),
            out("b", Style { foreground: Some(Colour::Indexed(1)), is_bold: true, ..plain }),
            out("c", Style { foreground: Some(Colour::Indexed(208)), ..plain }),
            out("d\n", Style { foreground: Some(Colour::Rgb(1, 2, 3)), background: blue, ..plain }),
            run(OutputStream::Stderr, "e", plain),
        ]
    );
}

#[test]
fn a_long_line_stays_one_line() {
    let line = "x".repeat(5_000);
    assert_eq!(shown(&format!("{line}\u{7}\n")), format!("{line}\n"));
}

#[test]
fn what_has_no_meaning_on_a_screen_leaves_no_trace() {
    assert_eq!(
        shown("a\u{7}\u{1b}]0;title\u{7}b\u{1b}]8;;http://x\u{1b}\\c\u{1b}]8;;\u{1b}\\\u{1b}[?25l\u{9b}d"),
        "abcd"
    );
}

#[test]
fn the_end_is_kept_in_whole_lines() {
    let lines: String =
        (0..1_000).map(|line| format!("\u{1b}[3{}mline {line}\u{1b}[0m\n", line % 8)).collect();
    let mut screen = Screen::of(&lines);
    screen.keep_end(2_000);
    let text = screen.text();
    assert!((1_900..=2_000).contains(&text.len()), "{}", text.len());
    assert!(text.starts_with("line ") && text.ends_with("line 999\n"), "{text}");
    assert_eq!(text.len(), screen.bytes());
}

#[test]
fn a_few_bytes_do_not_come_to_many() {
    for bomb in [
        "x\u{1b}[65535b",
        "x\u{1b}[65535;b",
        "x\u{1b}[655\u{7}35b",
        "\u{1b}[1023Cx\n",
        "\u{301}\u{1b}[65535b",
        "\t\u{1b}[65535b",
    ] {
        let text = bomb.repeat(20_000);
        let bytes = Screen::of(&text).bytes();
        assert!(bytes < 10 * text.len() + 100_000, "{bomb:?} comes to {bytes} bytes");
    }
    assert_eq!(shown("x\u{1b}[3bz"), "xz");
    let mut screen = Screen::of("x\u{1b}");
    ["[655", "35", "bz"].into_iter().for_each(|piece| screen.print(OutputStream::Stdout, piece));
    assert_eq!(screen.text(), "xz");
}

#[test]
fn a_character_has_few_marks() {
    let marks = "\u{301}".repeat(100_000);
    assert_eq!(shown(&format!("e{marks}\u{7}")).chars().count(), 9);
    assert_eq!(shown(&format!("ab\r{marks}")).chars().count(), 10);
}

#[test]
fn of_a_line_without_end_the_end_is_kept() {
    let mut screen = Screen::of(&"é".repeat(200_000));
    screen.print(OutputStream::Stdout, "the end");
    screen.keep_end(30_000);
    let text = screen.text();
    assert!((27_000..=30_000).contains(&text.len()), "{}", text.len());
    assert!(text.ends_with("éthe end"));
}

#[test]
fn what_is_split_off_is_the_beginning() {
    let lines: String = (0..200).map(|line| format!("line {line}\r\n")).collect();
    let mut screen = Screen::of(&lines);
    let whole = screen.text();
    let first = screen.split_settled();
    assert!(!first.text().is_empty());
    assert_eq!(first.text() + &screen.text(), whole);
    assert_eq!(screen.settled_bytes(), 0);
}

/// Printed text as programs print it.
fn printed() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ -~]{0,12}",
        1 => "[a-z漢字é█]{1,6}",
        3 => Just("\n".to_owned()),
        2 => Just("\r".to_owned()),
        1 => Just("\u{8}".to_owned()),
        1 => Just("\u{1b}[K".to_owned()),
        1 => Just("\u{1b}[1K".to_owned()),
        1 => Just("\u{1b}[2K".to_owned()),
        1 => Just("\u{1b}[J".to_owned()),
        1 => Just("\u{1b}[2J".to_owned()),
        1 => Just("\u{1b}[H".to_owned()),
        1 => (1..5_u8).prop_map(|rows| format!("\u{1b}[{rows}A")),
        1 => (1..9_u8).prop_map(|columns| format!("\u{1b}[{columns}C")),
        1 => (1..9_u8).prop_map(|columns| format!("\u{1b}[{columns}D")),
        1 => (1..9_u8).prop_map(|columns| format!("\u{1b}[{columns}G")),
        1 => (1..9_u8).prop_map(|columns| format!("\u{1b}[{columns}X")),
        2 => (0..110_u8).prop_map(|code| format!("\u{1b}[{code}m")),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// The lines without what does not show at their ends.
fn visible(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

proptest! {
    #[test]
    fn a_terminal_shows_the_same(text in printed()) {
        let mut terminal = vt100::Parser::new(60.try_into().unwrap(), 500.try_into().unwrap(), 0);
        terminal.process(text.replace('\n', "\r\n").as_bytes());
        prop_assert_eq!(visible(&Screen::of(&text).text()), visible(&terminal.screen().contents()));
    }

    #[test]
    fn pieces_show_what_the_whole_shows(text in printed(), cut in 0..300_usize) {
        let (first, second) = text.split_at(text.floor_char_boundary(cut.min(text.len())));
        let mut screen = Screen::of(first);
        screen.print(OutputStream::Stdout, second);
        prop_assert_eq!(screen.runs(), Screen::of(&text).runs());
    }

    #[test]
    fn what_is_settled_stays_as_it_is(text in "[\\PC\\n\\t\\r\u{8}\u{1b}\\[A-K;0-9m]{0,200}") {
        let once = shown(&text);
        prop_assert!(!once.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{once:?}");
        prop_assert_eq!(&*settled(&once), once.as_str());
    }

    #[test]
    fn plain_text_is_shown_as_it_is(text in "[ -~\\n\\t]{0,400}") {
        prop_assert_eq!(Screen::of(&text).text(), text);
    }

    #[test]
    fn what_is_shown_is_not_much_more_than_what_was_printed(text in "[\\PC\\n\\r\u{8}\u{1b}\\[A-Zb;0-9]{0,300}") {
        prop_assert!(Screen::of(&text).bytes() <= 16 * text.len() + 70_000);
    }

    #[test]
    fn any_text_has_the_bytes_it_counts(text in "\\PC{0,80}\\n?\\PC{0,80}") {
        let screen = Screen::of(&text);
        prop_assert_eq!(screen.bytes(), screen.text().len());
    }
}

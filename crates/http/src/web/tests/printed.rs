//! What code prints, in its cell.

use super::*;

#[test]
fn what_is_printed_looks_as_in_a_terminal() {
    let mut story = SessionHistory::default();
    let job = story.eval("for x in tqdm(range(3)):");
    story.prints(job, "begins\n");
    for done in 0..=3 {
        story.add(EventBody::OutputProduced {
            job: Some(job),
            stream: OutputStream::Stderr,
            text: format!("\r{}% |{:<3}|", done * 33, "█".repeat(done)),
        });
    }
    story.prints(job, "\n\u{1b}[1;32mpassed\u{1b}[0m <all>\n");
    story.completes(job, EvalResult::default());
    insta::assert_snapshot!(story.shown());
}

#[test]
fn of_a_flood_the_beginning_and_the_end_are_shown() {
    let mut story = SessionHistory::default();
    let job = story.eval("flood");
    let lines: Vec<String> = (0..40_000).map(|line| format!("line {line}\n")).collect();
    lines.chunks(500).for_each(|chunk| story.prints(job, &chunk.concat()));
    story.completes(job, EvalResult::default());
    let shown = story.shown();
    let is_shown = |line: u32| shown.contains(&format!("line {line}\\n"));
    let ends = [0, 1, 10_000, 37_100, 39_998, 39_999];
    assert!(ends.into_iter().all(is_shown), "{:?}", ends.map(is_shown));
    let middle = [13_000, 20_000, 35_000];
    assert!(!middle.into_iter().any(is_shown), "{:?}", middle.map(is_shown));
    let left_out = lines.concat().len() - 128 * 1024 - 32 * 1024;
    let told = shown.split("… ").nth(1).unwrap().split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(told.abs_diff(left_out) < 100, "{told} of {left_out}");
}

#[test]
fn what_is_a_little_too_much_is_shown_whole() {
    let mut story = SessionHistory::default();
    let job = story.eval("a little flood");
    let lines: String = (0..13_500).map(|line| format!("line {line}\n")).collect();
    assert!(lines.len() > 128 * 1024 + 5_000, "{}", lines.len());
    story.prints(job, &lines);
    story.completes(job, EvalResult::default());
    let mut page = fresh(&story.events);
    let parts = page.find("c1-parts").unwrap();
    let shown: String = parts.children.iter().map(text_of).collect();
    assert_eq!(shown.replace("… of what follows only the end is kept", ""), lines);
    assert!(story.shown().contains("span class=\"cut\" id=\"c1-p"), "a hidden one");
}

#[test]
fn of_a_line_without_end_the_beginning_and_the_end_are_shown() {
    let mut story = SessionHistory::default();
    let job = story.eval("flood");
    for _ in 0..100 {
        story.prints(job, &"é".repeat(2_048));
    }
    story.prints(job, "the end");
    let shown = story.shown();
    assert!(shown.len() < 200_000, "{} bytes", shown.len());
    assert!(shown.contains("éthe end") && shown.contains(" bytes are not shown here"));
}

/// What stands in it.
fn text_of(node: &Node) -> String {
    match node {
        Node::Text(text) => text.clone(),
        Node::Element(element) => element.children.iter().map(text_of).collect(),
    }
}

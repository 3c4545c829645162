//! Pages that lose their connection anywhere.

use super::*;

/// What happens next, in a few numbers.
fn happens(story: &mut SessionHistory, open: &mut Option<Open>, step: (u8, u8)) {
    let (what, text) = (step.0 % 8, format!("<{}>&", step.1));
    match open.take() {
        None => match what {
            0..3 => *open = Some(Open::Eval(story.eval(&text))),
            3..6 => {
                *open = Some(Open::Turn(Turn { job: story.turn(&text), added: 0, said: BTreeMap::new() }))
            }
            6 => story.add(EventBody::SessionReset),
            _ => imports(story, step.1, &text),
        },
        Some(Open::Eval(job)) => match what {
            0 => story.completes(job, value(&text, "int")),
            1 => {
                story.add(EventBody::CancelRequested { job, grace_ms: None });
                *open = Some(Open::Eval(job));
            }
            2 => {
                let ask = AskId::from_uuid(uuid::Uuid::from_u128(story.jobs));
                let question = Question::text(text);
                story.add(EventBody::AskRaised(Box::new(Ask {
                    ask,
                    raiser: Raiser::Job { job },
                    question,
                    deadline: None,
                })));
                story.prints(job, "meanwhile");
                story.add(EventBody::AskEnded { ask, ending: AskEnding::Cancelled, channel: None });
                *open = Some(Open::Eval(job));
            }
            _ => {
                let text = match (what, step.1) {
                    (3, _) => format!("\r\u{1b}[3{}m{text}", step.1 % 8),
                    (4, _) => format!("{text}\n").repeat(usize::from(step.1)),
                    (5, 240..) => format!("{text}\n").repeat(12_000),
                    _ => text,
                };
                story.prints(job, &text);
                *open = Some(Open::Eval(job));
            }
        },
        Some(Open::Turn(mut turn)) => {
            if what == 0 {
                let ending = WorkEnding::Done { reason: YieldReason::EndTurn, value: Value::Null };
                story.add(EventBody::JobEnded { job: turn.job, ending, duration_ms: 1, grace_ms: None });
            } else {
                turn.goes_on(story, what, &text);
                *open = Some(Open::Turn(turn));
            }
        }
    }
}

/// A message that came with a file.
fn imports(story: &mut SessionHistory, which: u8, text: &str) {
    let call = format!("i{}", which / 4 % 4);
    story.message(match which % 4 {
        0 => vec![Part::text(PartRole::User, text)],
        1 => vec![Part::tool_result(&call, text)],
        2 => vec![Part::text(PartRole::Thinking, text), Part::text(PartRole::Assistant, text)],
        _ => vec![Part::text(PartRole::Assistant, text), Part::tool_call(&call, "read", &json!({}))],
    });
}

enum Open {
    Eval(JobId),
    Turn(Turn),
}

struct Turn {
    job: JobId,
    added: u32,
    said: BTreeMap<u32, String>,
}

impl Turn {
    fn goes_on(&mut self, story: &mut SessionHistory, what: u8, text: &str) {
        let last = self.said.keys().last().copied();
        match what {
            1 => {
                let parts = self.said.values().map(|text| Part::text(PartRole::Assistant, text.as_str()));
                let call = format!("t{}", self.added);
                let parts = parts.chain([Part::tool_call(&call, "read", &json!({}))]).collect();
                story.message(parts);
                story.message(vec![Part::tool_result(&call, text)]);
                self.added += 2;
                self.said.clear();
            }
            _ => {
                let part = match last {
                    None => 0,
                    Some(last) => last + u32::from(what == 2),
                };
                let said = self.said.entry(part).or_default();
                let (offset, role, job) = (said.len() as u64, PartRole::Assistant, self.job);
                said.push_str(text);
                let delta =
                    Delta { job, message: self.added, part, role, offset, text: text.to_owned(), tool: None };
                story.add(EventBody::MessageStreamed(delta));
            }
        }
    }
}

/// One connection that begins after `from` events and sends those up to `until`, so many together.
fn connection(events: &[Event], from: usize, until: usize, together: usize) -> Vec<(Vec<Patch>, usize)> {
    let mut page = Page::default();
    events[..from].iter().for_each(|event| page.take(event));
    page.take_changes();
    page.forget_ended();
    let open = page
        .open_cells()
        .map(|shown| Patch::morph(cell::whole(shown, Some(&Language::named("fsharp")))))
        .collect();
    let mut sent = vec![(open, from)];
    let mut at = from;
    for events in events[from..until].chunks(together.max(1)) {
        events.iter().for_each(|event| page.take(event));
        at += events.len();
        let changes = page.take_changes();
        let changed = changes.iter().filter_map(|(seq, change)| Some((page.cell(*seq)?, change)));
        sent.push((
            changed
                .flat_map(|(shown, change)| cell::patches(shown, change, Some(&Language::named("fsharp"))))
                .collect(),
            at,
        ));
        page.forget_ended();
    }
    sent
}

proptest! {
    #[test]
    fn wherever_connections_end_nothing_is_missing_and_nothing_twice(
        steps in proptest::collection::vec(any::<(u8, u8)>(), 1..60),
        first in 0_usize..20,
        connections in proptest::collection::vec((1_usize..30, 1_usize..9, 0_usize..4), 0..8),
    ) {
        let mut story = SessionHistory::default();
        let mut open = None;
        steps.into_iter().for_each(|step| happens(&mut story, &mut open, step));
        let events = &story.events;
        let mut at = first.min(events.len());
        let mut shown = fresh(&events[..at]);
        for (length, together, lost) in connections.into_iter().chain([(usize::MAX, 3, 0)]) {
            let until = at.saturating_add(length).min(events.len());
            let sent = connection(events, at, until, together);
            let last = sent.len() - 1;
            for (index, (patches, reached)) in sent.into_iter().enumerate() {
                // The last piece arrived in part: some of its patches, and not how far it was.
                let arrived = if index == last { patches.len().saturating_sub(lost) } else { patches.len() };
                patches[..arrived].iter().for_each(|patch| shown.apply(patch));
                if index < last || lost == 0 {
                    at = reached;
                }
            }
        }
        prop_assert_eq!(shown.written(), fresh(events).written());
    }
}

//! What is told of a turn, whichever way its parts come.

use super::*;
use mainstay_model::{
    Delta, Metadata, Part, PartRole, Position, Prompt, Seq, SessionId, Source, Timestamp, YieldReason,
};
use proptest::prelude::*;

fn job() -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(1))
}

fn event(seq: u64, body: EventBody) -> Event {
    let metadata = Metadata { source: Source::Worker, correlation: None, causation: None, environment: None };
    let session = SessionId::from_uuid(uuid::Uuid::nil());
    Event { session, seq: Seq(seq), position: Position(seq), at: Timestamp::UNIX_EPOCH, metadata, body }
}

fn requested() -> EventBody {
    EventBody::JobRequested {
        job: job(),
        command: mainstay_model::CommandId::new("c").unwrap(),
        fingerprint: mainstay_model::CommandFingerprint::of("s", &()),
        key: None,
        deadline: None,
        grants: None,
        work: JobSpec::Turn { prompt: Prompt::text("go") },
    }
}

fn pieces_of(message: u32, text: &str) -> Vec<Delta> {
    let mut offset = 0;
    let piece = |text: &str| {
        let (job, text) = (job(), text.to_owned());
        let delta = Delta { job, message, part: 0, role: PartRole::Assistant, offset, text, tool: None };
        offset += delta.text.len() as u64;
        delta
    };
    text.split_inclusive(' ').map(piece).collect()
}

fn deltas(told: &[Value]) -> String {
    told.iter().filter_map(|event| event["assistantMessageEvent"]["delta"].as_str()).collect()
}

proptest! {
    /// Live pieces come in their order, some not at all, and whenever they come: also behind the events that have them.
    #[test]
    fn what_is_said_is_told_once_whatever_is_heard_and_when(
        texts in proptest::collection::vec("([a-z]{1,5} ){1,6}", 1..4),
        is_stored in proptest::collection::vec(any::<bool>(), 30),
        heard_after in proptest::collection::vec(proptest::option::of(0_usize..40), 30),
    ) {
        let mut events = vec![event(1, requested())];
        let mut live = Vec::new();
        let mut stored = is_stored.iter().cycle();
        for (message, text) in (0..).zip(&texts) {
            // Chunks have all that was said before them.
            let mut are_stored = true;
            for delta in pieces_of(message, text) {
                // What is not stored by itself is in the message.
                are_stored &= *stored.next().unwrap();
                if are_stored {
                    events.push(event(events.len() as u64 + 1, EventBody::MessageStreamed(delta.clone())));
                }
                live.push((events.len(), Live::Delta(delta)));
            }
            let whole = Message { parts: vec![Part::text(PartRole::Assistant, text.as_str())], ..Message::default() };
            events.push(event(events.len() as u64 + 1, EventBody::MessageAdded(Box::new(whole))));
        }
        let ending = WorkEnding::Done { reason: YieldReason::EndTurn, value: Value::Null };
        events.push(event(events.len() as u64 + 1, EventBody::JobEnded { job: job(), ending, duration_ms: 1, grace_ms: None }));
        // When each piece is heard: never before it was said, and in order.
        let mut not_before = 0;
        let mut heard: Vec<(usize, Live)> = Vec::new();
        for ((said, live), after) in live.into_iter().zip(heard_after.into_iter().cycle()) {
            if let Some(after) = after {
                not_before = not_before.max((said.saturating_sub(1)).min(said) + after % 3);
                heard.push((not_before, live));
            }
        }
        let mut teller = EventEncoder::default();
        let mut told = Vec::new();
        let mut heard = heard.into_iter().peekable();
        for (index, event) in events.iter().enumerate() {
            while let Some((_, live)) = heard.next_if(|(at, _)| *at <= index) {
                told.extend(teller.hear(&live));
            }
            told.extend(teller.tell(event));
        }
        heard.for_each(|(_, live)| told.extend(teller.hear(&live)));
        prop_assert_eq!(deltas(&told), texts.concat());
        prop_assert_eq!(told.last().map(|event| event["type"].clone()), Some(json!("agent_end")));
    }
}

//! The prompts that wait in an agent's queue, each with the event that names it for the runner.

use mainstay_model::{EventBody, QueuedPrompt, Seq};

use crate::worker::Order;

/// The prompts of a session's queue, in the order of the events that queued them.
#[derive(Debug, Default)]
pub(crate) struct NamedPrompts(Vec<NamedPrompt>);

/// A prompt that waits.
#[derive(Clone, Debug)]
struct NamedPrompt {
    /// The event that names it.
    seq: Seq,
    queued: QueuedPrompt,
    /// Whether that event queued it; else the agent did so of its own accord, and the event only told of it.
    is_of_event: bool,
}

impl NamedPrompts {
    /// Takes in an event.
    pub(crate) fn take_in(&mut self, seq: Seq, body: &EventBody) {
        match body {
            EventBody::PromptQueued(queued) => {
                self.0.push(NamedPrompt { seq, queued: queued.clone(), is_of_event: true });
            }
            EventBody::QueueChanged { queue } => self.keep(seq, queue),
            _ => {}
        }
    }

    /// Keeps those that are in the queue. What an agent has of its own accord no event queued: it is named by the event that told of it.
    pub(crate) fn keep(&mut self, told: Seq, queue: &[QueuedPrompt]) {
        let mut known = std::mem::take(&mut self.0);
        // Of two that are the same the first is heard first.
        for queued in queue.iter().rev() {
            let at = known.iter().rposition(|known| known.queued == *queued);
            let own = || NamedPrompt { seq: told, queued: queued.clone(), is_of_event: false };
            self.0.push(at.map_or_else(own, |at| known.remove(at)));
        }
        self.0.reverse();
        self.0.sort_by_key(|named| named.seq);
    }

    /// What a new runner is told of them.
    pub(crate) fn orders(&self) -> impl Iterator<Item = Order> {
        self.0.iter().map(NamedPrompt::order)
    }

    /// What a runner that goes on is told of them: those that it may not have heard.
    pub(crate) fn orders_of_events(&self) -> impl Iterator<Item = Order> {
        self.0.iter().filter(|named| named.is_of_event).map(NamedPrompt::order)
    }
}

impl NamedPrompt {
    fn order(&self) -> Order {
        Order::Steer { queued: self.queued.clone(), requested: self.seq }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::{Delivery, Prompt};

    use super::*;

    fn queued(text: &str) -> QueuedPrompt {
        QueuedPrompt { prompt: Prompt::text(text), hears: Delivery::Steer }
    }

    #[test]
    fn each_prompt_keeps_the_name_that_its_event_gave_it() {
        let mut prompts = NamedPrompts::default();
        for (seq, text) in [(3, "a"), (5, "b"), (6, "a"), (8, "c")] {
            prompts.take_in(Seq(seq), &EventBody::PromptQueued(queued(text)));
        }
        let queue = ["c", "a", "own"].map(queued).to_vec();
        prompts.take_in(Seq(9), &EventBody::QueueChanged { queue });
        let names: Vec<_> =
            prompts.0.iter().map(|named| (named.seq.0, named.queued.prompt.text.as_str())).collect();
        assert_eq!(names, [(6, "a"), (8, "c"), (9, "own")]);
        assert_eq!((prompts.orders().count(), prompts.orders_of_events().count()), (3, 2));
    }
}

//! Something that a runner does for one's own command and that is no code: a turn of an agent, or a rebuild. What happens meanwhile is shown.

use mainstay_model::{Admission, CommandId, Event, EventBody, JobSpec, Live, Seq};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::DoWork;
use mainstay_protocol::view::SessionView;
use mainstay_protocol::view::agent::WorkView;
use mainstay_terminal::OpenLine;
use mainstay_terminal::turn::{RenderItem, Screen, TurnRenderer};

use super::command_wait::AwaitedCommand;
use super::questions::Questions;

/// What shows the whole of what a tool gave.
const WHOLE: &str = "`:output` at a prompt";

/// It, and what was seen of it.
pub(super) struct RunnerJob {
    work: JobSpec,
    teller: TurnRenderer,
    /// None where nothing is shown.
    screen: Option<Screen>,
}

impl AwaitedCommand for RunnerJob {
    type Request = DoWork;

    const LISTENS: bool = true;

    fn request(&self, session: String, sent: Sent) -> DoWork {
        DoWork { session, work: self.work.clone(), admission: Admission::Queue, sent }
    }

    fn last_event(answer: &WorkView) -> Seq {
        answer.seq
    }

    fn has_begun(&self) -> bool {
        self.teller.has_begun()
    }

    fn see(&mut self, event: &Event, command: &CommandId, questions: &mut Questions) {
        let asks = matches!(event.body, EventBody::AskRaised(_) | EventBody::AskEnded { .. });
        if let Some(screen) = self.screen.as_mut().filter(|_| asks) {
            screen.make_room();
        }
        questions.observe(event, command, &mut OpenLine::default());
        if event.metadata.correlation.as_ref() == Some(command) {
            let told = self.teller.event(event);
            self.show(told);
        }
    }

    fn hear(&mut self, live: &Live) {
        let told = self.teller.live(live);
        self.show(told);
    }
}

impl RunnerJob {
    /// In a session as it is now; nothing is shown where `is_shown` says so.
    pub(super) fn new(work: JobSpec, session: &SessionView, is_shown: bool) -> Self {
        Self { work, teller: TurnRenderer::of(session), screen: is_shown.then(|| Screen::new(WHOLE)) }
    }

    /// Shows what has not been shown of what came of it.
    pub(super) fn finish(&mut self, view: &WorkView) {
        if !self.teller.has_begun() {
            self.show(RenderItem::missed(&view.text, view.error.as_deref()));
        }
    }

    fn show(&mut self, told: Vec<RenderItem>) {
        if let Some(screen) = &mut self.screen {
            screen.show(told);
        }
    }
}

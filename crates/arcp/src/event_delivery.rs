//! How a session on its connection is told of its jobs: the log is read, and what it says is sent as far as the client does not have it.

use mainstay_model::{Error, Event, Position};

use crate::dialect::Dialect;
use crate::feed::job_of;
use crate::job_origin::Acceptance;
use crate::message_fold::Numbered;
use crate::session::Session;

/// Events that are read at once.
pub(crate) const PAGE: usize = 1000;

impl<D: Dialect> Session<D> {
    /// Tells of all that had happened when this was called.
    pub(crate) async fn reach_the_end(&mut self) -> Result<(), Error> {
        let newest = self.client.last_position().await?;
        while self.position < newest {
            let page = self.client.all_events(self.position, PAGE).await?;
            for event in &page {
                self.take(event).await?;
            }
            // The client may not see the others.
            if page.is_empty() {
                self.position = newest;
                self.note_whole();
            }
        }
        self.apply_joins(self.position).await
    }

    /// Takes an event in, and tells what it says.
    pub(crate) async fn take(&mut self, event: &Event) -> Result<(), Error> {
        self.apply_joins(Position(event.position.0.saturating_sub(1))).await?;
        if self.to_be_counted.is_some_and(|counted| event.position > counted.position) {
            self.check_count();
        }
        self.tell(event).await?;
        D::heard(self, event).await?;
        self.position = event.position;
        self.note_whole();
        if self.marks.is_wanted(self.fold.seq()) {
            self.marks.add(self.fold.base(self.position), self.joined);
        }
        Ok(())
    }

    /// Compares how many messages the fold has come to with how many those were before. It is called where the fold goes on from the place at which they
    /// were counted.
    pub(crate) fn check_count(&mut self) {
        if let Some(counted) = self.to_be_counted.take() {
            self.is_miscounted |= counted.seq != self.fold.seq();
        }
    }

    async fn tell(&mut self, event: &Event) -> Result<(), Error> {
        let acceptance = Acceptance::of(event);
        if acceptance.is_some() {
            self.load_agent(event.session).await?;
        }
        self.take_over(event).await?;
        let agents = &self.agents;
        let told = self.fold.tell(event, |home| agents.get(&home).cloned().unwrap_or_default());
        // The first that is told of a job is preceded by its acceptance, where it was submitted over this connection.
        if let (Some(job), Some(acceptance)) = (job_of(event, self.client.principal()), acceptance) {
            for submission in self.pending.take_accepted(job, acceptance.fingerprint) {
                if !D::TELLS_ACCEPTANCE {
                    self.send_frame(D::accepted(self, job, &submission)).await;
                }
            }
        }
        self.send_paced(event, told).await
    }

    /// Sends those of these messages that the client does not have, however it wants its streams.
    pub(crate) async fn send_told(&mut self, told: &[impl Numbered]) -> Result<(), Error> {
        for message in told {
            if self.is_new(message) && !self.is_cancelled(message) {
                // Whoever resumes is welcomed with the first that is told anew.
                self.greet().await?;
                self.send_frame(message.encode()).await;
            }
        }
        Ok(())
    }

    /// Whether the client does not have a message. It is taken to have it from then on.
    pub(crate) fn is_new(&mut self, message: &impl Numbered) -> bool {
        if let Some(awaited) = &self.awaited {
            if awaited == message.id() {
                (self.sent, self.awaited) = (message.seq(), None);
                let has = self.stored.late.surely_has(self.sent);
                if has < self.sent {
                    // What was told out of order before it is told again; here nothing is, meanwhile.
                    (self.sent, self.goes_back_to) = (u64::MAX, Some(has));
                }
            }
            return false;
        }
        let is_new = message.seq() > self.sent && !self.is_miscounted;
        if is_new {
            self.sent = message.seq();
        }
        is_new
    }

    /// Whether a message belongs to a stream that the client cancelled.
    pub(crate) fn is_cancelled(&self, message: &impl Numbered) -> bool {
        message.stream().is_some_and(|stream| self.stored.cancelled_streams.has(stream))
    }
}

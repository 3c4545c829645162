//! What an observer is told of what happened before it subscribed. Source: draft-arcp-01, 13.3.

use std::collections::HashSet;

use mainstay_model::{CommandId, Error, Event, Position};

use crate::dialect::Dialect;
use crate::feed::job_of;
use crate::job_origin::{Acceptance, JobOrigin};
use crate::observer::Observer;
use crate::session::Session;
use crate::stored_session::{Base, History, JobAtBase, Place, ToldAtBase};
use crate::teller::{Teller, Voice};
use crate::telling::PAGE;

impl<D: Dialect> Session<D> {
    /// Tells an observer of what happened behind a message and up to this place, where it wants that.
    pub(crate) async fn tell_observer(
        &mut self,
        observer: &Observer,
        since: Option<Place>,
        up_to: Position,
    ) -> Result<(), Error> {
        let Some(since) = since else { return Ok(()) };
        let mut after = Position(since.position.0.saturating_sub(1));
        let base = Base {
            position: after,
            seq: self.teller.seq(),
            jobs: Vec::new(),
            observers: vec![observer.clone()],
        };
        // It has no jobs of its own, so that it tells the observer alone.
        let mut past = Teller::new("", self.client.principal(), self.teller.voice.clone(), &base);
        let mut unwanted = HashSet::new();
        while after < up_to {
            let page = self.client.all_events(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.position;
            for event in page.iter().filter(|event| event.position <= up_to) {
                self.take_up_earlier(&mut past, observer, event, &mut unwanted).await?;
                self.load_agent(event.session).await?;
                let agents = &self.agents;
                let agent_of = |home| agents.get(&home).cloned().unwrap_or_default();
                let told = past.tell_part(event, agent_of, History::After(since));
                self.send_told(&told).await?;
            }
        }
        let caught_up = self.teller.voice.caught_up(observer, past.seq());
        self.teller.go_on_behind(past.seq() + caught_up.len() as u64);
        self.send_told(&caught_up).await
    }

    /// Takes a job up of which an event tells, and that began before the observer's past does.
    async fn take_up_earlier(
        &self,
        past: &mut Teller<D::Voice>,
        observer: &Observer,
        event: &Event,
        unwanted: &mut HashSet<CommandId>,
    ) -> Result<(), Error> {
        let Some(job) = job_of(event, self.client.principal()) else { return Ok(()) };
        if Acceptance::of(event).is_some() || past.job(job).is_some() || !unwanted.insert(job.clone()) {
            return Ok(());
        }
        let Some(accepted) = self.acceptance_of(job, event.session).await? else { return Ok(()) };
        let origin = JobOrigin::of(&accepted, job);
        if observer.wants_job(job, &origin) {
            past.take_up(&JobAtBase {
                job: job.clone(),
                home: event.session,
                is_own: false,
                asks: Vec::new(),
                told: Some(ToldAtBase::of(&accepted, origin)),
            });
        }
        Ok(())
    }
}

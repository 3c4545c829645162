//! How an observer begins to be told of jobs: of what happened before it subscribed, where it wants that, and of the jobs that are under way.
//! Source: draft-arcp-01, 13.3.

use std::collections::HashSet;

use mainstay_model::{CommandId, Error, Event, Position, Seq, SessionId};

use crate::dialect::Dialect;
use crate::event_delivery::PAGE;
use crate::feed::job_of;
use crate::fold_place::{Base, JobAtBase, Place};
use crate::job_origin::Acceptance;
use crate::message_fold::{MessageFold, Translator};
use crate::observer::Observer;
use crate::session::Session;
use crate::session_change::{History, JobUnderWay};

impl<D: Dialect> Session<D> {
    /// Has an observer be told from this place on, of jobs that begin and of these.
    pub(crate) async fn begin_observing(
        &mut self,
        observer: Observer,
        since: Option<Place>,
        at: Position,
        jobs: &[JobUnderWay],
    ) -> Result<(), Error> {
        let open_jobs = match since {
            Some(since) => self.tell_past(&observer, since, at).await?,
            None => Vec::new(),
        };
        self.fold.observe(observer);
        for job in &open_jobs {
            if self.fold.job(&job.job).is_none() {
                self.fold.take_up(job);
            }
        }
        for JobUnderWay { job, home, from } in jobs {
            if self.fold.job(job).is_none() {
                let before = Seq(from.0.saturating_sub(1));
                for event in self.earlier_events(job, *home, before, at).await? {
                    self.fold.tell_part(&event, |_| String::new(), History::Nothing);
                }
            }
        }
        Ok(())
    }

    /// Tells an observer of what happened behind a message and up to this place; gives the jobs that had not ended then.
    async fn tell_past(
        &mut self,
        observer: &Observer,
        since: Place,
        up_to: Position,
    ) -> Result<Vec<JobAtBase>, Error> {
        let mut after = Position(since.position.0.saturating_sub(1));
        let base = Base {
            position: after,
            seq: self.fold.seq(),
            jobs: Vec::new(),
            observers: vec![observer.clone()],
        };
        // It has no jobs of its own, so that it tells the observer alone.
        let mut past = MessageFold::new("", self.client.principal(), self.fold.translator.clone(), &base);
        let mut looked_up = HashSet::new();
        while after < up_to {
            let page = self.client.all_events(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.position;
            for event in page.iter().filter(|event| event.position <= up_to) {
                self.take_up_earlier(&mut past, event, &mut looked_up).await?;
                let told = past.tell_part(event, |_| String::new(), History::After(since));
                self.send_told(&told).await?;
            }
        }
        let caught_up = self.fold.translator.caught_up(observer, past.seq());
        self.fold.go_on_behind(past.seq() + caught_up.len() as u64);
        self.send_told(&caught_up).await?;
        Ok(past.open_jobs())
    }

    /// Takes a job up of which an event tells, and that began before the observer's past does. What happens to a job says which event began it.
    async fn take_up_earlier(
        &self,
        past: &mut MessageFold<D::Translator>,
        event: &Event,
        looked_up: &mut HashSet<(SessionId, CommandId)>,
    ) -> Result<(), Error> {
        let (Some(job), Some(begun_by)) = (job_of(event, self.client.principal()), event.metadata.causation)
        else {
            return Ok(());
        };
        let is_known = Acceptance::of(event).is_some() || past.job(job).is_some();
        if is_known || !looked_up.insert((event.session, job.clone())) {
            return Ok(());
        }
        let before = Seq(begun_by.0.saturating_sub(1));
        let up_to = Position(event.position.0.saturating_sub(1));
        for earlier in self.earlier_events(job, event.session, before, up_to).await? {
            past.tell_part(&earlier, |_| String::new(), History::Nothing);
        }
        Ok(())
    }

    /// What happened to a job behind an event of its session; nothing where that was deleted meanwhile.
    async fn earlier_events(
        &self,
        job: &CommandId,
        home: SessionId,
        after: Seq,
        up_to: Position,
    ) -> Result<Vec<Event>, Error> {
        match self.history_behind(job, home, after, up_to).await {
            Err(Error::SessionNotFound { .. }) => Ok(Vec::new()),
            events => events,
        }
    }
}

//! What the runner was given, so that what comes twice is heeded once: a daemon that adopts a runner gives again what may not have
//! come there.
//!
//! Pure.

use std::collections::VecDeque;

use mainstay_model::secret::Secrets;
use mainstay_model::{AgentNotice, AskId, JobId, NoticeNumber, RunnerNotice, Seq};
use mainstay_runner::{AskAnswer, GivenToRunner};
use serde_json::Value;

/// How many jobs are remembered. Jobs are serial, so only the last one can come again; a replay announces many.
const JOBS: usize = 64;

/// What the runner was given.
#[derive(Debug, Default)]
pub(super) struct Heeded {
    jobs: VecDeque<JobId>,
    running: Option<JobId>,
    /// The notice that told the end of the last job.
    ended: NoticeNumber,
    /// The last job, where a daemon that has just adopted the runner does not know its end: that daemon gives it again. A job that
    /// comes again otherwise is run again, as a reload has it.
    comes_again: Option<JobId>,
    unanswered: Vec<AskId>,
    /// Those of them that are checks, and the notices that asked.
    checks: Vec<(AskId, NoticeNumber)>,
    steered: Seq,
    /// The asks until whose answers the running job was to pause.
    pauses: Vec<AskId>,
    secrets: Vec<Value>,
    masks: Secrets,
}

impl Heeded {
    /// Whether a job is to be run; it runs from now on. It is not where a daemon only makes sure that it was given.
    pub(super) fn begins(&mut self, job: JobId) -> bool {
        if self.comes_again.take() == Some(job) {
            return false;
        }
        self.jobs.retain(|known| *known != job);
        if self.jobs.len() == JOBS {
            self.jobs.pop_front();
        }
        self.jobs.push_back(job);
        self.running = Some(job);
        self.unanswered.clear();
        self.checks.clear();
        self.pauses.clear();
        self.secrets.clear();
        self.masks.clear();
        true
    }

    /// Hears that a daemon has adopted the runner, which has not taken the notices from this one on.
    pub(super) fn is_adopted(&mut self, first: NoticeNumber) {
        let may_run = self.is_busy() || self.ended >= first;
        self.comes_again = self.jobs.back().copied().filter(|_| may_run);
    }

    /// Whether a prompt is new that an event queued.
    pub(super) fn steers(&mut self, requested: Seq) -> bool {
        let is_new = requested > self.steered;
        self.steered = self.steered.max(requested);
        is_new
    }

    /// Whether the running job is to pause until this ask is answered, and was not told so before.
    pub(super) fn pauses(&mut self, job: JobId, ask: AskId) -> bool {
        let is_new = self.running == Some(job) && !self.pauses.contains(&ask);
        if is_new {
            self.pauses.push(ask);
            self.unanswered.push(ask);
        }
        is_new
    }

    /// Whether an ask waits for this answer, which it gets now.
    pub(super) fn answers(&mut self, answer: &AskAnswer) -> bool {
        let Some(at) = self.unanswered.iter().position(|ask| *ask == answer.ask) else { return false };
        self.unanswered.swap_remove(at);
        self.checks.retain(|(check, _)| *check != answer.ask);
        if let (true, Ok(secret)) = (answer.is_secret, &answer.answer) {
            self.masks.add(secret);
            self.secrets.push(secret.clone());
        }
        true
    }

    /// Whether an interrupt that was meant for a job may be passed on: it must not hit the next.
    pub(super) fn interrupts(&self, job: Option<JobId>) -> bool {
        job.is_none() || job == self.running
    }

    /// Whether the last job was given secrets. What it says may have a part of one that is not found in a single notice.
    pub(super) fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// What takes them out of texts.
    pub(super) const fn masks(&self) -> &Secrets {
        &self.masks
    }

    /// The runner is gone, and with it what it ran.
    pub(super) fn is_gone(&mut self) {
        self.running = None;
    }

    /// Whether a job runs.
    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// Hears what the runner says in the notice of this number, and takes secrets out of it: it may come to lie in a file.
    pub(super) fn hears(&mut self, number: NoticeNumber, notice: &mut RunnerNotice) {
        match notice {
            RunnerNotice::Asks { ask, .. } => self.unanswered.push(*ask),
            RunnerNotice::Checks { check, .. } => {
                self.unanswered.push(*check);
                self.checks.push((*check, number));
            }
            RunnerNotice::Output { text, .. } => self.masks.mask(text),
            RunnerNotice::Display { display, .. } => self.masks.mask_display(display),
            RunnerNotice::Finished { job, report } => {
                self.masks.mask_report(report);
                self.ends(number, *job);
            }
            RunnerNotice::Built { job, .. }
            | RunnerNotice::CommTaken { job }
            | RunnerNotice::Agent(AgentNotice::Ended { job, .. }) => self.ends(number, *job),
            RunnerNotice::Exited { .. } => self.running = None,
            RunnerNotice::Cleared { .. }
            | RunnerNotice::Comm { .. }
            | RunnerNotice::Application(_)
            | RunnerNotice::Agent(_) => {}
        }
    }

    fn ends(&mut self, number: NoticeNumber, job: JobId) {
        if self.running == Some(job) {
            self.ended = number;
            self.running = None;
            self.unanswered.clear();
            self.checks.clear();
            self.pauses.clear();
        }
    }

    /// What whoever adopts the runner is told.
    pub(super) fn given(&self) -> GivenToRunner {
        GivenToRunner {
            jobs: self.jobs.iter().copied().collect(),
            unanswered: self.unanswered.clone(),
            checks: self.checks.clone(),
            secrets: self.secrets.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::grant::{AskedOperation, OperationKind};
    use mainstay_model::{OutputStream, Question};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const FIRST: NoticeNumber = NoticeNumber(1);

    fn job(number: u128) -> JobId {
        JobId::from_uuid(Uuid::from_u128(number))
    }

    fn asks(heeded: &mut Heeded, of: JobId) -> AskId {
        let ask = AskId::from_uuid(Uuid::new_v4());
        let question = Question::text("?");
        heeded.hears(FIRST, &mut RunnerNotice::Asks { job: of, ask, question, timeout_ms: None });
        ask
    }

    #[test]
    fn a_job_a_prompt_and_an_answer_that_come_twice_are_heeded_once() {
        let mut heeded = Heeded::default();
        assert!(heeded.begins(job(1)));
        heeded.is_adopted(FIRST);
        assert!(!heeded.begins(job(1)));
        assert!(heeded.steers(Seq(7)));
        assert!(!heeded.steers(Seq(7)));
        let ask = asks(&mut heeded, job(1));
        let answer = AskAnswer::open(ask, Ok(json!("yes")));
        assert!(heeded.answers(&answer));
        assert!(!heeded.answers(&answer));
    }

    #[test]
    fn a_job_is_told_once_to_pause_and_once_how_to_go_on() {
        let mut heeded = Heeded::default();
        let ask = AskId::from_uuid(Uuid::new_v4());
        assert!(!heeded.pauses(job(1), ask), "it does not run");
        heeded.begins(job(1));
        assert!(heeded.pauses(job(1), ask));
        assert_eq!(heeded.given().unanswered, [ask]);
        assert!(heeded.answers(&AskAnswer::open(ask, Ok(json!("go on")))));
        assert!(!heeded.pauses(job(1), ask));
        assert!(!heeded.answers(&AskAnswer::open(ask, Ok(json!("go on")))));
    }

    #[test]
    fn a_job_that_a_reload_gives_again_is_run_again_whichever_daemon_gave_it_first() {
        let ended = |heeded: &mut Heeded, number| {
            heeded.hears(NoticeNumber(number), &mut RunnerNotice::CommTaken { job: job(1) });
        };
        let mut heeded = Heeded::default();
        assert!(heeded.begins(job(1)));
        ended(&mut heeded, 1);
        assert!(heeded.begins(job(1)));
        ended(&mut heeded, 2);
        // Who knows that it has ended does not give it again to make sure.
        heeded.is_adopted(NoticeNumber(3));
        assert!(heeded.begins(job(1)));
        ended(&mut heeded, 3);
        heeded.is_adopted(NoticeNumber(3));
        assert!(!heeded.begins(job(1)), "its end was not known");
        assert!(heeded.begins(job(1)));
        assert_eq!(heeded.given().jobs, [job(1)]);
    }

    #[test]
    fn an_interrupt_for_a_job_that_has_ended_does_not_hit_the_next() {
        let mut heeded = Heeded::default();
        heeded.begins(job(1));
        assert!(heeded.interrupts(Some(job(1))));
        heeded.hears(FIRST, &mut RunnerNotice::CommTaken { job: job(1) });
        assert!(!heeded.is_busy());
        heeded.begins(job(2));
        assert!(!heeded.interrupts(Some(job(1))));
        assert!(heeded.interrupts(None));
    }

    #[test]
    fn a_secret_stands_in_nothing_that_is_kept_until_another_job_begins() {
        let mut heeded = Heeded::default();
        heeded.begins(job(1));
        let ask = asks(&mut heeded, job(1));
        assert_eq!(heeded.given().unanswered, [ask]);
        heeded.answers(&AskAnswer { ask, answer: Ok(json!("tops3cret")), is_secret: true });
        let mut notice = RunnerNotice::Output {
            job: Some(job(1)),
            stream: OutputStream::Stdout,
            text: "it is tops3cret\n".to_owned(),
        };
        heeded.hears(FIRST, &mut notice);
        assert!(matches!(notice, RunnerNotice::Output { text, .. } if text == "it is ***\n"));
        assert_eq!(heeded.given().secrets, [json!("tops3cret")]);
        heeded.begins(job(2));
        assert_eq!(heeded.given().secrets, Vec::<Value>::new());
    }

    #[test]
    fn a_check_is_known_with_its_notice_until_it_is_answered() {
        let mut heeded = Heeded::default();
        heeded.begins(job(1));
        let check = AskId::from_uuid(Uuid::new_v4());
        let (kind, target) = (OperationKind::TOOL_CALL, "bash".to_owned());
        let operation = AskedOperation { kind, target, is_recursive: false };
        heeded.hears(NoticeNumber(5), &mut RunnerNotice::Checks { job: job(1), check, operation });
        assert_eq!(heeded.given().checks, [(check, NoticeNumber(5))]);
        assert!(heeded.answers(&AskAnswer::open(check, Ok(json!(null)))));
        assert_eq!(heeded.given().checks, []);
    }
}

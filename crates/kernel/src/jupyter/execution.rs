//! What a kernel says while it runs a job's code, told as notices. Pure: messages come in, notices go out.

mod ending;
mod exit;
mod output;
mod purity_mark;
mod report;

use std::time::{Duration, Instant};

use mainstay_model::{Bundle, Display, EvalResult, JobEnding, JobId, JobReport, OutputStream, RunnerNotice};
use serde_json::Map;

use self::ending::ending_of;
use self::output::{bundle, display, shown};
use self::purity_mark::PurityMark;
use super::content::{ClearOutput, DisplayData, ExecuteReply, Status};
use super::wire::{Malformed, Message};

pub(super) use self::exit::Exit;
pub(super) use self::output::published;
pub(super) use self::report::{HELPER, Report};

/// How long a line may be that code asks with, in bytes.
const MOST_ASKED: usize = 4096;

/// A job on its way through a kernel: code, or what a front end says beside it.
#[derive(Debug)]
pub(super) struct Execution {
    /// The request. It is called like its job, so that who knows the one knows the other.
    pub(super) id: String,
    pub(super) job: JobId,
    pub(super) began: Instant,
    asked: RequestKind,
    /// Whether what it has put out goes once it puts out something else.
    clears: bool,
    /// The error that was published last.
    raised: Option<ExecuteReply>,
    /// What it has printed since the last end of a line.
    begun_line: String,
    /// The value of its last expression, and what code calls that.
    value: Option<(Bundle, Option<String>)>,
    /// The value where it was put out, since something else came after it.
    placed: Option<String>,
    reply: Option<ExecuteReply>,
    report: Option<Report>,
    /// Whether the kernel said that it has begun.
    is_busy: bool,
    is_idle: bool,
    /// Whether its code runs, and not only waits for its turn in the kernel.
    has_begun: bool,
    interrupt: InterruptState,
    exits: Option<Exit>,
}

/// Whether it was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterruptState {
    /// Nobody has asked for that.
    None,
    /// Somebody has, and the kernel was not told: before the code runs, a kernel takes no notice.
    Wanted,
    /// Somebody has, and the kernel was told.
    Sent,
}

/// What a kernel is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// To run code, of which the user may say something himself.
    Code(Option<PurityMark>),
    /// To take what a front end says. It does not answer; it says that it is busy with it, and then that it is not.
    Comm,
}

impl Execution {
    /// Creates the execution of a job's code.
    pub(super) fn new(job: JobId, code: &str) -> Self {
        Self::of(job, RequestKind::Code(PurityMark::of(code)))
    }

    /// Of what a front end says beside it.
    pub(super) fn of_comm(job: JobId) -> Self {
        Self::of(job, RequestKind::Comm)
    }

    fn of(job: JobId, asked: RequestKind) -> Self {
        Self {
            id: job.to_string(),
            job,
            began: Instant::now(),
            asked,
            clears: false,
            raised: None,
            begun_line: String::new(),
            value: None,
            placed: None,
            reply: None,
            report: None,
            is_busy: false,
            is_idle: false,
            has_begun: false,
            interrupt: InterruptState::None,
            exits: None,
        }
    }

    /// Notes that it was asked to stop. Returns whether the kernel is to be told now.
    pub(super) fn interrupt(&mut self) -> bool {
        self.interrupt = InterruptState::Wanted;
        self.takes_interrupt()
    }

    /// Whether the kernel is to be told, as it said nothing of the code since it was asked to stop: not each kernel says that code begins.
    pub(super) fn takes_late_interrupt(&mut self, job: JobId) -> bool {
        self.has_begun |= self.job == job && self.interrupt == InterruptState::Wanted;
        self.job == job && self.takes_interrupt()
    }

    /// Whether the kernel is to be told now that it was asked to stop. It is true once.
    pub(super) fn takes_interrupt(&mut self) -> bool {
        let is_due = self.has_begun && self.interrupt == InterruptState::Wanted;
        if is_due {
            self.interrupt = InterruptState::Sent;
        }
        is_due
    }

    /// How its code has asked the kernel to end, where it has.
    pub(super) const fn exits(&self) -> Option<Exit> {
        self.exits
    }

    /// Takes in the reply, and tells what the kernel wants to be shown with it.
    pub(super) fn replied(&mut self, mut reply: ExecuteReply) -> Vec<RunnerNotice> {
        let payload = std::mem::take(&mut reply.payload);
        let asks = payload.iter().find(|wanted| wanted.source.ends_with("ask_exit"));
        self.exits = asks.map(|asks| Exit::of(&asks.keepkernel));
        self.report = Report::among(&payload);
        let pages =
            payload.into_iter().filter(|wanted| wanted.source.ends_with("page") && !wanted.data.is_empty());
        let pages = pages.map(|page| shown(Some(self.job), None, bundle(page.data, Map::new()))).collect();
        self.reply = Some(reply);
        pages
    }

    /// Takes in what was found out about it afterwards.
    pub(super) fn reported(&mut self, report: Option<Report>) {
        self.report = report;
    }

    /// Returns whether the code failed.
    pub(super) fn failed(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.status != "ok")
    }

    /// Whether its report has to be asked for: not every kernel sends anything along with the reply to code that failed.
    pub(super) fn lacks_report(&self) -> bool {
        self.failed() && self.report.is_none()
    }

    /// Whether something must be published of it soon, if it ever is: the reply is there, or the kernel has dropped it when it was interrupted, or
    /// does not know what it is asked for and says nothing of it.
    pub(super) fn is_expected(&self) -> bool {
        match self.asked {
            RequestKind::Code(_) => {
                self.reply.is_some() || self.is_idle && self.interrupt == InterruptState::Sent
            }
            RequestKind::Comm => !self.is_busy,
        }
    }

    /// Whether all that belongs to it has come.
    pub(super) const fn is_over(&self) -> bool {
        match self.asked {
            RequestKind::Code(_) => self.reply.is_some() && self.is_idle,
            RequestKind::Comm => self.is_idle,
        }
    }

    /// Whether a value may be late: only code has one.
    pub(super) const fn may_have_value(&self) -> bool {
        match self.asked {
            RequestKind::Code(_) => self.value.is_none(),
            RequestKind::Comm => false,
        }
    }

    /// Takes in what the kernel published of it.
    ///
    /// # Errors
    /// [`Malformed`] where that says something else than its type.
    pub(super) fn hear(&mut self, message: &Message) -> Result<Vec<RunnerNotice>, Malformed> {
        match message.header.msg_type.as_str() {
            "status" => {
                match message.read::<Status>()?.execution_state.as_str() {
                    "busy" => {
                        self.is_busy = true;
                        self.has_begun |= self.asked == RequestKind::Comm;
                    }
                    "idle" => self.is_idle = true,
                    _ => {}
                }
                return Ok(Vec::new());
            }
            "execute_input" => {
                self.has_begun = true;
                return Ok(Vec::new());
            }
            "stream" | "display_data" | "execute_result" | "error" => self.has_begun = true,
            _ => {}
        }
        match message.header.msg_type.as_str() {
            "clear_output" => {
                self.clears = message.read::<ClearOutput>()?.wait;
                return Ok(if self.clears { Vec::new() } else { vec![self.cleared(false)] });
            }
            // The reply says it again, unless nothing was raised by the code itself.
            "error" => {
                self.raised = Some(message.read()?);
                return Ok(self.clear().into_iter().collect());
            }
            "execute_result" => {
                let DisplayData { data, metadata, transient } = message.read()?;
                self.placed = None;
                let before = self.value.replace((bundle(data, metadata), transient.display_id));
                // IPython can be told to give the value of each expression.
                let before = before.map(|(data, id)| shown(Some(self.job), id, data));
                return Ok(before.into_iter().chain(self.clear()).collect());
            }
            _ => {}
        }
        let notice = published(Some(self.job), message)?;
        let is_put_out = match &notice {
            Some(RunnerNotice::Output { stream, text, .. }) => {
                if *stream == OutputStream::Stdout {
                    self.begin_line(text);
                }
                true
            }
            Some(RunnerNotice::Display { display, .. }) => !display.is_update,
            Some(_) | None => false,
        };
        if !is_put_out {
            return Ok(notice.into_iter().collect());
        }
        // As in Jupyter, what comes after the value stands behind it: figures are drawn when the code has ended.
        Ok(self.clear().into_iter().chain(self.place_value()).chain(notice).collect())
    }

    /// Puts the value out in this place, where one is held.
    fn place_value(&mut self) -> Option<RunnerNotice> {
        let (data, id) = self.value.take()?;
        self.placed = Some(data.text().to_owned());
        let display = Display { is_value: true, is_in_place: true, ..display(id, data) };
        Some(RunnerNotice::Display { job: Some(self.job), display: Box::new(display) })
    }

    /// What it has put out goes, where that was to go with the next.
    fn clear(&mut self) -> Option<RunnerNotice> {
        std::mem::take(&mut self.clears).then(|| self.cleared(true))
    }

    const fn cleared(&self, is_replaced: bool) -> RunnerNotice {
        RunnerNotice::Cleared { job: self.job, is_replaced }
    }

    fn begin_line(&mut self, printed: &str) {
        match printed.rsplit_once('\n') {
            Some((_, begun)) => begun.clone_into(&mut self.begun_line),
            None => self.begun_line.push_str(printed),
        }
        if self.begun_line.len() > MOST_ASKED {
            self.begun_line.clear();
        }
    }

    /// What it asks with when it reads its input without a word: what it has printed before on that line, where that has come.
    pub(super) fn takes_input(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.begun_line)).filter(|begun| !begun.trim().is_empty())
    }

    /// What came of it. Of a value in no other form its text is enough.
    pub(super) fn finish(mut self) -> Vec<RunnerNotice> {
        // What is said of a failure says nothing of a value, which an error while it was shown leaves.
        let placed = if self.failed() { self.place_value() } else { None };
        let value = self.value.take();
        let text = value.as_ref().map(|(data, _)| data.text().to_owned());
        let rich = value.filter(|(data, _)| data.forms().next().is_some()).map(|(data, id)| {
            let display = Display { is_value: true, ..display(id, data) };
            RunnerNotice::Display { job: Some(self.job), display: Box::new(display) }
        });
        placed.into_iter().chain(rich).chain([self.ended(text)]).collect()
    }

    fn ended(self, value: Option<String>) -> RunnerNotice {
        let took = self.began.elapsed();
        let Self { job, asked, reply, report, interrupt, raised, placed, .. } = self;
        let mark = match asked {
            RequestKind::Code(mark) => mark,
            RequestKind::Comm => return RunnerNotice::CommTaken { job },
        };
        let report = report.unwrap_or_default();
        let mut reply = reply.unwrap_or_default();
        if reply.ename.as_deref().is_none_or(|name| ["", "NoneType"].contains(&name))
            && let Some(raised) = raised.filter(|raised| raised.ename.is_some())
        {
            reply = ExecuteReply { status: reply.status, ..raised };
        }
        let ending = ending_of(&reply, &report, interrupt != InterruptState::None);
        let changes_state = match (mark, &ending) {
            (_, JobEnding::Rejected) | (Some(PurityMark::Pure), _) => false,
            (Some(PurityMark::Stateful), _) => true,
            (None, JobEnding::Completed) => !report.is_pure,
            // How far it came is not known, or what it kept is known apart.
            (None, JobEnding::Raised(_) | JobEnding::Interrupted { .. }) => true,
        };
        let Report { bindings, value_type, uses_last, rejected, .. } = report;
        let display = value.as_ref().map(|value| format!("{value}\n")).unwrap_or_default();
        let value = value.or(placed);
        let result = EvalResult {
            display,
            value_type: value.as_ref().and(value_type),
            value,
            bindings,
            diagnostics: rejected.into_iter().collect(),
            uses_last,
            touched: None,
        };
        let report = JobReport { ending, result, changes_state, took: whole(took), references: None };
        RunnerNotice::Finished { job, report }
    }
}

/// Events count milliseconds, and something that ran took one.
fn whole(took: Duration) -> Duration {
    took.max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests;

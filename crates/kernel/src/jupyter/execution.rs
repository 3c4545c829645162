//! What a kernel says while it runs a job's code, told as notices. Pure: messages come in, notices go out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mainstay_model::display::PLAIN;
use mainstay_model::{
    Binding, Bundle, Diagnostic, Display, DisplayId, EvalResult, JobEnding, JobId, JobReport, OutputStream,
    RaisedError, RunnerNotice,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::comm;
use super::content::{ClearOutput, DisplayData, ExecuteReply, Payload, Status, Stream};
use super::python;
use super::wire::{Malformed, Message};

/// What the helper that a kernel is given calls what it tells.
pub(super) const HELPER: &str = "mainstay";

/// How long a line may be that code asks with, in bytes.
const MOST_ASKED: usize = 4096;

/// What a kernel's helper tells of code that it has run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Report {
    /// Whether it is proven that nothing of the session has changed.
    pub(super) is_pure: bool,
    /// Whether it may use the value of the code before it.
    pub(super) uses_last: bool,
    /// The names that the code bound.
    pub(super) bindings: Vec<Binding>,
    /// The type of its value.
    pub(super) value_type: Option<String>,
    /// What the compiler says of code that it did not take.
    pub(super) rejected: Option<Diagnostic>,
    /// Of code that did not come to its end: how many bytes of it had.
    pub(super) kept: usize,
}

impl Report {
    /// The report among what came with a reply.
    fn among(payload: &[Payload]) -> Option<Self> {
        let told = payload.iter().find(|told| told.source == HELPER)?;
        Self::deserialize(&told.report).ok()
    }
}

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
    is_interrupted: bool,
    exits: Option<Exit>,
}

/// The end of the kernel, as its code asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// The exit code of the process.
    pub(super) code: i32,
    /// Whether the kernel ends itself.
    pub(super) is_own: bool,
}

impl Exit {
    /// As the kernel's `keepkernel` says: nothing of the kind, or the code that was meant.
    fn of(keepkernel: &Value) -> Self {
        let code = match keepkernel {
            Value::Number(code) => code.as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(1),
            Value::Bool(true) | Value::String(_) | Value::Array(_) | Value::Object(_) => 1,
            Value::Bool(false) | Value::Null => 0,
        };
        Self { code, is_own: matches!(keepkernel, Value::Bool(false) | Value::Null) }
    }
}

/// What a kernel is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// To run code, of which the user may say something himself.
    Code(Option<PurityMark>),
    /// To take what a front end says. It does not answer; it says that it is busy with it, and then that it is not.
    Comm,
}

/// What the first line of code says of all of it, behind the sign of a comment: `# mainstay: pure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PurityMark {
    /// It changes nothing of the session, so it need not run again.
    Pure,
    /// It changes the session, whatever it looks like.
    Stateful,
}

impl PurityMark {
    fn of(code: &str) -> Option<Self> {
        let line = code.lines().map(str::trim_start).find(|line| !line.is_empty())?;
        let comment = ["#", "//", "--", "%", ";"].iter().find_map(|sign| line.strip_prefix(sign))?;
        match comment.trim_start_matches(|c: char| !c.is_alphanumeric()).strip_prefix("mainstay:")?.trim() {
            "pure" => Some(Self::Pure),
            "stateful" => Some(Self::Stateful),
            _ => None,
        }
    }
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
            is_interrupted: false,
            exits: None,
        }
    }

    /// Notes that it was asked to stop.
    pub(super) const fn interrupt(&mut self) {
        self.is_interrupted = true;
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

    /// Whether something must be published of it soon, if it ever is: the reply is there, or the kernel does not know what it is asked for
    /// and says nothing of it.
    pub(super) const fn is_expected(&self) -> bool {
        match self.asked {
            RequestKind::Code(_) => self.reply.is_some(),
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
                    "busy" => self.is_busy = true,
                    "idle" => self.is_idle = true,
                    _ => {}
                }
                return Ok(Vec::new());
            }
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
        let Self { job, asked, reply, report, is_interrupted, raised, placed, .. } = self;
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
        let ending = ending_of(&reply, &report, is_interrupted);
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

fn ending_of(reply: &ExecuteReply, report: &Report, is_interrupted: bool) -> JobEnding {
    match (reply.status.as_str(), is_interrupted) {
        ("ok", _) => JobEnding::Completed,
        (_, true) => JobEnding::Interrupted { kept: report.kept },
        (_, false) if report.rejected.is_some() => JobEnding::Rejected,
        (_, false) => {
            let kind = named(reply.ename.as_deref().unwrap_or_default());
            let message = reply.evalue.clone().unwrap_or_default();
            let (stack, coloured_stack) = stacks_of(&reply.traceback, &kind, &message);
            JobEnding::Raised(RaisedError { kind, message, stack, coloured_stack })
        }
    }
}

/// Where an error comes from, without what is said of it besides: IPython's rule and title above, the error again below. Without colours,
/// and with them where there are some.
fn stacks_of(traceback: &[String], kind: &str, message: &str) -> (Option<String>, Option<String>) {
    let told: Vec<&str> =
        traceback.iter().map(String::as_str).filter(|part| !python::is_own_frame(&plain(part))).collect();
    let coloured = told.join("\n");
    let text = plain(&coloured);
    let mut lines: Vec<&str> = text.lines().collect();
    let mut coloured_lines: Vec<&str> = coloured.lines().collect();
    // An escape that does not end takes lines with it.
    let is_coloured = coloured_lines.len() == lines.len();
    if lines.last().is_some_and(|last| *last == kind || *last == format!("{kind}: {message}")) {
        lines.pop();
        coloured_lines.pop();
    }
    let is_heading = |line: &&&str| {
        let is_rule = !line.is_empty() && line.chars().all(|c| c == '-');
        is_rule || line.starts_with(kind) && line.ends_with("Traceback (most recent call last)")
    };
    let headings = lines.iter().take_while(is_heading).count();
    let whole =
        |lines: &[&str]| Some(lines.join("\n").trim_end().to_owned()).filter(|stack| !stack.is_empty());
    let stack = whole(&lines[headings..]);
    let coloured = coloured_lines.get(headings..).filter(|_| is_coloured).and_then(whole);
    let coloured = coloured.filter(|coloured| stack.as_ref().is_some_and(|stack| stack != coloured));
    (stack, coloured)
}

/// The name of an error; xeus-python says `<class 'ValueError'>`.
fn named(error: &str) -> String {
    let name = error.strip_prefix("<class '").and_then(|rest| rest.strip_suffix("'>")).unwrap_or(error);
    if name.is_empty() { "Error".to_owned() } else { name.to_owned() }
}

/// What a kernel published that belongs to a job, or to none.
///
/// # Errors
/// [`Malformed`] where that says something else than its type.
pub(super) fn published(job: Option<JobId>, message: &Message) -> Result<Option<RunnerNotice>, Malformed> {
    match message.header.msg_type.as_str() {
        "stream" => {
            let Stream { name, text } = message.read()?;
            let stream = if name == "stderr" { OutputStream::Stderr } else { OutputStream::Stdout };
            Ok((!text.is_empty()).then_some(RunnerNotice::Output { job, stream, text }))
        }
        "display_data" => {
            let DisplayData { data, metadata, transient } = message.read()?;
            Ok(Some(shown(job, transient.display_id, bundle(data, metadata))))
        }
        "update_display_data" => {
            let DisplayData { data, metadata, transient } = message.read()?;
            let display =
                Display { is_update: true, ..display(transient.display_id, bundle(data, metadata)) };
            Ok(Some(RunnerNotice::Display { job, display: Box::new(display) }))
        }
        // What is of no interest here is passed over.
        _ => {
            let comm = comm::read(message)?;
            Ok(comm.map(|message| RunnerNotice::Comm { job, message: Box::new(message) }))
        }
    }
}

fn shown(job: Option<JobId>, id: Option<String>, data: Bundle) -> RunnerNotice {
    RunnerNotice::Display { job, display: Box::new(display(id, data)) }
}

fn display(id: Option<String>, data: Bundle) -> Display {
    // What cannot be a name names nothing.
    let id = id.and_then(|id| DisplayId::new(id).ok());
    Display { id, is_value: false, is_update: false, is_in_place: false, data }
}

/// What is shown, its plain text without colours: it is read by people and programs that know none.
fn bundle(mut data: BTreeMap<String, Value>, metadata: Map<String, Value>) -> Bundle {
    if let Some(Value::String(text)) = data.get_mut(PLAIN) {
        *text = plain(text);
    }
    Bundle::from(data).with_metadata(metadata)
}

/// Text without the escapes by which a terminal colours it.
fn plain(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once(|c: char| ('@'..='~').contains(&c)).map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use mainstay_model::{Severity, TextPosition};
    use serde_json::json;

    use super::super::wire::Header;
    use super::*;

    fn job() -> JobId {
        "019a0000-0000-7000-8000-000000000001".parse().unwrap()
    }

    fn execution(code: &str) -> Execution {
        Execution::new(job(), code)
    }

    fn message(msg_type: &str, content: &Value) -> Message {
        let text = String::new;
        let header = Header {
            msg_id: text(),
            msg_type: msg_type.to_owned(),
            session: text(),
            username: text(),
            date: text(),
            version: text(),
            subshell_id: None,
        };
        let mut message = Message::new(header, content);
        message.parent = Bytes::from_static(br#"{"msg_id":"1"}"#);
        message
    }

    fn heard(execution: &mut Execution, msg_type: &str, content: &Value) -> Vec<RunnerNotice> {
        execution.hear(&message(msg_type, content)).unwrap()
    }

    fn reply(content: Value) -> ExecuteReply {
        serde_json::from_value(content).unwrap()
    }

    fn report(execution: Execution) -> JobReport {
        match execution.finish().pop() {
            Some(RunnerNotice::Finished { job: of, report }) if of == job() => report,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_is_over_when_the_reply_and_all_that_is_published_are_there() {
        let idle = json!({ "execution_state": "idle" });
        for reply_first in [true, false] {
            let mut execution = execution("1");
            heard(&mut execution, "status", &json!({ "execution_state": "busy" }));
            if !reply_first {
                heard(&mut execution, "status", &idle);
            } else {
                execution.replied(reply(json!({ "status": "ok" })));
            }
            assert!(!execution.is_over());
            if reply_first {
                heard(&mut execution, "status", &idle);
            } else {
                execution.replied(reply(json!({ "status": "ok" })));
            }
            assert!(execution.is_over());
        }
    }

    #[test]
    fn a_value_is_shown_besides_where_it_has_other_forms() {
        let plain =
            |text: &str| json!({ "data": { "text/plain": text }, "metadata": {}, "execution_count": 1 });
        let rich = json!({ "data": { "text/plain": "\u{1b}[33m<t>\u{1b}[39m", "text/html": "<b>" }, "execution_count": 1 });
        let mut execution = execution("x");
        assert_eq!(heard(&mut execution, "execute_result", &rich), []);
        let notices = execution.finish();
        let [RunnerNotice::Display { display, .. }, RunnerNotice::Finished { report, .. }] = &notices[..]
        else {
            panic!("{notices:?}")
        };
        assert!(display.is_value);
        assert_eq!((report.result.value.as_deref(), report.result.display.as_str()), (Some("<t>"), "<t>\n"));
        let mut execution = self::execution("1\n2");
        assert_eq!(heard(&mut execution, "execute_result", &plain("1")), []);
        let shown = heard(&mut execution, "execute_result", &plain("2"));
        let [RunnerNotice::Display { display, .. }] = &shown[..] else { panic!("{shown:?}") };
        assert_eq!((display.is_value, display.data.text()), (false, "1"), "each but the last is shown");
        assert_eq!(self::report(execution).result.value.as_deref(), Some("2"));
    }

    #[test]
    fn a_value_stands_before_what_is_shown_after_it() {
        let value = json!({ "data": { "text/plain": "<Axes: >" }, "execution_count": 1 });
        let figure = json!({ "data": { "text/plain": "<Figure>" } });
        let mut execution = execution("frame.plot()");
        assert_eq!(heard(&mut execution, "execute_result", &value), []);
        let shown = heard(&mut execution, "display_data", &figure);
        let [RunnerNotice::Display { display: first, .. }, RunnerNotice::Display { display: second, .. }] =
            &shown[..]
        else {
            panic!("{shown:?}")
        };
        assert_eq!((first.data.text(), first.is_value, first.is_in_place), ("<Axes: >", true, true));
        assert_eq!((second.data.text(), second.is_value), ("<Figure>", false));
        assert!(!heard(&mut execution, "display_data", &figure).contains(&shown[0]), "once");
        let result = report(execution).result;
        assert_eq!((result.value.as_deref(), result.display.as_str()), (Some("<Axes: >"), ""));
    }

    #[test]
    fn an_error_that_the_reply_does_not_name_is_the_one_that_was_published() {
        let mut execution = execution("thing");
        let error =
            json!({ "ename": "ValueError", "evalue": "boom", "traceback": ["at 2", "ValueError: boom"] });
        let value = json!({ "data": { "text/plain": "<Thing>" }, "execution_count": 1 });
        heard(&mut execution, "error", &error);
        heard(&mut execution, "execute_result", &value);
        execution.replied(reply(
            json!({ "status": "error", "ename": "NoneType", "evalue": "None", "traceback": ["at 2"] }),
        ));
        let notices = execution.finish();
        let [RunnerNotice::Display { display, .. }, RunnerNotice::Finished { report, .. }] = &notices[..]
        else {
            panic!("{notices:?}")
        };
        assert!(display.is_in_place && display.data.text() == "<Thing>");
        let JobEnding::Raised(raised) = &report.ending else { panic!("{report:?}") };
        assert_eq!(
            (raised.kind.as_str(), raised.message.as_str(), raised.stack.as_deref()),
            ("ValueError", "boom", Some("at 2"))
        );
        assert_eq!(report.result.value.as_deref(), Some("<Thing>"));
    }

    #[test]
    fn code_that_reads_without_a_word_asks_with_the_line_that_it_has_begun() {
        let mut execution = execution("input()");
        let mut print = |stream: &str, text: &str| {
            let printed = json!({ "name": stream, "text": text });
            heard(&mut execution, "stream", &printed);
        };
        print("stdout", "one\nName");
        print("stderr", "told");
        print("stdout", "? ");
        assert_eq!([execution.takes_input(), execution.takes_input()], [Some("Name? ".to_owned()), None]);
    }

    #[test]
    fn a_display_keeps_its_name_for_what_updates_it() {
        let mut execution = execution("x");
        for kind in ["display_data", "update_display_data"] {
            let content = json!({ "data": { "text/plain": "1" }, "metadata": { "isolated": true },
                "transient": { "display_id": "bar" } });
            let shown = heard(&mut execution, kind, &content).remove(0);
            let RunnerNotice::Display { display, .. } = shown else { panic!("{shown:?}") };
            assert_eq!(display.data.metadata()["isolated"], true);
            assert_eq!((display.id, display.is_update), (DisplayId::new("bar").ok(), kind != "display_data"));
        }
    }

    #[test]
    fn what_is_not_known_to_change_nothing_counts_as_a_change() {
        let pure = json!({ "status": "ok", "payload": [
            { "source": HELPER, "report": { "isPure": true, "valueType": "int" } } ] });
        let unknown = json!({ "status": "ok" });
        let raised = json!({ "status": "error", "ename": "E", "evalue": "no" });
        for (code, content, changes) in [
            ("1", &pure, false),
            ("1", &unknown, true),
            ("1", &raised, true),
            ("# mainstay: pure\nx.head()", &unknown, false),
            ("  // mainstay: pure", &raised, false),
            ("#| mainstay: stateful\n1", &pure, true),
            ("# mainstay: whatever", &unknown, true),
            ("print('# mainstay: pure')", &unknown, true),
            ("\n# mainstay: pure", &unknown, false),
            ("x = 1\n# mainstay: pure", &unknown, true),
        ] {
            let mut execution = execution(code);
            execution.replied(reply(content.clone()));
            assert_eq!(report(execution).changes_state, changes, "{code} {content}");
        }
    }

    #[test]
    fn an_error_ends_code_as_what_it_is() {
        let error = json!({ "status": "error", "ename": "KeyboardInterrupt", "evalue": "",
            "traceback": ["----", "\u{1b}[0;31mKeyboardInterrupt\u{1b}[0m   Traceback (most recent call last)", "at 1",
                "KeyboardInterrupt: "] });
        let failed = |prepare: &dyn Fn(&mut Execution)| {
            let mut execution = execution("1");
            prepare(&mut execution);
            execution.replied(reply(error.clone()));
            report(execution).ending
        };
        let JobEnding::Raised(raised) = failed(&|_| ()) else { panic!("it raised") };
        assert_eq!((raised.stack.as_deref(), raised.coloured_stack.as_deref()), (Some("at 1"), None));
        assert_eq!(failed(&Execution::interrupt), JobEnding::Interrupted { kept: 0 });
        let start = TextPosition { line: 1, column: 1 };
        let rejected = Diagnostic {
            severity: Severity::Error,
            code: "SyntaxError".to_owned(),
            message: "invalid syntax".to_owned(),
            file: None,
            start,
            end: start,
        };
        let told = Report { rejected: Some(rejected), ..Report::default() };
        let mut execution = execution("1 +");
        execution.replied(reply(error.clone()));
        execution.reported(Some(told));
        let report = report(execution);
        assert_eq!((report.ending, report.changes_state), (JobEnding::Rejected, false));
        assert_eq!(report.result.diagnostics.len(), 1);
    }

    #[test]
    fn a_stack_keeps_its_colours_beside_the_plain_text() {
        let stacks = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            stacks_of(&lines, "E", "no")
        };
        let both =
            |plain: &str, coloured: Option<&str>| (Some(plain.to_owned()), coloured.map(str::to_owned));
        let title = "\u{1b}[31mE\u{1b}[39m       Traceback (most recent call last)";
        let told = [
            "\u{1b}[31m-----\u{1b}[39m",
            title,
            "at \u{1b}[32m1\u{1b}[0m\nat 2\n",
            "\u{1b}[31mE\u{1b}[39m: no",
        ];
        assert_eq!(stacks(&told), both("at 1\nat 2", Some("at \u{1b}[32m1\u{1b}[0m\nat 2")));
        assert_eq!(stacks(&["at 1", "E: no"]), both("at 1", None));
        let helper = "File \u{1b}[32m<mainstay>:384\u{1b}[39m, in f()";
        assert_eq!(stacks(&["at 1", helper, "E: no"]), both("at 1", None), "nothing of the helper");
        assert_eq!(stacks(&["\u{1b}[31mE\u{1b}[39m: no"]), (None, None));
        assert_eq!(stacks(&["at \u{1b}[1", "2m", "3"]), both("at \n3", None));
    }

    #[test]
    fn what_a_kernel_wants_to_be_paged_is_shown_and_an_exit_is_known() {
        let mut execution = execution("x?");
        let shown = execution.replied(reply(json!({ "status": "ok", "payload": [
            { "source": "page", "data": { "text/plain": "Docstring: none" }, "start": 0 },
            { "source": "ask_exit", "keepkernel": false },
        ] })));
        assert!(
            matches!(&shown[..], [RunnerNotice::Display { display, .. }] if display.data.text().starts_with("Doc"))
        );
        assert_eq!(execution.exits(), Some(Exit { code: 0, is_own: true }));
        let code = |keepkernel: Value| {
            let asks = json!({ "source": "ask_exit", "keepkernel": keepkernel });
            let mut execution = self::execution("exit(4)");
            execution.replied(reply(json!({ "status": "ok", "payload": [asks] })));
            execution.exits().map(|exit| (exit.code, exit.is_own))
        };
        assert_eq!(code(json!(4)), Some((4, false)));
        assert_eq!(code(json!("no")), Some((1, false)));
    }

    #[test]
    fn what_is_to_go_with_the_next_output_goes_then_and_only_then() {
        let cleared = |is_replaced| [RunnerNotice::Cleared { job: job(), is_replaced }];
        let clear = |execution: &mut Execution, waits: bool| {
            heard(execution, "clear_output", &json!({ "wait": waits }))
        };
        assert_eq!(clear(&mut execution("1"), false), cleared(false));
        let update = json!({ "data": { "text/plain": "1" }, "transient": { "display_id": "bar" } });
        let text = json!({ "name": "stdout", "text": "1" });
        let value = json!({ "data": { "text/plain": "1" }, "execution_count": 1 });
        let error = json!({ "ename": "E", "evalue": "", "traceback": [] });
        for (kind, content) in
            [("stream", &text), ("display_data", &update), ("execute_result", &value), ("error", &error)]
        {
            let mut execution = execution("1");
            assert_eq!(clear(&mut execution, true), []);
            let updated = heard(&mut execution, "update_display_data", &update);
            assert!(matches!(&updated[..], [RunnerNotice::Display { .. }]), "an update puts nothing out");
            assert_eq!(heard(&mut execution, kind, content)[..1], cleared(true), "{kind}");
            assert!(!heard(&mut execution, kind, content).contains(&cleared(true)[0]), "{kind} once");
        }
    }

    #[test]
    fn what_a_front_end_says_is_over_when_the_kernel_is_idle_again() {
        let mut execution = Execution::of_comm(job());
        assert!(execution.is_expected() && !execution.is_over());
        heard(&mut execution, "status", &json!({ "execution_state": "busy" }));
        assert!(!execution.is_expected() && !execution.is_over());
        let said = heard(&mut execution, "comm_msg", &json!({ "comm_id": "1", "data": { "a": 1 } }));
        assert!(
            matches!(&said[..], [RunnerNotice::Comm { job: Some(_), message }] if message.data["a"] == 1)
        );
        heard(&mut execution, "status", &json!({ "execution_state": "idle" }));
        assert!(execution.is_over());
        assert_eq!(execution.finish(), [RunnerNotice::CommTaken { job: job() }]);
    }

    #[test]
    fn escapes_go_and_text_stays() {
        for (text, expected) in
            [("\u{1b}[31mred\u{1b}[0m", "red"), ("a[0]", "a[0]"), ("\u{1b}[38;5;", ""), ("é\u{1b}[1mü", "éü")]
        {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn what_is_no_such_message_is_an_error_and_not_a_panic() {
        let mut execution = execution("1");
        for kind in ["stream", "display_data", "execute_result", "status", "clear_output", "comm_open"] {
            assert!(execution.hear(&message(kind, &json!([1]))).is_err(), "{kind}");
        }
        assert_eq!(execution.hear(&message("debug_event", &json!([1]))), Ok(Vec::new()));
    }
}

//! From a method's name to the engine and back.

use std::time::Duration;

use super::api::{
    AddHistory, AnswerAsk, Answered, AskAgent, AskAnswer, BackUp, CancelSession, Cancelling, Check, Collect,
    CollectedPart, CompactSession, Compacted, Complete, Conditions, CreateSession, DaemonStatus,
    DeleteSession, Deleted, DoWork, Eval, Explore, ExportSession, Exported, FindSymbols, ForkSession, Forked,
    GetCommand, GetHistory, GetLineage, GetLink, GetSession, GetSessionStatistics, GetStartup, GetStatus,
    GetStoreStatistics, HistoryAdded, HistoryRemoved, HistoryText, ImportSession, Imported, InsertEntries,
    Inserted, Inspect, IsComplete, LabelEntry, Link, ListAllEvents, ListAsks, ListComms, ListEntries,
    ListEvents, ListHistory, ListLabels, ListSessions, ListTests, ListValues, MergeSession, Method, Nothing,
    RaiseAsk, RefreshSession, Refreshed, RemoveHistory, RenameSession, ResetSession, ReviewCode,
    ScaffoldTest, SearchEntries, Sent, SettleSession, StartSession, SteerSession, StopDaemon, StopSession,
    WouldRun,
};
use futures::future::try_join_all;
use mainstay_engine::{Client, ExportPage, Merge, RefreshOutlook, Reloading, WaitingAsk};
use mainstay_formats::exchange::{self, SessionFile};
use mainstay_gateway::browser;
use mainstay_gateway::command::{answered_before, arguments_in, id_of};
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::json_rpc::{Request, params};
use mainstay_gateway::view::agent::WorkView;
use mainstay_gateway::view::{
    AskView, CommandView, EntryView, EvalView, FoundView, LabelView, MergeView, Orphaned, RelativeView,
    SessionView, StatisticsView,
};
use mainstay_log::{EntryFilter, HistoryFilter, SessionFilter};
use mainstay_model::command;
use mainstay_model::search::Words;
use mainstay_model::{
    Admission, Command, CommandId, Error, HistoryPage, Label, Outcome, ProjectChoice, QueuedPrompt, Response,
    SessionCommand, SessionId, SessionState, Timestamp,
};
use mainstay_runner::query::{KernelQuery, SYMBOLS};
use mainstay_scaffold::{ScaffoldRequest, scaffolded};
use serde::Serialize;
use serde_json::Value;

/// Events in one page at most.
const PAGE_LIMIT: usize = 1000;
/// Entries in one page at most that are read whole: each may be as large as what an eval may print.
const WHOLE_ENTRIES: usize = 16;
/// Found entries in one answer, where it is not said how many.
const FOUND_DEFAULT: usize = 20;
/// Found entries in one answer at most.
const FOUND_LIMIT: usize = 100;
/// Where a page ends early, in bytes of JSON.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Carries out one request.
pub(super) async fn dispatch(daemon: &Daemon, client: &Client, request: &Request) -> Result<Value, Error> {
    let call = Call { daemon, client };
    match request.method.as_str() {
        GetStatus::NAME => written(call.status().await?),
        GetLink::NAME => {
            let session = call.optional(params::<GetLink>(request)?.session).await?;
            let to = session.map_or("/ui".to_owned(), |session| format!("/ui/sessions/{session}"));
            written(Link { url: browser::link(daemon, client.principal().clone(), &to) })
        }
        StopDaemon::NAME => {
            client.require_all("stop the daemon")?;
            daemon.stop.cancel();
            written(Nothing {})
        }
        ListSessions::NAME => written(call.list(params(request)?).await?),
        CreateSession::NAME => written(call.create(params(request)?).await?),
        ForkSession::NAME => written(call.fork(params(request)?).await?),
        ListEntries::NAME => {
            let ListEntries { session, from, limit, full } = params(request)?;
            let session = call.resolve(&session).await?;
            let limit = |most: usize| limit.unwrap_or(most).min(most);
            let entries = match full {
                true => client.whole_entries(session, from, limit(WHOLE_ENTRIES)).await?,
                false => client.entries(session, from, limit(PAGE_LIMIT)).await?,
            };
            let validities = client.validities_of_entries(&entries).await?;
            let labels = client.labels_of(session, &entries).await?;
            let view = |((placed, validity), label)| EntryView { placed, validity, label };
            page(&entries.into_iter().zip(validities).zip(labels).map(view).collect::<Vec<_>>())
        }
        MergeSession::NAME => written(call.merge(params(request)?).await?),
        InsertEntries::NAME => written(call.insert(params(request)?).await?),
        CompactSession::NAME => written(call.compact(params(request)?).await?),
        LabelEntry::NAME => {
            let LabelEntry { session, entry, label, sent } = params(request)?;
            let found = call.resolve(&session).await?;
            let body = client.labeling(found, entry, label).await?;
            written(call.change(&found.to_string(), body, sent).await?)
        }
        ListLabels::NAME => {
            let session = call.resolve(&params::<ListLabels>(request)?.session).await?;
            let labels = client.labels(session).await?.into_iter();
            let view = |(index, label): (u64, Label)| LabelView { index, label: label.text, at: label.at };
            written(labels.map(view).collect::<Vec<_>>())
        }
        ExportSession::NAME => written(call.export(params(request)?).await?),
        ImportSession::NAME => written(call.import(params(request)?).await?),
        SearchEntries::NAME => written(call.search(params(request)?).await?),
        AddHistory::NAME => written(call.add_history(params(request)?).await?),
        ListHistory::NAME => written(call.history(params(request)?).await?),
        GetHistory::NAME => {
            let GetHistory { number } = params(request)?;
            written(HistoryText { text: client.history_text(number).await? })
        }
        RemoveHistory::NAME => written(call.remove_history(params(request)?).await?),
        GetLineage::NAME => {
            let session = call.resolve(&params::<GetLineage>(request)?.session).await?;
            let relatives = client.lineage(session).await?;
            written(relatives.into_iter().map(RelativeView::from).collect::<Vec<_>>())
        }
        GetSession::NAME => {
            written(call.view(call.resolve(&params::<GetSession>(request)?.session).await?).await?)
        }
        SettleSession::NAME => written(call.settle(params(request)?).await?),
        StartSession::NAME => {
            let StartSession { session, sent } = params(request)?;
            written(call.change(&session, SessionCommand::Start, sent).await?)
        }
        StopSession::NAME => {
            let StopSession { session, sent } = params(request)?;
            written(call.change(&session, SessionCommand::Stop, sent).await?)
        }
        DeleteSession::NAME => written(call.delete(params(request)?).await?),
        GetSessionStatistics::NAME => {
            let GetSessionStatistics { session } = params(request)?;
            written(StatisticsView::from(client.statistics(call.resolve(&session).await?).await?))
        }
        GetStoreStatistics::NAME => written(client.store_statistics().await?),
        BackUp::NAME => written(client.back_up(params::<BackUp>(request)?.folder.into()).await?),
        Collect::NAME => {
            let (collected, next) = client.collect(params::<Collect>(request)?.from).await?;
            written(CollectedPart { collected, next })
        }
        RenameSession::NAME => {
            let RenameSession { session, name, sent } = params(request)?;
            written(call.change(&session, SessionCommand::Rename(command::Rename { name }), sent).await?)
        }
        ResetSession::NAME => {
            let ResetSession { session, hard, sent } = params(request)?;
            let command = if hard { SessionCommand::HardReset } else { SessionCommand::Reset };
            written(call.change(&session, command, sent).await?)
        }
        RefreshSession::NAME => written(call.refresh(params(request)?).await?),
        CancelSession::NAME => written(call.cancel(params(request)?).await?),
        Eval::NAME => written(call.eval(params(request)?).await?),
        GetStartup::NAME => {
            let GetStartup { session } = params(request)?;
            let status = client.status(call.resolve(&session).await?).await?;
            written(status.session.startup.map(|startup| *startup).unwrap_or_default())
        }
        DoWork::NAME => written(call.work(params(request)?).await?),
        SteerSession::NAME => {
            let SteerSession { session, prompt, hears, sent } = params(request)?;
            let body = SessionCommand::Steer(QueuedPrompt { prompt, hears });
            written(call.change(&session, body, sent).await?)
        }
        AskAgent::NAME => {
            let AskAgent { session, question } = params(request)?;
            client.question(call.resolve(&session).await?, question).await
        }
        RaiseAsk::NAME => written(call.raise(params(request)?).await?),
        ListAsks::NAME => written(call.asks(params(request)?).await?),
        AnswerAsk::NAME => written(call.answer(params(request)?).await?),
        GetCommand::NAME => written(call.command(params(request)?).await?),
        Check::NAME => {
            let Check { session, code, file } = params(request)?;
            written(client.check(call.resolve(&session).await?, code, file).await?)
        }
        ReviewCode::NAME => {
            let ReviewCode { session, code } = params(request)?;
            let query = KernelQuery::Review { code };
            written(client.query(call.resolve(&session).await?, query).await?.review()?)
        }
        ScaffoldTest::NAME => {
            let ScaffoldTest { session, name, signature, framework, inverse } = params(request)?;
            let asked = ScaffoldRequest { name, signature, framework, inverse };
            written(scaffolded(client, call.resolve(&session).await?, asked).await?)
        }
        Complete::NAME => {
            let Complete { session, code, cursor } = params(request)?;
            written(client.complete(call.resolve(&session).await?, code, cursor).await?)
        }
        IsComplete::NAME => {
            let IsComplete { session, code } = params(request)?;
            let query = KernelQuery::Completeness { code };
            written(client.query(call.resolve(&session).await?, query).await?.completeness()?)
        }
        Inspect::NAME => {
            let Inspect { session, code, cursor, in_detail } = params(request)?;
            let query = KernelQuery::Inspection { code, cursor, in_detail };
            written(client.query(call.resolve(&session).await?, query).await?.inspection()?)
        }
        ListComms::NAME => {
            let ListComms { session, target } = params(request)?;
            let query = KernelQuery::Comms { target };
            written(client.query(call.resolve(&session).await?, query).await?.comms()?)
        }
        Explore::NAME => {
            let Explore { session, name } = params(request)?;
            let query = KernelQuery::Members { name };
            written(client.query(call.resolve(&session).await?, query).await?.members()?)
        }
        FindSymbols::NAME => {
            let FindSymbols { session, text, limit } = params(request)?;
            let query = KernelQuery::Symbols { text, limit: limit.unwrap_or(SYMBOLS) };
            written(client.query(call.resolve(&session).await?, query).await?.symbols()?)
        }
        ListValues::NAME => {
            let ListValues { session } = params(request)?;
            written(client.query(call.resolve(&session).await?, KernelQuery::Values).await?.values()?)
        }
        ListTests::NAME => {
            let ListTests { session, pattern, category } = params(request)?;
            let query = KernelQuery::Tests { pattern, category };
            written(client.query(call.resolve(&session).await?, query).await?.tests()?)
        }
        ListEvents::NAME => {
            let ListEvents { session, after, limit } = params(request)?;
            let limit = limit.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT);
            page(&client.events(call.resolve(&session).await?, after, limit).await?)
        }
        ListAllEvents::NAME => {
            let ListAllEvents { after_position, limit } = params(request)?;
            let limit = limit.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT);
            page(&client.all_events(after_position, limit).await?)
        }
        unknown => Err(Error::BadRequest { reason: format!("there is no method `{unknown}`") }),
    }
}

fn written(result: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(result).map_err(|error| Error::BadRequest { reason: error.to_string() })
}

/// As many of the items as one message should hold, and at least one. The next page begins after the last of them.
fn page(items: &[impl Serialize]) -> Result<Value, Error> {
    let mut page = Vec::with_capacity(items.len());
    let mut bytes = 0;
    for item in items {
        let item = written(item)?;
        bytes += item.to_string().len();
        if bytes > PAGE_BYTES && !page.is_empty() {
            break;
        }
        page.push(item);
    }
    Ok(Value::Array(page))
}

/// How many lines of a history one message should hold.
fn lines_of_a_page(page: &HistoryPage) -> usize {
    let mut bytes = 0;
    let fits = |line: &&mainstay_model::HistoryLine| {
        bytes += line.content.beginning().len();
        bytes <= PAGE_BYTES
    };
    page.lines.iter().take_while(fits).count().max(1)
}

/// One request, and on whose behalf.
struct Call<'a> {
    daemon: &'a Daemon,
    client: &'a Client,
}

impl Call<'_> {
    async fn resolve(&self, reference: &str) -> Result<SessionId, Error> {
        self.client.resolve(reference).await
    }

    async fn optional(&self, reference: Option<String>) -> Result<Option<SessionId>, Error> {
        match reference {
            Some(reference) => self.resolve(&reference).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same, also one that was deleted, by its whole id: a command that is sent again is answered all the same.
    async fn resolve_known(&self, reference: &str) -> Result<SessionId, Error> {
        match (self.resolve(reference).await, reference.parse()) {
            (Err(Error::SessionNotFound { .. }), Ok(session)) => Ok(session),
            (resolved, _) => resolved,
        }
    }

    async fn view(&self, session: SessionId) -> Result<SessionView, Error> {
        let validity = self.client.validity(session).await?;
        let status = self.client.status(session).await?;
        Ok(SessionView { validity, ..status.into() })
    }

    async fn refresh(&self, refresh: RefreshSession) -> Result<Refreshed, Error> {
        let RefreshSession { session: reference, all, dry_run, sent } = refresh;
        let session = self.resolve(&reference).await?;
        let outlook = self.client.outlook(session).await?;
        let before = self.view(session).await?;
        let is_repeated = match &sent.command {
            Some(command) => self.client.command(command).await.is_ok(),
            None => false,
        };
        let (is_due, is_whole) = (outlook.is_due(), outlook.gone.is_empty());
        let (is_at_rest, last) = (before.state == SessionState::Uninitialized.name(), before.last_seq);
        let wanted = !dry_run && (is_repeated || (is_due || all) && is_whole);
        let after = match wanted && !is_at_rest {
            true => {
                match self.submit(session, SessionCommand::Refresh(command::Refresh { all }), sent).await? {
                    Outcome::Done { response: Response::Recorded { seq } } => Some(seq),
                    other => return Err(unexpected(&other)),
                }
            }
            false => wanted.then_some(last),
        };
        let would = match dry_run && (is_due || all) && is_whole && !is_at_rest {
            true => Some(self.would_run(session, all).await?),
            false => None,
        };
        let RefreshOutlook { changed, gone, .. } = outlook;
        Ok(Refreshed { session: before, changed, gone, is_due, would, after })
    }

    async fn would_run(&self, session: SessionId, all: bool) -> Result<WouldRun, Error> {
        let Reloading { in_place, of } = self.client.reloading(session).await?;
        Ok(match in_place {
            Ok(_) if all => WouldRun { count: of, of, because: Some("all of it was asked for".to_owned()) },
            Ok(part) => WouldRun { count: u32::try_from(part.len()).unwrap_or(of), of, because: None },
            Err(why) => WouldRun { count: of, of, because: Some(why.to_string()) },
        })
    }

    async fn status(&self) -> Result<DaemonStatus, Error> {
        let Self { daemon, client } = self;
        let engine = &daemon.engine;
        let live = client.sessions(SessionFilter { live: true, ..SessionFilter::default() }).await?;
        let mut views = Vec::with_capacity(live.len());
        for session in live {
            let usage = client.usage(session.id).await;
            // One that was deleted meanwhile has none.
            let validity = client.validity(session.id).await.unwrap_or_default();
            let warm_up = client.warm_up(&session);
            let orphaned = Orphaned::seen_by(client, &session);
            views.push(SessionView { validity, warm_up, orphaned, ..SessionView::new(&session, usage) });
        }
        Ok(DaemonStatus {
            version: self.daemon.version.to_owned(),
            pid: std::process::id(),
            port: self.daemon.port,
            pi_port: self.daemon.own_ports.get("pi").copied(),
            started_at: self.daemon.started_at,
            home: self.daemon.home.display().to_string(),
            resident_bytes: mainstay_os::system::own_resident_bytes(),
            limits: engine.limits().clone(),
            commands: engine.commands_under_way(),
            creations: engine.creations_under_way(),
            asks: client.asks().await?.len(),
            subscribers: engine.subscribers(),
            clients: client.clients(),
            breakers: client.breakers(),
            providers: client.provider_breakers(),
            live: views,
            stored: client.count_sessions(SessionFilter::default()).await?,
        })
    }

    async fn list(&self, list: ListSessions) -> Result<Vec<SessionView>, Error> {
        let ListSessions { working_directory, within, live, limit } = list;
        let filter = SessionFilter { working_directory, within, live, limit, ..SessionFilter::default() };
        let sessions = self.client.sessions(filter).await?;
        let view = |session| SessionView {
            warm_up: self.client.warm_up(session),
            orphaned: Orphaned::seen_by(self.client, session),
            ..SessionView::new(session, None)
        };
        Ok(sessions.iter().map(view).collect())
    }

    async fn create(&self, create: CreateSession) -> Result<SessionView, Error> {
        let CreateSession { command, kind, working_directory, project, no_project, fsi_args, name } = create;
        let project = ProjectChoice::of(project, no_project)?;
        let arguments = arguments_in(fsi_args.as_deref());
        let create =
            mainstay_model::CreateSession { kind, working_directory, project, arguments, name, alias: None };
        let command = id_of(command)?;
        match self.client.create(command, create).await? {
            Outcome::Done { response: Response::Created { session } } => self.view(session).await,
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn fork(&self, fork: ForkSession) -> Result<Forked, Error> {
        let ForkSession { command, session, entries, name, before_reset } = fork;
        let from = self.resolve(&session).await?;
        let fork = mainstay_model::ForkSession { from, entries, name, before_reset };
        match self.client.fork(id_of(command)?, fork).await? {
            Outcome::Done { response: Response::Forked { session, entries, asked } } => {
                Ok(Forked { session: self.view(session).await?, entries, asked })
            }
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn merge(&self, merge: MergeSession) -> Result<MergeView, Error> {
        let MergeSession { session, command, from, entries } = merge;
        let (session, from) = (self.resolve(&session).await?, self.resolve(&from).await?);
        let merged = self.client.merge(session, id_of(command)?, Merge { from, entries }).await?;
        MergeView::load(self.client, session, merged).await
    }

    async fn insert(&self, insert: InsertEntries) -> Result<Inserted, Error> {
        let InsertEntries { session, command, from, entries, at } = insert;
        let (session, from) = (self.resolve_known(&session).await?, self.resolve_known(&from).await?);
        let merge = Merge { from, entries };
        let mainstay_engine::Inserted { entries, at, asked } =
            self.client.insert(session, id_of(command)?, merge, at).await?;
        Ok(Inserted { session: self.view(session).await?, entries, at, asked })
    }

    async fn compact(&self, compact: CompactSession) -> Result<Compacted, Error> {
        let CompactSession { session, before, summary, sent } = compact;
        let session = self.resolve(&session).await?;
        let is_known = match &sent.command {
            Some(command) => self.client.answered_before(command).await?,
            None => false,
        };
        let body = match is_known {
            // What it came to then is not looked at.
            true => {
                SessionCommand::Compact(command::Compact { covers: Vec::new(), asked: Some(before), summary })
            }
            false => self.client.compaction(session, before, summary).await?,
        };
        match self.submit(session, body, sent).await? {
            Outcome::Done { response: Response::Compacted { entries, asked, .. } } => {
                Ok(Compacted { session: self.view(session).await?, entries, asked })
            }
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn export(&self, export: ExportSession) -> Result<Exported, Error> {
        let session = self.resolve(&export.session).await?;
        let ExportPage { header, items, next } =
            self.client.export(session, export.cursor, PAGE_BYTES).await?;
        Ok(Exported { header, items, next })
    }

    async fn import(&self, import: ImportSession) -> Result<Imported, Error> {
        let ImportSession { command, file, working_directory, name } = import;
        let file = exchange::read_session_file(&file, Timestamp::now())?;
        let entries = file.entries();
        let create = file.creation(working_directory, name);
        let SessionFile { imported, format, left_out } = file;
        let import = mainstay_engine::ImportSession { create, imported };
        match self.client.import(id_of(command)?, import).await? {
            Outcome::Done { response: Response::Created { session } } => {
                Ok(Imported { session: self.view(session).await?, format, entries, left_out })
            }
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn search(&self, search: SearchEntries) -> Result<Vec<FoundView>, Error> {
        let SearchEntries { words, session, working_directory, kind, roles, since, until, offset, limit } =
            search;
        let words = Words::parse(&words)?;
        let id = self.optional(session).await?;
        let sessions = SessionFilter { id, working_directory, kind, ..SessionFilter::default() };
        let limit = limit.unwrap_or(FOUND_DEFAULT).min(FOUND_LIMIT);
        let filter = EntryFilter { words, roles, sessions, since, until, offset, limit };
        let found = self.client.search(filter).await?;
        Ok(found.into_iter().map(FoundView::from).collect())
    }

    async fn add_history(&self, add: AddHistory) -> Result<HistoryAdded, Error> {
        // Queued in this order, they are written together.
        let added = add.lines.into_iter().map(|line| self.client.add_history(line));
        Ok(HistoryAdded { numbers: try_join_all(added).await? })
    }

    async fn history(&self, list: ListHistory) -> Result<HistoryPage, Error> {
        let ListHistory { folder, session, words, before, after, limit } = list;
        let session = self.optional(session).await?;
        let limit = Some(limit.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT));
        let own = self.client.own_history();
        let filter = HistoryFilter { folder, session, words, before, after, limit, ..own };
        let mut page = self.client.history(filter).await?;
        page.lines.truncate(lines_of_a_page(&page));
        Ok(page)
    }

    async fn remove_history(&self, remove: RemoveHistory) -> Result<HistoryRemoved, Error> {
        let RemoveHistory { number, folder, session } = remove;
        let session = self.optional(session).await?;
        let filter = HistoryFilter { number, folder, session, ..self.client.own_history() };
        Ok(HistoryRemoved { removed: self.client.remove_history(filter).await? })
    }

    async fn settle(&self, settle: SettleSession) -> Result<SessionView, Error> {
        let session = self.resolve(&settle.session).await?;
        self.client.settled(session, Duration::from_millis(settle.timeout_ms)).await?;
        self.view(session).await
    }

    async fn change(&self, session: &str, body: SessionCommand, sent: Sent) -> Result<SessionView, Error> {
        let session = self.resolve(session).await?;
        match self.submit(session, body, sent).await? {
            Outcome::Done { .. } => self.view(session).await,
            Outcome::Failed { error } => Err(error),
        }
    }

    async fn delete(&self, delete: DeleteSession) -> Result<Deleted, Error> {
        let DeleteSession { session: reference, sent } = delete;
        let session = self.resolve_known(&reference).await?;
        match self.submit(session, SessionCommand::Delete, sent).await? {
            Outcome::Done { response: Response::Recorded { seq } } => Ok(Deleted { session, seq }),
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn cancel(&self, cancel: CancelSession) -> Result<Cancelling, Error> {
        let CancelSession { session, target, sent } = cancel;
        let session = self.resolve(&session).await?;
        let job = match self.submit(session, SessionCommand::Cancel(command::Cancel { target }), sent).await?
        {
            Outcome::Done { response: Response::Cancelling { job } } => Some(job),
            Outcome::Done { response: Response::Withdrawn { .. } } => None,
            outcome => return Err(unexpected(&outcome)),
        };
        Ok(Cancelling { session: self.view(session).await?, job })
    }

    async fn eval(&self, eval: Eval) -> Result<EvalView, Error> {
        let Eval { session, code, file, command_line, withheld, admission, sent } = eval;
        let session = self.resolve(&session).await?;
        let body = SessionCommand::Eval(command::Eval { code, file, command_line, origin: None, withheld });
        let (id, answered) = self.run(session, body, admission, sent).await?;
        match answered.outcome {
            Outcome::Done { response: Response::Evaluated(outcome) } => {
                let view = EvalView::load(self.client, session, id, outcome).await?;
                Ok(EvalView { version: answered.version, replayed: answered.is_replay, ..view })
            }
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn work(&self, work: DoWork) -> Result<WorkView, Error> {
        let DoWork { session, work, admission, sent } = work;
        let session = self.resolve(&session).await?;
        let (id, answered) = self.run(session, SessionCommand::Work(work), admission, sent).await?;
        match answered.outcome {
            Outcome::Done { response: Response::Worked(outcome) } => {
                let view = WorkView::load(self.client, session, id, outcome).await?;
                Ok(WorkView { version: answered.version, replayed: answered.is_replay, ..view })
            }
            outcome => Err(unexpected(&outcome)),
        }
    }

    /// Has a job done, and waits for its end; says under what id.
    async fn run(
        &self,
        session: SessionId,
        body: SessionCommand,
        admission: Admission,
        sent: Sent,
    ) -> Result<(CommandId, mainstay_model::Answered), Error> {
        let command = self.command_of(body, sent)?;
        let id = command.id.clone();
        Ok((id, self.client.submit(session, Command { admission, ..command }).await?))
    }

    async fn raise(&self, raise: RaiseAsk) -> Result<AskAnswer, Error> {
        let RaiseAsk { session, question, sent } = raise;
        let session = self.resolve(&session).await?;
        let command = self.command_of(SessionCommand::Ask(question), sent)?;
        let answered = self.client.submit(session, command).await?;
        match answered.outcome {
            Outcome::Done { response: Response::Answered { ask, value, by } } => {
                Ok(AskAnswer { ask, value, by, replayed: answered.is_replay })
            }
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn asks(&self, list: ListAsks) -> Result<Vec<AskView>, Error> {
        let session = self.optional(list.session).await?;
        let mut asks = self.client.asks().await?;
        asks.retain(|waiting| session.is_none_or(|session| session == waiting.session.id));
        Ok(asks.into_iter().map(AskView::from).collect())
    }

    /// Answers an ask of a session.
    async fn answer(&self, answer: AnswerAsk) -> Result<Answered, Error> {
        let AnswerAsk { ask, command, value } = answer;
        let (session, ask) = match answered_before(self.client, &ask, command.as_ref()).await? {
            Some(before) => before,
            None => {
                let WaitingAsk { session, pending } = self.client.ask(&ask).await?;
                (session.id, pending.ask.ask)
            }
        };
        let body = SessionCommand::Answer(command::Answer { ask, value });
        let command = Command::new(id_of(command)?, self.client.source(), body);
        match self.client.submit(session, command).await?.outcome {
            Outcome::Done { response: Response::Recorded { seq } } => Ok(Answered { ask, session, seq }),
            outcome => Err(unexpected(&outcome)),
        }
    }

    async fn command(&self, get: GetCommand) -> Result<CommandView, Error> {
        let status = self.client.command(&get.command).await?;
        Ok(CommandView::new(get.command, status))
    }

    async fn submit(&self, session: SessionId, body: SessionCommand, sent: Sent) -> Result<Outcome, Error> {
        let command = self.command_of(body, sent)?;
        self.client.submit(session, command).await.map(|answered| answered.outcome)
    }

    /// A command of this client's, for when the session can carry it out.
    fn command_of(&self, body: SessionCommand, sent: Sent) -> Result<Command, Error> {
        let Sent { command, conditions } = sent;
        let Conditions { key, depends_on, if_version, timeout_ms } = conditions;
        let command = Command::new(id_of(command)?, self.client.source(), body);
        Ok(Command { key, depends_on, if_version, timeout_ms, ..command })
    }
}

fn unexpected(outcome: &Outcome) -> Error {
    match outcome {
        Outcome::Failed { error } => error.clone(),
        Outcome::Done { response } => {
            Error::BadRequest { reason: format!("the command's outcome is {response:?}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{Event, EventBody, Metadata, Position, Seq, Source, Timestamp};
    use uuid::Uuid;

    fn event(bytes: usize) -> Event {
        let metadata =
            Metadata { source: Source::System, correlation: None, causation: None, environment: None };
        Event {
            session: SessionId::from_uuid(Uuid::nil()),
            seq: Seq(1),
            position: Position::ZERO,
            at: Timestamp::now(),
            metadata,
            body: EventBody::SessionRenamed { name: "x".repeat(bytes) },
        }
    }

    #[test]
    fn a_page_of_large_events_ends_early_and_is_never_empty() {
        let length = |events: &[Event]| page(events).unwrap().as_array().unwrap().len();
        assert_eq!(length(&[]), 0);
        assert_eq!(length(&[event(1), event(1)]), 2);
        assert_eq!(length(&[event(PAGE_BYTES / 2), event(PAGE_BYTES / 3), event(PAGE_BYTES / 2)]), 2);
        assert_eq!(length(&[event(PAGE_BYTES + 1), event(1)]), 1);
    }
}

//! Every endpoint of the HTTP interface, and the router that serves them.

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use mainstay_model::NewLine;

use super::daemon::HttpDaemon;
use super::endpoint::{Answer, Endpoint};
use super::problem::{no_such_method, no_such_path};
use super::signals::{
    CompletionsSignal, CompletionsSignals, DiagnosticsSignals, EvalSignals, EventSignals, StatusSignals,
};
use super::{
    agents, buffers, coding, commands, create, diagnostics, endpoint, explore, history, import_export,
    metrics, notebooks, openapi, queries, socket, streams, submission,
};
use mainstay_gateway::KnownKind;
use mainstay_protocol::view::NotebookView;
use mainstay_protocol::view::agent::WorkView;
use mainstay_protocol::view::{CommandView, EvalView, MergeView};
use mainstay_protocol::{OperationId, operations};

/// Returns every endpoint of the HTTP interface.
pub(super) fn endpoints() -> Vec<Endpoint> {
    [
        session_commands(),
        agent_commands(),
        code_commands(),
        whole_sessions(),
        daemon_commands(),
        event_streams(),
        session_queries(),
        code_queries(),
        unsaved_texts(),
        command_queries(),
        history_lines(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Every endpoint, as `GET /sessions`, with the operations that it carries out.
pub fn operations_of_endpoints() -> impl Iterator<Item = (String, Vec<OperationId>)> {
    endpoints()
        .into_iter()
        .map(|endpoint| (format!("{} {}", endpoint.method, endpoint.path), endpoint.operations))
}

/// Returns the commands that change what a session has and whether it runs.
fn session_commands() -> Vec<Endpoint> {
    use commands::{Cancel, Exec, Load, Rename};
    use submission::Terms;
    vec![
        Endpoint::command::<Exec, EvalView, _, _>("/exec", "Runs code", commands::exec)
            .carries_out::<operations::Eval>()
            .of_a_session(),
        Endpoint::command::<Load, EvalView, _, _>("/load", "Runs a script", commands::load)
            .carries_out::<operations::Eval>()
            .of_a_session(),
        Endpoint::command::<Cancel, CommandView, _, _>(
            "/cancel",
            "Ends the job that runs, or takes back a command that waits",
            commands::cancel,
        )
        .carries_out::<operations::CancelSession>()
        .of_a_session(),
        Endpoint::command::<Terms, CommandView, _, _>("/reset", "Drops the definitions", commands::reset)
            .carries_out::<operations::ResetSession>()
            .of_a_session(),
        Endpoint::command::<commands::HardReset, CommandView, _, _>(
            "/hard-reset",
            "Drops the definitions and the worker, maybe once the session's project is built",
            commands::hard_reset,
        )
        .carries_out::<operations::ResetSession>()
        .carries_out::<operations::DoWork>()
        .of_a_session(),
        Endpoint::command::<Terms, CommandView, _, _>(
            "/start",
            endpoint::summary_of::<operations::StartSession>(),
            commands::start,
        )
        .carries_out::<operations::StartSession>()
        .of_a_session(),
        Endpoint::command::<Terms, CommandView, _, _>("/stop", "Stops a session", commands::stop)
            .carries_out::<operations::StopSession>()
            .of_a_session(),
        Endpoint::command::<Rename, CommandView, _, _>("/rename", "Gives it another name", commands::rename)
            .carries_out::<operations::RenameSession>()
            .of_a_session(),
    ]
}

/// Returns what an agent is told.
fn agent_commands() -> Vec<Endpoint> {
    use agents::{Compact, Pause, Say, Settings, Shell};
    vec![
        Endpoint::command::<Say, WorkView, _, _>("/prompt", "Says something to an agent", agents::prompt)
            .carries_out::<operations::DoWork>()
            .of_a_session(),
        Endpoint::command::<Say, CommandView, _, _>(
            "/steer",
            "Says something to an agent that works",
            agents::steer,
        )
        .carries_out::<operations::SteerSession>()
        .of_a_session(),
        Endpoint::command::<Pause, CommandView, _, _>(
            "/pause",
            "Has an agent pause in its turn, and ask how to go on",
            agents::pause,
        )
        .carries_out::<operations::PauseSession>()
        .of_a_session(),
        Endpoint::command::<Settings, WorkView, _, _>(
            "/settings",
            "Has an agent go on with another model, or otherwise",
            agents::settings,
        )
        .carries_out::<operations::DoWork>()
        .of_a_session(),
        Endpoint::command::<Compact, WorkView, _, _>(
            "/compact",
            "Has an agent shorten what it is shown of the conversation",
            agents::compact,
        )
        .carries_out::<operations::DoWork>()
        .of_a_session(),
        Endpoint::command::<Shell, WorkView, _, _>(
            "/shell",
            "Runs a line of a shell where an agent's tools act",
            agents::shell,
        )
        .carries_out::<operations::DoWork>()
        .of_a_session(),
    ]
}

/// Returns what works on code in other ways than to run it: merged, from a notebook, checked, completed.
fn code_commands() -> Vec<Endpoint> {
    use commands::MergeFrom;
    vec![
        Endpoint::command::<MergeFrom, MergeView, _, _>(
            "/merge",
            "Runs inputs of another session, up to the first that does not run to its end",
            commands::merge,
        )
        .carries_out::<operations::MergeSession>()
        .of_a_session(),
        Endpoint::command::<notebooks::RunNotebook, NotebookView, _, _>(
            "/notebooks",
            "Runs a file of this machine cell by cell, up to the first that does not run to its end; asked again, it goes on there",
            notebooks::run,
        )
        .of_a_session()
        .answers(Answer::Json(endpoint::schema_of::<NotebookView>)),
        Endpoint::command::<diagnostics::Check, diagnostics::Checked, _, _>(
            "/diagnostics",
            endpoint::summary_of::<operations::Check>(),
            diagnostics::check,
        )
        .carries_out::<operations::Check>()
        .of_a_session(),
        Endpoint::command::<diagnostics::Complete, CompletionsSignal, _, _>(
            "/completions",
            "Asks what could stand at a cursor",
            diagnostics::complete,
        )
        .carries_out::<operations::Complete>()
        .of_a_session(),
    ]
}

/// Returns what makes a session of something, deletes one, or makes a file of one.
fn whole_sessions() -> Vec<Endpoint> {
    use submission::Terms;
    vec![
        Endpoint::creation::<create::Fork, _, _>(
            "/fork",
            "Creates a session that begins with entries of another, and has its values",
            create::fork,
        )
        .carries_out::<operations::ForkSession>()
        .of_a_session(),
        Endpoint::creation::<create::Create, _, _>("/sessions", "Creates a session", create::create)
            .carries_out::<operations::CreateSession>(),
        Endpoint::command::<Terms, CommandView, _, _>(
            "/sessions/{session}",
            "Deletes a session; those that were forked off it stay whole",
            commands::delete,
        )
        .carries_out::<operations::DeleteSession>()
        .deletes(commands::delete),
        Endpoint::text(
            "/export",
            "A session as the text of a file: whole, to read, or as code",
            import_export::export,
        )
        .carries_out::<operations::ExportSession>()
        .of_a_session()
        .with_query::<import_export::Export>(),
        Endpoint::creation_in_json::<import_export::Import, import_export::ImportView, _, _>(
            "/import",
            "Creates a session of a session file; its code runs again, and in an agent's conversation nothing runs",
            import_export::import,
        )
        .carries_out::<operations::ImportSession>(),
    ]
}

/// Returns the commands that name no session.
fn daemon_commands() -> Vec<Endpoint> {
    use commands::AnswerAsk;
    use submission::Terms;
    vec![
        Endpoint::command::<AnswerAsk, CommandView, _, _>(
            "/asks/{ask}",
            "Answers an ask; the first valid answer wins, unless several must give the same",
            commands::answer,
        )
        .carries_out::<operations::AnswerAsk>()
        .carries_out::<operations::DeclineAsk>(),
        Endpoint::command::<Terms, CommandView, _, _>(
            "/shutdown",
            "Ends the daemon, once every session is idle",
            commands::shut_down,
        )
        .carries_out::<operations::StopDaemon>()
        .answers(Answer::Nothing),
    ]
}

/// Returns the streams, each of one subject.
fn event_streams() -> Vec<Endpoint> {
    vec![
        Endpoint::stream::<EvalSignals<'_>, _, _>(
            "/eval",
            "The last job from its beginning, then each as it runs",
            streams::eval,
        ),
        Endpoint::stream::<StatusSignals, _, _>(
            "/status",
            "How the session is, and what may be done",
            streams::status,
        ),
        Endpoint::stream::<EventSignals, _, _>(
            "/events",
            "Every event; with `*` as the session those of all, behind places in the log",
            streams::events,
        )
        .carries_out::<operations::Follow>()
        .with_query::<streams::EventsQuery>(),
        Endpoint::stream::<DiagnosticsSignals, _, _>(
            "/diagnostics",
            "The diagnostics of code that was checked",
            streams::diagnostics,
        ),
        Endpoint::stream::<CompletionsSignals, _, _>(
            "/completions",
            "The completions that were asked for",
            streams::completions,
        ),
        Endpoint::socket("/stream", "Any of these streams as a WebSocket, in JSON or BARE", socket::stream)
            .with_query::<socket::SocketQuery>(),
    ]
}

/// Returns what can be asked of sessions and of the daemon.
fn session_queries() -> Vec<Endpoint> {
    use queries::{ListEntries, ListKinds, ListSessions, RecentEvents};
    vec![
        Endpoint::read::<Vec<KnownKind>, _, _>(
            "/kinds",
            "The kinds of sessions that can be created, the one used last first; then those that lack something, with what that is",
            queries::kinds,
        )
        .with_query::<ListKinds>(),
        Endpoint::query::<operations::ListSessions, _, _>("/sessions", queries::sessions)
            .with_summary("The sessions, the most recently active first")
            .with_query::<ListSessions>(),
        Endpoint::query::<operations::GetSession, _, _>("/sessions/{session}", queries::session)
            .with_summary("A session"),
        Endpoint::query::<operations::ListEntries, _, _>("/sessions/{session}/entries", queries::entries)
            .with_query::<ListEntries>(),
        Endpoint::query::<operations::ListEvents, _, _>("/events/recent", queries::recent_events)
            .with_summary("The newest events of a session, or those behind one, oldest first")
            .of_a_session()
            .with_query::<RecentEvents>(),
        Endpoint::read::<queries::DaemonView, _, _>(
            "/daemon",
            "The daemon, and how much it has to do",
            queries::daemon,
        )
        .carries_out::<operations::GetStatus>(),
        Endpoint::query::<operations::GetLineage, _, _>("/sessions/{session}/lineage", queries::lineage)
            .with_summary("The sessions it comes from, and those that come from it"),
    ]
}

/// Returns what can be asked of what a session's code has and made.
fn code_queries() -> Vec<Endpoint> {
    vec![
        Endpoint::query::<operations::Explore, _, _>("/members", explore::members)
            .with_summary("What a namespace, module or type holds")
            .of_a_session()
            .with_query::<explore::ListMembers>(),
        Endpoint::query::<operations::FindSymbols, _, _>("/symbols", explore::symbols)
            .with_summary("What is loaded or referred to that has a text in its name")
            .of_a_session()
            .with_query::<explore::FindSymbols>(),
        Endpoint::query::<operations::ListValues, _, _>("/values", explore::values)
            .with_summary("What the session's code bound, the newest first")
            .of_a_session(),
        Endpoint::query::<operations::GetStartup, _, _>("/startup", queries::startup)
            .with_summary("What the session's worker brought in before its own code: its project, and the scripts of its user")
            .of_a_session(),
        Endpoint::query::<operations::ListTests, _, _>("/tests", explore::tests)
            .with_summary("The tests that the session's code defined, and those of the assemblies it refers to; `POST /exec` runs them")
            .of_a_session()
            .with_query::<explore::ListTests>(),
        Endpoint::query::<operations::GetCoverage, _, _>("/coverage", explore::coverage)
            .with_summary("The lines of the session's project that tests reach, and how these tests ended; nothing runs in the session")
            .of_a_session()
            .with_query::<explore::ChooseLines>(),
    ]
}

/// Returns what is done with texts that an editor has not saved.
fn unsaved_texts() -> Vec<Endpoint> {
    vec![
        Endpoint::query::<operations::PutBuffer, _, _>("/buffers", buffers::put)
            .puts::<buffers::PutBuffer, _, _>(buffers::put)
            .of_a_session(),
        Endpoint::query::<operations::DiscardBuffer, _, _>("/buffers", buffers::discard)
            .deletes(buffers::discard)
            .of_a_session()
            .with_query::<buffers::ChooseBuffer>(),
        Endpoint::query::<operations::ListBuffers, _, _>("/buffers", buffers::list).of_a_session(),
    ]
}

/// Returns what can be asked of asks, of commands, and of what was said.
fn command_queries() -> Vec<Endpoint> {
    use queries::{ListAsks, Search};
    vec![
        Endpoint::query::<operations::ListAsks, _, _>("/asks", queries::asks)
            .with_summary("What waits for an answer")
            .with_query::<ListAsks>(),
        Endpoint::query::<operations::GetCommand, _, _>("/commands/{command}", queries::command)
            .with_summary("What became of a command"),
        Endpoint::query::<operations::SearchEntries, _, _>("/search", queries::search)
            .with_summary("What was said anywhere")
            .with_query::<Search>(),
    ]
}

/// Returns what keeps and lists the lines that a principal typed.
fn history_lines() -> Vec<Endpoint> {
    vec![
        Endpoint::command::<NewLine, history::StoredLine, _, _>(
            "/history",
            "Keeps a line of the principal's own history, once under its id",
            history::keep,
        )
        .carries_out::<operations::AddHistory>()
        .answers(Answer::Json(endpoint::schema_of::<history::StoredLine>)),
        Endpoint::query::<operations::ListHistory, _, _>("/history", history::list)
            .with_query::<history::ListHistory>(),
        Endpoint::read::<history::Line, _, _>(
            "/history/{number}",
            endpoint::summary_of::<operations::GetHistory>(),
            history::line,
        )
        .carries_out::<operations::GetHistory>(),
    ]
}

/// Every path but those of other protocols.
pub(crate) fn routes() -> Router<HttpDaemon> {
    let router = Router::new()
        .route("/openapi.json", get(openapi::get))
        .route("/metrics", get(metrics::get))
        .route("/mainstay.bare", get(openapi::bare_schema));
    endpoints()
        .into_iter()
        .fold(router, |router, endpoint| endpoint.serve(router))
        .fallback(|| async { no_such_path() })
        .method_not_allowed_fallback(|| async { no_such_method() })
        .layer(from_fn(coding::compress))
        .layer(from_fn(metrics::measure))
}

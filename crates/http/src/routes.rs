//! Every endpoint of the HTTP interface, and the router that serves them.

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use mainstay_model::{Binding, Event, HistoryPage, NewLine, Startup};
use mainstay_runner::query::{Members, Symbols, Tests};

use super::daemon::HttpDaemon;
use super::endpoint::{Answer, Endpoint};
use super::problem::{no_such_method, no_such_path};
use super::signals::{
    CompletionsSignal, CompletionsSignals, DiagnosticsSignals, EvalSignals, EventSignals, StatusSignals,
};
use super::{
    agents, coding, commands, create, diagnostics, endpoint, explore, history, import_export, metrics,
    notebooks, openapi, queries, socket, streams, submission,
};
use mainstay_gateway::KnownKind;
use mainstay_protocol::view::NotebookView;
use mainstay_protocol::view::agent::WorkView;
use mainstay_protocol::view::{
    AskView, CommandView, EntryView, EvalView, FoundView, MergeView, RelativeView, SessionView,
};

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
        command_queries(),
        history_lines(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the commands that change what a session has and whether it runs.
fn session_commands() -> Vec<Endpoint> {
    use commands::{Cancel, Exec, Load, Rename};
    use submission::Terms;
    vec![
        Endpoint::command::<Exec, EvalView, _, _>("/exec", "Runs code", commands::exec).of_a_session(),
        Endpoint::command::<Load, EvalView, _, _>("/load", "Runs a script", commands::load).of_a_session(),
        Endpoint::command::<Cancel, CommandView, _, _>(
            "/cancel",
            "Ends the job that runs, or takes back a command that waits",
            commands::cancel,
        )
        .of_a_session(),
        Endpoint::command::<Terms, CommandView, _, _>("/reset", "Drops the definitions", commands::reset)
            .of_a_session(),
        Endpoint::command::<commands::HardReset, CommandView, _, _>(
            "/hard-reset",
            "Drops the definitions and the worker, maybe once the session's project is built",
            commands::hard_reset,
        )
        .of_a_session(),
        Endpoint::command::<Terms, CommandView, _, _>("/start", "Starts an idle session", commands::start)
            .of_a_session(),
        Endpoint::command::<Terms, CommandView, _, _>("/stop", "Stops a session", commands::stop)
            .of_a_session(),
        Endpoint::command::<Rename, CommandView, _, _>("/rename", "Gives it another name", commands::rename)
            .of_a_session(),
    ]
}

/// Returns what an agent is told.
fn agent_commands() -> Vec<Endpoint> {
    use agents::{Compact, Say, Settings, Shell};
    vec![
        Endpoint::command::<Say, WorkView, _, _>("/prompt", "Says something to an agent", agents::prompt)
            .of_a_session(),
        Endpoint::command::<Say, CommandView, _, _>(
            "/steer",
            "Says something to an agent that works",
            agents::steer,
        )
        .of_a_session(),
        Endpoint::command::<Settings, WorkView, _, _>(
            "/settings",
            "Has an agent go on with another model, or otherwise",
            agents::settings,
        )
        .of_a_session(),
        Endpoint::command::<Compact, WorkView, _, _>(
            "/compact",
            "Has an agent shorten what it is shown of the conversation",
            agents::compact,
        )
        .of_a_session(),
        Endpoint::command::<Shell, WorkView, _, _>(
            "/shell",
            "Runs a line of a shell where an agent's tools act",
            agents::shell,
        )
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
            "Checks code without running it",
            diagnostics::check,
        )
        .of_a_session(),
        Endpoint::command::<diagnostics::Complete, CompletionsSignal, _, _>(
            "/completions",
            "Asks what could stand at a cursor",
            diagnostics::complete,
        )
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
        .of_a_session(),
        Endpoint::creation::<create::Create, _, _>("/sessions", "Creates a session", create::create),
        Endpoint::command::<Terms, CommandView, _, _>(
            "/sessions/{session}",
            "Deletes a session; those that were forked off it stay whole",
            commands::delete,
        )
        .deletes(commands::delete),
        Endpoint::text(
            "/export",
            "A session as the text of a file: whole, to read, or as code",
            import_export::export,
        )
        .of_a_session()
        .with_query::<import_export::Export>(),
        Endpoint::creation_in_json::<import_export::Import, import_export::ImportView, _, _>(
            "/import",
            "Creates a session of a session file; its code runs again, and in an agent's conversation nothing runs",
            import_export::import,
        ),
    ]
}

/// Returns the commands that name no session.
fn daemon_commands() -> Vec<Endpoint> {
    use commands::AnswerAsk;
    use submission::Terms;
    vec![
        Endpoint::command::<AnswerAsk, CommandView, _, _>(
            "/asks/{ask}",
            "Answers an ask; the first valid answer wins",
            commands::answer,
        ),
        Endpoint::command::<Terms, CommandView, _, _>(
            "/shutdown",
            "Ends the daemon, once every session is idle",
            commands::shut_down,
        )
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
        Endpoint::read::<Vec<SessionView>, _, _>(
            "/sessions",
            "The sessions, the most recently active first",
            queries::sessions,
        )
        .with_query::<ListSessions>(),
        Endpoint::read::<SessionView, _, _>("/sessions/{session}", "A session", queries::session),
        Endpoint::read::<Vec<EntryView>, _, _>(
            "/sessions/{session}/entries",
            "Entries of a session's transcript",
            queries::entries,
        )
        .with_query::<ListEntries>(),
        Endpoint::read::<Vec<Event>, _, _>(
            "/events/recent",
            "The newest events of a session, or those behind one, oldest first",
            queries::recent_events,
        )
        .of_a_session()
        .with_query::<RecentEvents>(),
        Endpoint::read::<queries::DaemonView, _, _>(
            "/daemon",
            "The daemon, and how much it has to do",
            queries::daemon,
        ),
        Endpoint::read::<Vec<RelativeView>, _, _>(
            "/sessions/{session}/lineage",
            "The sessions it comes from, and those that come from it",
            queries::lineage,
        ),
    ]
}

/// Returns what can be asked of what a session's code has and made.
fn code_queries() -> Vec<Endpoint> {
    vec![
        Endpoint::read::<Members, _, _>(
            "/members",
            "What a namespace, module or type holds",
            explore::members,
        )
        .of_a_session()
        .with_query::<explore::ListMembers>(),
        Endpoint::read::<Symbols, _, _>(
            "/symbols",
            "What is loaded or referred to that has a text in its name",
            explore::symbols,
        )
        .of_a_session()
        .with_query::<explore::FindSymbols>(),
        Endpoint::read::<Vec<Binding>, _, _>(
            "/values",
            "What the session's code bound, the newest first",
            explore::values,
        )
        .of_a_session(),
        Endpoint::read::<Startup, _, _>(
            "/startup",
            "What the session's worker brought in before its own code: its project, and the scripts of its user",
            queries::startup,
        )
        .of_a_session(),
        Endpoint::read::<Tests, _, _>(
            "/tests",
            "The tests that the session's code defined, and those of the assemblies it refers to; `POST /exec` runs them",
            explore::tests,
        )
        .of_a_session()
        .with_query::<explore::ListTests>(),
    ]
}

/// Returns what can be asked of asks, of commands, and of what was said.
fn command_queries() -> Vec<Endpoint> {
    use queries::{ListAsks, Search};
    vec![
        Endpoint::read::<Vec<AskView>, _, _>("/asks", "What waits for an answer", queries::asks)
            .with_query::<ListAsks>(),
        Endpoint::read::<CommandView, _, _>(
            "/commands/{command}",
            "What became of a command",
            queries::command,
        ),
        Endpoint::read::<Vec<FoundView>, _, _>("/search", "What was said anywhere", queries::search)
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
        .answers(Answer::Json(endpoint::schema_of::<history::StoredLine>)),
        Endpoint::read::<HistoryPage, _, _>(
            "/history",
            "Lines of the principal's own history, newest first",
            history::list,
        )
        .with_query::<history::ListHistory>(),
        Endpoint::read::<history::Line, _, _>("/history/{number}", "All that a line says", history::line),
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

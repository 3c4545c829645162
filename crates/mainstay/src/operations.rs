//! Tests that every operation of the list was considered by the gateways, and every endpoint and tool by the list.
//!
//! The local socket carries out all operations. Whoever adds an operation offers it over HTTP or MCP too, or says here why it is not offered; whoever
//! adds an endpoint or a tool names its operations, or says here why it has none.

use std::collections::BTreeSet;

use mainstay_protocol::{OperationId, operations};

/// The operations that neither HTTP nor MCP offers, and why.
const ON_THE_LOCAL_SOCKET_ALONE: &[(&str, &str)] = &[
    (
        "agent/question",
        "answered in the agent's own words, for the prompt; the pi protocol has its own requests",
    ),
    ("client/attach", "HTTP and MCP show the token in each request or in their own first request"),
    ("daemon/link", "the link lets a browser in, and only a local client can open one"),
    ("daemon/restart", "a restart is for who looks after the machine, at a terminal"),
    ("history/remove", "people forget lines at a terminal"),
    ("log/events", "HTTP has all events as a stream, `GET /events` with `*` as the session"),
    ("rpc.discover", "HTTP has its own document, and MCP lists its tools"),
    ("schedule/add", "schedules are made at a terminal, or over ARCP"),
    ("schedule/list", "as `schedule/add`"),
    ("schedule/remove", "as `schedule/add`"),
    ("session/ask", "a client that asks waits for its answer on a connection; tools ask by elicitation"),
    ("session/comms", "comms are for front ends of Jupyter kernels, which attach to the local socket"),
    ("session/compact", "the summary is written by the client; HTTP's `/compact` has the agent write it"),
    ("session/find", "HTTP and MCP resolve the session within each call"),
    ("session/insert", "picking entries into a transcript is a command for people at a terminal"),
    ("session/inspect", "the prompt and front ends of Jupyter ask at a cursor; tools explore by name"),
    ("session/isComplete", "only a prompt asks whether Enter runs the code"),
    (
        "session/label",
        "labels are for people at a terminal, and the pi protocol has its own command for them",
    ),
    ("session/labels", "as `session/label`; `GET /sessions/{session}/entries` shows the labels of entries"),
    ("session/listen", "HTTP's signals and MCP's progress have what is going on, in their own forms"),
    ("session/open", "as `session/find`; HTTP creates sessions only when asked to"),
    ("session/settle", "HTTP's `GET /status` is a stream, and tools wait by themselves"),
    ("session/statistics", "the numbers are for people who look after a store"),
    ("store/backup", "looking after the store is for the command line"),
    ("store/collect", "looking after the store is for the command line"),
    ("store/statistics", "looking after the store is for the command line"),
];

/// The endpoints that carry out no operation of the list, and why.
const ENDPOINTS_OF_THEIR_OWN: &[(&str, &str)] = &[
    ("GET /completions", "signals: the completions that others asked for"),
    ("GET /diagnostics", "signals: the diagnostics of code that others had checked"),
    ("GET /eval", "signals: jobs as they run"),
    ("GET /kinds", "the command line looks for kinds on its own machine"),
    ("GET /status", "signals: how the session is"),
    ("GET /stream", "frames: any of the streams over WebSocket"),
    ("POST /notebooks", "the daemon reads the file and runs each cell; the command line does that itself"),
];

/// The tools that carry out no operation of the list, and why.
const TOOLS_OF_THEIR_OWN: &[(&str, &str)] = &[
    ("diagnose", "a report made of several queries, for models"),
    ("get_available_projects", "reads the folder of the agent, not the daemon's sessions"),
    ("get_eval_timeline", "a report made of events, for models"),
    ("get_live_test_status", "how tests ended, made of events, for models"),
    ("get_output", "lines of an output that an answer of MCP had to cut"),
    ("run_notebook", "the daemon reads the file and runs each cell; the command line does that itself"),
    ("switch_session", "which session a connection of MCP means is known to MCP alone"),
];

/// The names of a list, each of which must have a reason and stand once, in order.
fn names<'a>(list: &[(&'a str, &str)]) -> Vec<&'a str> {
    assert!(list.iter().all(|(_, reason)| !reason.is_empty()), "each name has a reason");
    assert!(list.is_sorted_by(|(one, _), (next, _)| one < next), "names stand once, in order");
    list.iter().map(|(name, _)| *name).collect()
}

#[test]
fn every_operation_is_offered_by_a_gateway_or_said_not_to_be() {
    let of_endpoints = mainstay_http::operations_of_endpoints().flat_map(|(_, operations)| operations);
    let of_tools = mainstay_mcp::operations_of_tools().flat_map(|(_, operations)| operations.iter().copied());
    let offered: BTreeSet<OperationId> = of_endpoints.chain(of_tools).collect();
    let all: BTreeSet<OperationId> = operations::all().map(|operation| operation.id).collect();
    let left: Vec<&str> = all.difference(&offered).map(|operation| operation.as_str()).collect();
    assert_eq!(left, names(ON_THE_LOCAL_SOCKET_ALONE));
}

#[test]
fn every_endpoint_names_its_operations_or_is_said_to_have_none() {
    let own: BTreeSet<String> = mainstay_http::operations_of_endpoints()
        .filter(|(_, operations)| operations.is_empty())
        .map(|(endpoint, _)| endpoint)
        .collect();
    assert_eq!(own.iter().map(String::as_str).collect::<Vec<_>>(), names(ENDPOINTS_OF_THEIR_OWN));
}

#[test]
fn every_tool_names_its_operations_or_is_said_to_have_none() {
    let own: BTreeSet<&str> = mainstay_mcp::operations_of_tools()
        .filter(|(_, operations)| operations.is_empty())
        .map(|(tool, _)| tool)
        .collect();
    assert_eq!(own.into_iter().collect::<Vec<_>>(), names(TOOLS_OF_THEIR_OWN));
}

//! The limits that protect everyone else from one client or one submission. All are configurable (`config.toml`).

use serde::{Deserialize, Serialize};

/// What is accepted and kept at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Code of one eval, in bytes.
    pub code_bytes: usize,
    /// Output kept of one job as it comes, in bytes; of the rest the end is kept, and the job marked.
    pub output_bytes_per_job: usize,
    /// The end that is kept of output over `output_bytes_per_job`, in bytes.
    pub output_end_bytes_per_job: usize,
    /// What is kept of one display, in bytes; the rest is left out, and its text says so.
    pub display_bytes: usize,
    /// What is kept of the displays of one job besides their text, which counts as output, and of what its kernel says to front ends, in bytes.
    pub display_bytes_per_job: usize,
    /// Text kept of one value, or of what the prompt would have printed, in bytes.
    pub value_bytes: usize,
    /// Commands that wait in one session's lane.
    pub lane_commands: usize,
    /// Commands under way in all sessions together.
    pub commands: usize,
    /// Commands that one session accepts in a minute; 0 for as many as come.
    pub session_commands_per_minute: u32,
    /// Commands that all sessions together accept in a minute; 0 for as many as come.
    pub commands_per_minute: u32,
    /// Asks of one session that wait for an answer.
    pub asks: usize,
    /// Bytes of one ask's question, and of an answer, as JSON.
    pub ask_bytes: usize,
    /// Bytes of one answer to code that reads its input, as JSON.
    pub input_bytes: usize,
    /// How long an ask of a running job waits for an answer where the job does not say, in milliseconds.
    pub ask_ms: u64,
    /// Bytes of one entry's label.
    pub label_bytes: usize,
    /// Labels of one session's entries.
    pub labels: usize,
    /// Outcomes that are stored; 0 for as many as the disk takes. None is ever dropped: further commands are refused.
    pub outcomes: u64,
    /// Lines that are kept of what one principal submitted at prompts; the oldest go first. 0 for as many as come.
    pub history_lines: u64,
    /// How many starts of a kind of runner may fail in a row before none is made for a while; 0 for any number.
    pub breaker_failures: u32,
    /// How long none is made then, in milliseconds.
    pub breaker_open_ms: u64,
    /// Commands that one command may depend on.
    pub dependencies: usize,
    /// How long a command whose turn has come may wait for those it depends on, in milliseconds.
    pub dependency_wait_ms: u64,
    /// Sessions that are not at rest at once.
    pub live_sessions: usize,
    /// Connections to the daemon's socket at once.
    pub connections: usize,
    /// Requests of one connection under way at once.
    pub connection_requests: usize,
    /// Subscriptions of one connection at once.
    pub connection_subscriptions: usize,
    /// Streams at once, of server-sent events and over WebSocket.
    pub streams: usize,
    /// How many of them are compressed, each with a third of a megabyte of its own; further ones are sent as they are.
    pub compressed_streams: usize,
    /// Connections to each port at once.
    pub http_connections: usize,
    /// Bytes of one message from a client.
    pub message_bytes: usize,
    /// How long the head of a request over HTTP may take to come, and then its body, in milliseconds. A connection with no request under
    /// way is closed after that time.
    pub request_ms: u64,
    /// How long a browser that was let in by a link stays so, in milliseconds.
    pub browser_ms: u64,
    /// How often the daemon notes how it is, in milliseconds; 0 for never.
    pub health_ms: u64,
    /// How many such notes are kept.
    pub health_notes: usize,
    /// How long a cancelled job may take to yield before its worker is killed, in milliseconds.
    pub cancel_grace_ms: u64,
    /// How long a cancelled job of a Jupyter kernel may take to yield before the kernel is killed, in milliseconds: many look for what to say
    /// of where they were, in all of their libraries.
    pub jupyter_cancel_grace_ms: u64,
    /// How long a cancelled job of an agent may take to yield before its process is killed, in milliseconds.
    pub agent_cancel_grace_ms: u64,
    /// How long an agent may have nothing to do before its process is ended, in milliseconds; 0 for as long as it likes.
    pub agent_idle_ms: u64,
    /// How long an agent's model may say nothing while it works before its turn fails, in milliseconds; 0 for as long as it likes.
    pub agent_silence_ms: u64,
    /// How long a client of the pi protocol waits for a prompt, a compaction or a line of a shell, in milliseconds; 0 for as long as it takes.
    pub pi_turn_ms: u64,
    /// After how long a call over MCP goes on as a task where its client knows tasks, in milliseconds.
    pub task_after_ms: u64,
    /// What is kept in memory of all that streams of MCP over HTTP told, for clients that lose a connection, in bytes.
    /// Where it is too much, that goes first which is of the client of which most is kept.
    pub mcp_kept_bytes: usize,
    /// Streams up to which those are known too that nobody reads and of which nothing is kept.
    pub mcp_streams: usize,
    /// Results of calls over MCP that ended behind their answer, kept at hand until they are asked for; the log has them all.
    pub mcp_results: usize,
    /// How fast a client over MCP may decline an ask, in milliseconds, before that counts as one that no person has seen.
    pub mcp_decline_ms: u64,
    /// How long running jobs may take to end when the daemon is stopped, in milliseconds.
    pub drain_ms: u64,
    /// How long it may take to get a kernel ready for its first worker, such as building it, in milliseconds.
    pub prepare_ms: u64,
    /// How long a worker may take to become ready, replay left out, in milliseconds.
    pub worker_start_ms: u64,
    /// How long it may take to find out what a session's project is made of before its worker starts without, in milliseconds.
    pub project_ms: u64,
    /// How long the scripts may take that run when a worker starts before it is started without, in milliseconds; no more than a third of
    /// what it may take to become ready.
    pub profile_ms: u64,
    /// How long a replay may take, in milliseconds.
    pub replay_ms: u64,
    /// How many submissions a replay lets a kernel run together at most, where they only define; 1 lets it run each alone.
    pub replay_batch: usize,
    /// How long a check, completion or exploration may take, in milliseconds.
    pub query_ms: u64,
    /// How long files must be left alone before what changed is looked at, in milliseconds: a build writes many.
    pub watch_quiet_ms: u64,
    /// How long that may be put off by files that go on changing, in milliseconds.
    pub watch_longest_ms: u64,
    /// How many folders are watched.
    pub watch_folders: usize,
    /// How long to wait before the first replacement of a lost worker, in milliseconds; doubled for each further one.
    pub restart_first_ms: u64,
    /// The longest such wait, in milliseconds.
    pub restart_longest_ms: u64,
    /// How many workers are replaced within `restart-window-ms` before the session is Faulted.
    pub restart_budget: u32,
    /// The span in which lost workers are counted, in milliseconds.
    pub restart_window_ms: u64,
    /// How long a worker must have lived for earlier losses to be forgotten, in milliseconds.
    pub restart_stable_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            code_bytes: 4 * 1024 * 1024,
            output_bytes_per_job: 1024 * 1024,
            output_end_bytes_per_job: 64 * 1024,
            display_bytes: 1024 * 1024,
            display_bytes_per_job: 4 * 1024 * 1024,
            value_bytes: 256 * 1024,
            lane_commands: 64,
            commands: 10_000,
            session_commands_per_minute: 0,
            commands_per_minute: 0,
            asks: 32,
            ask_bytes: 64 * 1024,
            input_bytes: 15 * 1024 * 1024,
            ask_ms: 600_000,
            label_bytes: 200,
            labels: 1_000,
            outcomes: 0,
            history_lines: 10_000,
            breaker_failures: 5,
            breaker_open_ms: 30_000,
            dependencies: 32,
            dependency_wait_ms: 30_000,
            live_sessions: 64,
            connections: 256,
            connection_requests: 256,
            connection_subscriptions: 64,
            streams: 10_000,
            compressed_streams: 256,
            http_connections: 16_384,
            message_bytes: 16 * 1024 * 1024,
            request_ms: 30_000,
            browser_ms: 2_592_000_000,
            health_ms: 5_000,
            health_notes: 720,
            cancel_grace_ms: 250,
            jupyter_cancel_grace_ms: 5_000,
            agent_cancel_grace_ms: 5_000,
            agent_idle_ms: 600_000,
            agent_silence_ms: 300_000,
            pi_turn_ms: 300_000,
            task_after_ms: 10_000,
            mcp_kept_bytes: 16 * 1024 * 1024,
            mcp_streams: 4_096,
            mcp_results: 64,
            mcp_decline_ms: 750,
            drain_ms: 5_000,
            prepare_ms: 600_000,
            worker_start_ms: 60_000,
            project_ms: 600_000,
            profile_ms: 20_000,
            replay_ms: 600_000,
            replay_batch: 30,
            query_ms: 30_000,
            watch_quiet_ms: 300,
            watch_longest_ms: 5_000,
            watch_folders: 1_024,
            restart_first_ms: 1_000,
            restart_longest_ms: 30_000,
            restart_budget: 5,
            restart_window_ms: 300_000,
            restart_stable_ms: 60_000,
        }
    }
}

//! The limits that protect everyone else from one client or one submission. All are configurable (`config.toml`).

use serde::{Deserialize, Serialize};

/// What the daemon accepts, stores and waits for at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// The largest code of one eval, in bytes.
    pub code_bytes: usize,
    /// How much output of one job is stored while it runs, in bytes. Of output beyond it only the end is
    /// stored, and the job is marked as truncated.
    pub output_bytes_per_job: usize,
    /// How much of the end is stored when a job prints more than `output-bytes-per-job`, in bytes.
    pub output_end_bytes_per_job: usize,
    /// The largest single display (a table, a picture), in bytes. A larger one is left out, and its text
    /// says so.
    pub display_bytes: usize,
    /// How much of all displays and widget messages of one job is stored, in bytes. Their text counts as
    /// output instead.
    pub display_bytes_per_job: usize,
    /// How much text is stored of one value, or of what the prompt would have printed, in bytes.
    pub value_bytes: usize,
    /// How many commands may wait in the queue of one session.
    pub lane_commands: usize,
    /// How many commands may be under way in all sessions together.
    pub commands: usize,
    /// How many commands one session accepts in a minute; 0 means no limit.
    pub session_commands_per_minute: u32,
    /// How many commands all sessions together accept in a minute; 0 means no limit.
    pub commands_per_minute: u32,
    /// How many asks of one session may be open at once.
    pub asks: usize,
    /// How many principals an ask may want the same answer from.
    pub quorum: u32,
    /// How many principals there are that may answer at all. None where others may come whom the settings do not name; it is no setting of its own.
    #[serde(skip)]
    pub answering_principals: Option<u32>,
    /// The largest question, and the largest answer, as JSON, in bytes.
    pub ask_bytes: usize,
    /// The largest single answer to code that reads its standard input, as JSON, in bytes.
    pub input_bytes: usize,
    /// How long an ask of running code waits for an answer when the code does not say, in milliseconds.
    pub ask_ms: u64,
    /// The longest label of an entry, in bytes.
    pub label_bytes: usize,
    /// How many entries of one session may have a label.
    pub labels: usize,
    /// How many schedules of one principal may wait for a run.
    pub schedules: usize,
    /// The least time between two runs of a schedule, in milliseconds.
    pub schedule_interval_ms: u64,
    /// How many outcomes are stored; 0 means no limit. No outcome is ever dropped: when the limit is
    /// reached, further commands are rejected.
    pub outcomes: u64,
    /// How many prompt lines are stored for one principal; 0 means no limit. The oldest lines are removed
    /// first.
    pub history_lines: u64,
    /// After how many failures in a row the daemon stops trying for a while: failed starts of a kernel, or
    /// turns that a model provider failed; 0 means never. Errors in the request itself, such as HTTP 400,
    /// do not count.
    pub breaker_failures: u32,
    /// How long the daemon waits after `breaker-failures` failures before it tries again, in milliseconds.
    pub breaker_open_ms: u64,
    /// How long a change that the store cannot take now (its disk is full or cannot be written) is tried
    /// again before its session is loaded anew, in milliseconds.
    pub store_wait_ms: u64,
    /// How many changes of one session may wait for a store that cannot take them; further commands are
    /// rejected.
    pub store_queue: u64,
    /// How many commands one command may depend on.
    pub dependencies: usize,
    /// How long a command at the head of its queue waits for the commands it depends on, in milliseconds.
    pub dependency_wait_ms: u64,
    /// How many sessions may have a worker at once.
    pub live_sessions: usize,
    /// How many clients may be connected to the local socket at once, and how many MCP calls may be under
    /// way over HTTP, of which each principal gets a share.
    pub connections: usize,
    /// How many requests of one connection, or MCP calls of one client, may be under way at once.
    pub connection_requests: usize,
    /// How many subscriptions one connection may have.
    pub connection_subscriptions: usize,
    /// How many event streams (server-sent events and WebSocket) may be open at once.
    pub streams: usize,
    /// How many of the open streams are compressed for clients that accept gzip. Each needs a third of a
    /// megabyte; further streams are sent uncompressed.
    pub compressed_streams: usize,
    /// How many connections each HTTP port accepts. The daemon uses at most half of the files it may open
    /// (`ulimit -Hn`).
    pub http_connections: usize,
    /// How many connections from other machines may be open at once whose clients have not shown valid
    /// credentials yet; at most half of those that their port accepts. For a further one, the address that
    /// has most of them loses its oldest.
    pub unauthenticated_connections: usize,
    /// How many of them one address may have. An IPv6 address is counted with all that have the same first
    /// 64 bits.
    pub unauthenticated_connections_per_address: usize,
    /// The largest message from a client, in bytes.
    pub message_bytes: usize,
    /// How long the head of an HTTP request may take to arrive, and then its body, in milliseconds. Idle
    /// connections are closed after the same time.
    pub request_ms: u64,
    /// How long a browser that was let in by a link stays signed in, in milliseconds.
    pub browser_ms: u64,
    /// How often the daemon records its health for the page's plots, in milliseconds; 0 means never.
    pub health_ms: u64,
    /// How many health records are kept.
    pub health_notes: usize,
    /// How long cancelled code may take to stop before its worker is killed, in milliseconds.
    pub cancel_grace_ms: u64,
    /// How long cancelled code in a Jupyter kernel may take to stop before the kernel is killed, in
    /// milliseconds. Many kernels search all of their libraries for the traceback.
    pub jupyter_cancel_grace_ms: u64,
    /// How long a cancelled turn of an agent may take to stop before its process is killed, in
    /// milliseconds.
    pub agent_cancel_grace_ms: u64,
    /// The longest time that a cancel may give code or a turn to stop, in milliseconds.
    pub cancel_longest_ms: u64,
    /// How long a job may hold a permission that people give it for a time, with all its extensions, in
    /// milliseconds.
    pub lease_longest_ms: u64,
    /// How long an agent may be idle before its process is ended, in milliseconds; 0 means no limit.
    pub agent_idle_ms: u64,
    /// How long a model may send nothing during a turn before the turn fails, in milliseconds; 0 means no
    /// limit.
    pub agent_silence_ms: u64,
    /// How long a client of the pi protocol waits for a prompt, a compaction or a shell command, in
    /// milliseconds; 0 means no limit.
    pub pi_turn_ms: u64,
    /// After how long an MCP call continues as a task, for clients that know tasks, in milliseconds.
    pub task_after_ms: u64,
    /// The size of the replay buffer of MCP over HTTP, for clients that reconnect, in bytes. When it is
    /// full, the oldest messages of the client that uses most of it are dropped.
    pub mcp_kept_bytes: usize,
    /// How many MCP streams are remembered that nobody reads and of which the replay buffer holds nothing.
    pub mcp_streams: usize,
    /// How many results of MCP calls that ended after their answer are kept in memory until they are
    /// fetched. The log has them all.
    pub mcp_results: usize,
    /// How fast an MCP client may decline an ask, in milliseconds, before the daemon concludes that no
    /// person has seen it.
    pub mcp_decline_ms: u64,
    /// How long running jobs may take to end when the daemon is stopped, in milliseconds.
    pub drain_ms: u64,
    /// How long it may take to prepare a kernel for its first worker, such as building the F# worker, in
    /// milliseconds.
    pub prepare_ms: u64,
    /// How long a worker may take to become ready, without replay, in milliseconds. A kernel that takes
    /// longer is started again; an agent is not.
    pub worker_start_ms: u64,
    /// How long reading a session's project may take before the session starts without it, in milliseconds.
    pub project_ms: u64,
    /// How long startup scripts may take before the worker is started without them, in milliseconds; at
    /// most a third of `worker-start-ms`.
    pub profile_ms: u64,
    /// How long a replay may take, in milliseconds.
    pub replay_ms: u64,
    /// How many submissions that only define something a replay may compile together; 1 compiles each
    /// alone.
    pub replay_batch: usize,
    /// How much of the values of one Python session is kept, so that a rebuilt session need not compute them again, in bytes; 0 keeps
    /// none.
    pub snapshot_bytes: u64,
    /// How long a check, a completion or an exploration may take, in milliseconds.
    pub query_ms: u64,
    /// How long watched files must be unchanged before the daemon looks at them, in milliseconds, since a
    /// build writes many.
    pub watch_quiet_ms: u64,
    /// How long sources of a project must be unchanged before they are put into the code that runs, in milliseconds, since an editor writes
    /// a file in several steps.
    pub swap_quiet_ms: u64,
    /// The longest that the look at changed files is put off while they keep changing, in milliseconds.
    pub watch_longest_ms: u64,
    /// How many folders are watched. Further folders are looked at after each eval.
    pub watch_folders: usize,
    /// The wait before a lost worker is first replaced, in milliseconds; it doubles with each further loss.
    pub restart_first_ms: u64,
    /// The longest wait before a lost worker is replaced, in milliseconds.
    pub restart_longest_ms: u64,
    /// How many workers are replaced within `restart-window-ms` before the session is Faulted.
    pub restart_budget: u32,
    /// The period in which `restart-budget` counts lost workers, in milliseconds.
    pub restart_window_ms: u64,
    /// How long a worker must live for earlier losses to be forgotten, in milliseconds.
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
            quorum: 16,
            answering_principals: None,
            ask_bytes: 64 * 1024,
            input_bytes: 15 * 1024 * 1024,
            ask_ms: 600_000,
            label_bytes: 200,
            labels: 1_000,
            schedules: 100,
            schedule_interval_ms: 10_000,
            outcomes: 0,
            history_lines: 10_000,
            breaker_failures: 5,
            breaker_open_ms: 30_000,
            store_wait_ms: 10_000,
            store_queue: 1_000,
            dependencies: 32,
            dependency_wait_ms: 30_000,
            live_sessions: 64,
            connections: 256,
            connection_requests: 256,
            connection_subscriptions: 64,
            streams: 10_000,
            compressed_streams: 256,
            http_connections: 16_384,
            unauthenticated_connections: 1_024,
            unauthenticated_connections_per_address: 64,
            message_bytes: 16 * 1024 * 1024,
            request_ms: 30_000,
            browser_ms: 2_592_000_000,
            health_ms: 5_000,
            health_notes: 720,
            cancel_grace_ms: 250,
            jupyter_cancel_grace_ms: 5_000,
            agent_cancel_grace_ms: 5_000,
            cancel_longest_ms: 600_000,
            lease_longest_ms: 3_600_000,
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
            snapshot_bytes: 256 * 1024 * 1024,
            query_ms: 30_000,
            watch_quiet_ms: 300,
            swap_quiet_ms: 10,
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

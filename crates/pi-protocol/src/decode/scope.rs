//! Which types of commands are about the server, and which about a session.

/// What a kind of command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The server, or one of its sessions as a whole.
    Server,
    /// What a session does.
    Session,
    /// The type is not known.
    Unknown,
}

impl Scope {
    /// Returns the scope of a type of command.
    pub(super) fn of(kind: &str) -> Self {
        match kind {
            "list_sessions"
            | "create_session"
            | "delete_session"
            | "switch_session"
            | "get_metrics"
            | "health_check"
            | "get_startup_recovery"
            | "get_command_history"
            | "list_stored_sessions"
            | "load_session" => Self::Server,
            "extension_ui_response"
            | "get_available_models"
            | "get_commands"
            | "get_skills"
            | "get_tools"
            | "list_session_files"
            | "prompt"
            | "steer"
            | "follow_up"
            | "abort"
            | "get_state"
            | "get_messages"
            | "set_model"
            | "cycle_model"
            | "set_thinking_level"
            | "cycle_thinking_level"
            | "compact"
            | "abort_compaction"
            | "set_auto_compaction"
            | "set_auto_retry"
            | "abort_retry"
            | "bash"
            | "abort_bash"
            | "get_session_stats"
            | "set_session_name"
            | "export_html"
            | "new_session"
            | "switch_session_file"
            | "fork"
            | "get_fork_messages"
            | "get_tree"
            | "navigate_tree"
            | "get_last_assistant_text"
            | "get_context_usage" => Self::Session,
            _ => Self::Unknown,
        }
    }
}

//! The program: its real binary with real compilers, kills, browsers, coding agents and notebooks. Each subject is a module.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod agent_clients;
mod agent_command;
mod agent_prompt;
mod agent_task;
mod ask_command;
#[cfg(target_os = "linux")]
mod background;
mod bad_code;
mod begin_anew;
mod cancel_command;
mod command_command;
mod compiler_options;
#[cfg(feature = "failpoints")]
mod crash;
mod daemon;
mod displays;
mod doctor_command;
mod eval_command;
mod eval_requests;
mod events_command;
mod examples;
mod folder_projects;
mod help;
mod history_command;
mod import_command;
mod input;
mod jupyter_kernel;
mod kept_values;
mod kernel_command;
mod kinds;
mod lost_clients;
mod lost_daemons;
mod mcp_bridge;
mod mcp_clients;
mod mcp_doctor;
mod mcp_install;
mod mcp_restart;
mod mcp_tasks;
mod notebooks;
mod openapi_clients;
mod outliving;
mod pi_agents;
mod pi_conversations;
mod project_runtime;
mod projects;
mod prompt;
mod readme;
mod refresh_command;
mod reload;
mod restart;
mod run_command;
#[cfg(feature = "failpoints")]
mod scripted_agents;
mod secrets;
mod session_command;
mod session_environment;
mod store_commands;
mod support;
mod telemetry;
mod test_command;
mod transcript_commands;
mod warm_up;
mod watch;
mod web;
mod withheld;

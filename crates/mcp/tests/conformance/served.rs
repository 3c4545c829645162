//! The fixtures behind the product's own way over HTTP, on a port of their own, without a token.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use mainstay_engine::Engine;
use mainstay_gateway::Daemon;
use mainstay_gateway::port;
use mainstay_gateway::tokens::Tokens;
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_mcp::{McpDaemon, http_routes_of};
use mainstay_model::{Access, Limits, Timestamp};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::kernel::Steps;
use crate::server::Fixtures;

/// After how long a call becomes a task, in milliseconds: long enough for code that asks at once to have asked.
pub(crate) const TASK_AFTER_MS: u64 = 500;

/// A server that lasts as long as this does.
pub(crate) struct Served {
    pub(crate) url: String,
    _folder: TempDir,
}

impl Served {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (listener, port) = port::listen(0).await.unwrap();
        let limits = Limits {
            task_after_ms: TASK_AFTER_MS,
            cancel_grace_ms: 1_000,
            drain_ms: 100,
            ..Limits::default()
        };
        let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
        let daemon = Daemon {
            engine: Engine::open(Arc::new(log), vec![Arc::new(Steps)], limits.clone()).await.unwrap(),
            tokens: Arc::new(Tokens::new("secret", [])),
            version: "0.0.0",
            fingerprint: "sha256:0".into(),
            port,
            remote: None,
            own_ports: Arc::default(),
            links: Arc::default(),
            started_at: Timestamp::now(),
            kind_resolver: Default::default(),
            kinds: Default::default(),
            home: folder.path().into(),
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
            answering: TaskTracker::new(),
            begins_anew: Arc::default(),
        };
        let (work, broken_tasks) = (folder.path().to_owned(), Arc::new(Mutex::new(HashSet::new())));
        let routes = http_routes_of(&McpDaemon::new(daemon.clone(), Arc::default()), move |ours| Fixtures {
            ours,
            folder: work.clone(),
            broken_tasks: Arc::clone(&broken_tasks),
        });
        let router = routes.layer(from_fn(let_in));
        tokio::spawn(port::serve_only(listener, daemon, router));
        Self { url: format!("http://127.0.0.1:{port}/mcp"), _folder: folder }
    }
}

/// Where the product requires a token, which the suite has not.
async fn let_in(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Access::local());
    next.run(request).await
}

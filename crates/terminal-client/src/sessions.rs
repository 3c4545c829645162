//! Finding, creating and starting sessions, with progress in view of the user.

use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::{Error, SessionState};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{CreateSession, OpenSession, Opened, SettleSession, StartSession};
use mainstay_protocol::view::SessionView;
use mainstay_runner::WarmUpPhase;
use mainstay_terminal as terminal;
use mainstay_terminal::ProgressLine;

use crate::kernels;

/// How long a session may warm up while a client waits.
const WARM_UP: Duration = Duration::from_secs(600);

/// How long a session may warm up before the user is told how far it is.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// From then on it is said this often how far it is.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// A session that was found or created for a command.
pub struct OpenedSession {
    /// The session that was found or created.
    pub session: SessionView,
    /// Whether it was created, had to be started, or was still warming up.
    pub was_idle: bool,
}

/// Asks the daemon to find or create a session. Where what runs its kind is missing, that is made ready in view of the user first.
pub async fn open(home: &Home, client: &Client, asked: OpenSession) -> Result<OpenedSession, Error> {
    let mut opened = client.call(asked.clone()).await?;
    if let Opened::Unready { kind, working_directory } = &opened {
        let folder = Path::new(working_directory);
        let mut asked = OpenSession { even_unready: true, ..asked };
        let mut kind = kind.clone();
        if asked.session.is_none() && asked.search.kinds.is_empty() {
            kind = kernels::chosen_kind(home, &kind, folder).await?;
            asked.search.kinds = vec![kind.clone()];
        }
        kernels::make_ready(home, &kind, folder).await?;
        opened = client.call(asked).await?;
    }
    match opened {
        Opened::Found { session, was_idle } => Ok(OpenedSession { session: *session, was_idle }),
        Opened::Created { session } => {
            kernels::tell_passed_over(home, &session.kind, Path::new(&session.working_directory));
            tell_dropped(&session);
            Ok(OpenedSession { session: *session, was_idle: true })
        }
        Opened::Unready { kind, .. } => Err(Error::KernelUnknown { kind }),
    }
}

/// Creates a session. What its kind needs is made ready first, in view of the user.
pub async fn create(home: &Home, client: &Client, create: CreateSession) -> Result<SessionView, Error> {
    let folder = Path::new(&create.working_directory);
    kernels::tell_passed_over(home, &create.kind, folder);
    kernels::make_ready(home, &create.kind, folder).await?;
    let created = client.call(create).await?;
    tell_dropped(&created);
    Ok(created)
}

/// Says what of its creator's environment a new session does not have.
fn tell_dropped(created: &SessionView) {
    if let Some(dropped) = &created.dropped_environment {
        terminal::note(&format!("warning: {dropped}"));
    }
}

/// Starts an idle session, and waits until it takes commands; says how far it is where that takes longer than a moment. An
/// agent rests until it has something to do.
pub async fn settle(client: &Client, session: SessionView) -> Result<SessionView, Error> {
    bring_up(client, session, None).await
}

/// The same, and waits no longer than another moment where a worker is there already and is only given its definitions back: all
/// but running code can be done meanwhile.
pub async fn bring_into_use(client: &Client, session: SessionView) -> Result<SessionView, Error> {
    bring_up(client, session, Some(PATIENCE)).await
}

async fn bring_up(
    client: &Client,
    session: SessionView,
    replay: Option<Duration>,
) -> Result<SessionView, Error> {
    if session.is_agent() {
        return Ok(session);
    }
    let reference = session.session.to_string();
    if session.state == SessionState::Uninitialized.name() {
        match client.call(StartSession { session: reference.clone(), sent: Sent::default() }).await {
            // Someone else has started it just now.
            Err(Error::NotOffered { .. }) => {}
            started => drop(started?),
        }
    }
    let view = client.call(SettleSession { session: reference, timeout_ms: milliseconds(PATIENCE) }).await?;
    until_settled(client, view, replay).await
}

/// Waits until a session that was started takes commands, and says how far it is.
pub async fn until_settled(
    client: &Client,
    mut view: SessionView,
    replay: Option<Duration>,
) -> Result<SessionView, Error> {
    if view.is_agent() || has_settled(&view) {
        return Ok(view);
    }
    let reference = view.session.to_string();
    let wait = |limit: Duration| {
        client.call(SettleSession { session: reference.clone(), timeout_ms: milliseconds(limit) })
    };
    terminal::note(&format!("{} warms up …", view.name));
    let (line, until) = (ProgressLine::default(), Instant::now() + WARM_UP);
    let (mut replays_since, mut builds) = (None, false);
    while !has_settled(&view) && Instant::now() < until {
        if let Some(progress) = view.warm_up {
            line.show(&progress.to_string());
            // Off a terminal nobody sees that line, and a build may take minutes.
            if progress.phase == WarmUpPhase::Build && !std::mem::replace(&mut builds, true) {
                line.note(&format!("{progress}, which was not built yet …"));
            }
            // What comes before the replay, as reading a project, is done without a worker that could be asked.
            if progress.phase == WarmUpPhase::Replay {
                let since = replays_since.get_or_insert_with(Instant::now);
                if replay.is_some_and(|patience| since.elapsed() >= patience) {
                    break;
                }
            }
        }
        view = wait(BETWEEN_LOOKS).await?;
    }
    Ok(view)
}

/// Whether a session takes code, or cannot be brought to.
pub fn has_settled(session: &SessionView) -> bool {
    session.state != SessionState::WarmingUp.name() && session.state != SessionState::Uninitialized.name()
}

/// Returns a duration as requests name it.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

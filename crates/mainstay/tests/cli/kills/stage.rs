//! A home with two sessions of a language: one whose worker nothing may end, and one whose worker stories end.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::clients::Clients;
use super::daemons::Daemons;
use super::language::Language;
use super::plan::{Plan, Random};
use super::stories::{Scene, Story};
use super::verdict;
use crate::support::World;

/// A cancel spans the death of a daemon, and yet does not keep a story waiting that never stops.
const LIMITS: &str = "[limits]\ncancel-grace-ms = 1000\njupyter-cancel-grace-ms = 1000\n";

/// A home, its daemons and its sessions.
pub(super) struct Stage {
    /// Before the world: its daemon is gone then, and what it left is ended by the world.
    daemons: Daemons,
    world: World,
    language: Language,
    /// The session that goes on, and the one that is rebuilt.
    sessions: [OfSession; 2],
    /// How long stories take where nothing is killed.
    lengths: HashMap<Story, Duration>,
    played: u64,
}

/// What is known of a session.
#[derive(Clone, Default)]
struct OfSession {
    id: String,
    worker: Value,
    last_seq: u64,
    /// The last number that it has printed.
    total: u64,
}

impl Stage {
    pub(super) fn begin(language: Language, world: World) -> Self {
        std::fs::write(world.home().join("config.toml"), LIMITS).unwrap();
        let mut daemons = Daemons::default();
        daemons.start(&world, 1);
        let clients = Clients { world: &world };
        let sessions = ["goes-on", "is-rebuilt"].map(|name| {
            let params = json!({ "command": name, "kind": language.kind(), "name": name, "workingDirectory": world.work() });
            let created = clients.done("session/create", &params).unwrap();
            let id = created["session"].as_str().unwrap().to_owned();
            let defined = clients.eval(&id, &format!("{name}-defined"), language.definitions()).unwrap();
            assert_eq!(defined["ending"], "completed", "{defined}");
            look(&clients, OfSession { id, ..OfSession::default() }).unwrap()
        });
        Self { daemons, world, language, sessions, lengths: HashMap::new(), played: 0 }
    }

    /// Plays a story while daemons are killed, and says what was done.
    pub(super) fn play(&mut self, seed: u64, random: &mut Random) -> Result<String, String> {
        let story = random.pick(&Story::all(self.language));
        let length = match self.lengths.get(&story) {
            Some(length) => *length,
            None => {
                let began = Instant::now();
                self.play_with(story, &Plan::quiet())
                    .map_err(|fault| format!("{story:?}, without a kill: {fault}"))?;
                *self.lengths.entry(story).or_insert(began.elapsed())
            }
        };
        let plan = Plan::of(random, length);
        self.play_with(story, &plan)
            .map(|()| format!("{story:?} {plan:?}"))
            .map_err(|fault| format!("{story:?} with seed {seed}, {plan:?}: {fault}"))
    }

    fn play_with(&mut self, story: Story, plan: &Plan) -> Result<(), String> {
        self.played += 1;
        let at = usize::from(story.has_worker_ended());
        let Self { world, daemons, sessions, language, played, .. } = self;
        let clients = Clients { world };
        let session = sessions[at].clone();
        let scene = Scene {
            clients: &clients,
            language: *language,
            session: &session.id,
            after: session.last_seq,
            total: session.total,
            name: format!("{story:?}-{played}"),
        };
        let told = thread::scope(|scope| {
            let playing = scope.spawn(|| story.play(&scene));
            daemons.suffer(world, plan);
            playing.join().unwrap_or_else(|_| Err("the story came to no end".to_owned()))
        });
        let checked = told.and_then(|told| {
            let events = clients.events(&session.id, session.last_seq)?;
            verdict::check(&events, session.last_seq, &told.expected, story.has_worker_ended())?;
            for expected in &told.expected {
                let view = clients.done("command/get", &json!({ "command": expected.command }))?;
                if view["state"] != "ended" {
                    return Err(format!("`{}` has no outcome: {view}", expected.command));
                }
            }
            Ok(told.counted)
        });
        let counted = checked.map_err(|fault| format!("{fault}\n{}", told_by(&clients, &session)))?;
        sessions[at].total += counted;
        daemons.settle(world)?;
        are_as_before(&clients, sessions, *played, at)
    }
}

/// Whether the sessions have their workers, and count on from where they were.
fn are_as_before(
    clients: &Clients<'_>,
    sessions: &mut [OfSession; 2],
    played: u64,
    at: usize,
) -> Result<(), String> {
    for (number, session) in sessions.iter_mut().enumerate() {
        if number == 0 {
            let total = clients.value(&session.id, &format!("total-{played}"), "total")?;
            if total != session.total.to_string() {
                return Err(format!("it has counted to {total}, and should have to {}", session.total));
            }
        }
        let now = look(clients, session.clone())?;
        let is_other = now.worker != session.worker;
        if is_other && (number == 0 || at == 0) {
            let (before, now) = (&session.worker, &now.worker);
            return Err(format!("the worker of session {number} was {before}, and is {now}"));
        }
        *session = now;
    }
    match clients.world.shim_pids().len() {
        shims if shims == sessions.len() => Ok(()),
        shims => Err(format!("there are {shims} shims")),
    }
}

/// The session as it is now.
fn look(clients: &Clients<'_>, session: OfSession) -> Result<OfSession, String> {
    let view = clients.done("session/get", &json!({ "session": session.id }))?;
    let last_seq = view["lastSeq"].as_u64().unwrap();
    Ok(OfSession { worker: view["worker"]["pid"].clone(), last_seq, ..session })
}

/// The events since the story began, a line each.
fn told_by(clients: &Clients<'_>, session: &OfSession) -> String {
    let events = clients.events(&session.id, session.last_seq);
    events.map_or_else(|fault| fault, |events| events.iter().map(|event| format!("{event}\n")).collect())
}

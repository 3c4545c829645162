//! Builds of an F# project while daemons are killed: each is begun once and done once, and the session has what was built.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::clients::Clients;
use super::daemons::Daemons;
use super::plan::{Plan, Random};
use super::verdict::{self, Expected, Prints};
use crate::support::World;

const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Money.fs" /></ItemGroup>
</Project>"#;

/// What a build prints where all goes well.
const BUILDS: &str = "building 1 project with msbuild\n";

/// A project, and a session for it.
pub(super) struct Project {
    daemons: Daemons,
    world: World,
    session: String,
    last_seq: u64,
    builds: u64,
    length: Option<Duration>,
}

impl Project {
    pub(super) fn begin() -> Self {
        let world = World::new();
        std::fs::write(world.work().join("Shop.fsproj"), PROJECT).unwrap();
        write(&world, 0);
        let mut daemons = Daemons::default();
        daemons.start(&world, 1);
        let clients = Clients { world: &world };
        let folder = world.work();
        let params = json!({ "command": "create", "kind": "fsharp", "workingDirectory": folder, "project": folder.join("Shop.fsproj") });
        let created = clients.done("session/create", &params).unwrap();
        let session = created["session"].as_str().unwrap().to_owned();
        let price = clients.value(&session, "price", "Money.price").unwrap();
        assert_eq!(price, "0");
        let last_seq = last_seq(&clients, &session).unwrap();
        Self { daemons, world, session, last_seq, builds: 0, length: None }
    }

    /// Builds while daemons are killed, and says what was done.
    pub(super) fn play(&mut self, seed: u64, random: &mut Random) -> Result<String, String> {
        let length = match self.length {
            Some(length) => length,
            None => {
                let began = Instant::now();
                self.build(&Plan::quiet()).map_err(|fault| format!("without a kill: {fault}"))?;
                *self.length.insert(began.elapsed())
            }
        };
        let plan = Plan::of(random, length);
        self.build(&plan)
            .map(|()| format!("a build, {plan:?}"))
            .map_err(|fault| format!("a build with seed {seed}, {plan:?}: {fault}"))
    }

    fn build(&mut self, plan: &Plan) -> Result<(), String> {
        self.builds += 1;
        let Self { daemons, world, session, last_seq: before, builds, .. } = self;
        let (clients, id) = (Clients { world }, format!("build-{builds}"));
        write(world, *builds);
        let params = json!({ "session": session, "command": id, "work": "rebuild" });
        let told = thread::scope(|scope| {
            let running = scope.spawn(|| clients.done("session/work", &params));
            daemons.suffer(world, plan);
            running.join().unwrap_or_else(|_| Err("the build came to no end".to_owned()))
        });
        let price = told.and_then(|_| clients.value(session, &format!("price-{builds}"), "Money.price"));
        let events = clients.events(session, *before)?;
        let told = || events.iter().map(|event| format!("{event}\n")).collect::<String>();
        let price = price.map_err(|fault| format!("{fault}\n{}", told()))?;
        if price != builds.to_string() {
            return Err(format!("the session has {price} of the build {builds}\n{}", told()));
        }
        let expected = [
            Expected { command: id, end: "jobEnded", prints: Prints::Exactly(BUILDS.to_owned()) },
            Expected::completed(format!("price-{builds}"), ""),
        ];
        verdict::check(&events, *before, &expected, true).map_err(|fault| format!("{fault}\n{}", told()))?;
        *before = last_seq(&clients, session)?;
        daemons.settle(world)
    }
}

fn write(world: &World, price: u64) {
    std::fs::write(world.work().join("Money.fs"), format!("module Money\nlet price = {price}\n")).unwrap();
}

fn last_seq(clients: &Clients<'_>, session: &str) -> Result<u64, String> {
    let view = clients.done("session/get", &json!({ "session": session }))?;
    Ok(view["lastSeq"].as_u64().unwrap())
}

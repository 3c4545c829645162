//! What a real worker brings in before a session's own code: assemblies of a project, and scripts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mainstay_kernel::{OpenedNames, Project, ShadowCopy, StartupContext};
use mainstay_model::{JobEnding, LoadedProject, Startup};
use mainstay_runner::{Report, WarmUpPhase};

use super::{Session, compile, compile_with};

const CORE: &str = "namespace Shop
type Item = { Name: string; Price: int }
[<RequireQualifiedAccess>]
module Money =
    let euros (cents: int) = sprintf \"%d.%02d\" (cents / 100) (cents % 100)
module internal Hidden =
    let secret = 1
";

const CART: &str = "namespace Shop.Carts
open Shop
module Cart =
    let total (items: Item list) = items |> List.sumBy (fun item -> item.Price)
    module Rules =
        let free = 5000
module ``Odd name`` =
    let odd = 3
";

/// A folder with a project of two assemblies, as it is and as its copies are.
pub(super) struct Shop {
    folder: tempfile::TempDir,
    own: Vec<ShadowCopy>,
}

impl Shop {
    pub(super) async fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (bin, copies) = (folder.path().join("bin"), folder.path().join("copies"));
        std::fs::create_dir(&bin).unwrap();
        std::fs::create_dir(&copies).unwrap();
        compile(&bin.join("Core.dll"), CORE).await;
        compile_with(&bin.join("Cart.dll"), CART, &[&bin.join("Core.dll")]).await;
        let own = ["Core.dll", "Cart.dll"].map(|name| {
            std::fs::copy(bin.join(name), copies.join(name)).unwrap();
            ShadowCopy { origin: bin.join(name), copy: copies.join(name) }
        });
        Self { folder, own: own.into() }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(super) fn beginning(&self) -> StartupContext {
        let known = LoadedProject { path: "/code/Shop.fsproj".to_owned(), ..LoadedProject::default() };
        let project = Project { known, own: self.own.clone(), opens: OpenedNames::All, ..Project::default() };
        StartupContext { project: Some(project), ..StartupContext::in_folder(self.folder.path()) }
    }
}

fn startup(session: &Session) -> Startup {
    *session.worker.runner.process().info().startup.unwrap()
}

#[tokio::test]
async fn by_default_what_a_file_of_the_project_sees_is_open() {
    let shop = Shop::build().await;
    let opening = |opens| {
        let mut beginning = shop.beginning();
        beginning.project.as_mut().unwrap().opens = opens;
        beginning
    };
    let mut session = Session::begin(opening(OpenedNames::default()), Vec::new()).await;
    assert_eq!(startup(&session).project.unwrap().opened, ["Shop", "Shop.Carts"]);
    assert_eq!(session.value("Cart.total [ { Name = \"tea\"; Price = 250 } ]").await, "250");
    assert_eq!(session.value("Money.euros 250").await, "\"2.50\"");
    let mut session = Session::begin(opening(OpenedNames::None), Vec::new()).await;
    assert_eq!(startup(&session).project.unwrap().opened, Vec::<String>::new());
    assert_eq!(session.value("Shop.Money.euros 250").await, "\"2.50\"");
}

#[tokio::test]
async fn a_project_is_brought_in_without_other_processes() {
    let shop = Shop::build().await;
    assert_waited_for_none(&Session::begin(shop.beginning(), Vec::new()).await);
}

/// Asserts that the worker has waited for no process of its own: the compiler would ask `dotnet --version` which SDK a folder has.
pub(super) fn assert_waited_for_none(session: &Session) {
    let pid = session.worker.runner.process().info().pid.unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!(fields[13..15], ["0", "0"], "the time of processes that the worker waited for");
}

#[tokio::test]
async fn a_projects_namespaces_and_modules_are_open() {
    let shop = Shop::build().await;
    let mut session = Session::begin(shop.beginning(), Vec::new()).await;
    let project = startup(&session).project.unwrap();
    assert_eq!(project.loaded(), 2);
    let opened = ["Shop", "Shop.Carts", "Shop.Carts.Cart", "Shop.Carts.Cart.Rules", "Shop.Carts.Odd name"];
    assert_eq!(project.opened, opened);
    let unopened: Vec<_> = project.unopened.iter().map(|one| (one.name.as_str(), one.is_meant)).collect();
    assert_eq!(unopened, [("Shop.Money", true)]);
    assert_eq!(session.value("total [ { Name = \"tea\"; Price = 250 } ] + free + odd").await, "5253");
    assert_eq!(session.value("Money.euros 250").await, "\"2.50\"");
}

#[tokio::test]
async fn what_code_rests_on_is_the_project_and_not_its_copies() {
    let shop = Shop::build().await;
    let mut session = Session::begin(shop.beginning(), Vec::new()).await;
    let references = session.worker.runner.process().info().references.unwrap();
    let paths: Vec<_> = references.values().filter_map(|one| one.path.clone()).collect();
    let wanted = |name: &str| shop.folder.path().join("bin").join(name).display().to_string();
    assert!(paths.contains(&wanted("Core.dll")) && paths.contains(&wanted("Cart.dll")), "{paths:?}");
    let report = session.eval("total []").await.report;
    assert!(report.result.touched.unwrap().contains(&"Cart.dll".to_owned()));
}

#[tokio::test]
async fn an_assembly_that_does_not_load_is_told_and_the_others_are_there() {
    let shop = Shop::build().await;
    let mut beginning = shop.beginning();
    let junk = shop.file("Junk.dll", "no assembly");
    let gone = PathBuf::from("/nowhere/Gone.dll");
    if let Some(project) = &mut beginning.project {
        project.own.insert(1, ShadowCopy { origin: junk.clone(), copy: junk.clone() });
        project.others.push(ShadowCopy { origin: gone.clone(), copy: gone.clone() });
    }
    let mut session = Session::begin(beginning, Vec::new()).await;
    let project = startup(&session).project.unwrap();
    let failed: Vec<_> =
        project.assemblies.iter().filter(|one| one.error.is_some()).map(|one| Path::new(&one.path)).collect();
    assert_eq!((failed, project.loaded()), (vec![junk.as_path()], 2));
    assert_eq!(project.missing[0].error.as_deref(), Some("it is not there"));
    assert_eq!(session.value("total []").await, "0");
}

#[tokio::test]
async fn scripts_run_before_the_sessions_code_and_harm_nothing_where_they_fail() {
    let shop = Shop::build().await;
    let names = [
        ("greet.fsx", "printfn \"hello\"\nlet helper x = x + 1\nMainstay.display \"shown\" |> ignore"),
        ("wrong.fsx", "let broken = nothing"),
        ("throws.fsx", "let early = 7\n(failwith \"boom\" : unit)"),
        ("asks.fsx", "let line = stdin.ReadLine()"),
    ];
    let mut beginning = shop.beginning();
    beginning.profiles = names.iter().map(|(name, text)| shop.file(name, text)).collect();
    beginning.profiles.push(PathBuf::from("/nowhere/gone.fsx"));
    let mut session = Session::begin(beginning, Vec::new()).await;
    let profiles = startup(&session).profiles;
    assert_eq!((profiles[0].output.as_str(), &profiles[0].error), ("hello\n", &None));
    assert_eq!(profiles[1].diagnostics[0].code, "FS0039");
    assert_eq!(profiles[2].error.as_deref(), Some("System.Exception: boom"));
    assert_eq!(profiles[3].error, None);
    assert!(profiles[4].error.is_some());
    assert_eq!(session.value("helper 7").await, "8");
    assert_eq!(session.value("isNull line").await, "true");
    let report = session.eval("nothing").await.report;
    assert_eq!(report.ending, JobEnding::Rejected);
}

#[tokio::test]
async fn what_was_brought_in_is_there_again_after_a_reset() {
    let shop = Shop::build().await;
    let mut beginning = shop.beginning();
    beginning.profiles.push(shop.file("init.fsx", "let helper x = x + 1"));
    let mut session = Session::begin(beginning, Vec::new()).await;
    let before = startup(&session);
    let again = session.worker.runner.kernel().unwrap().reset().await.unwrap();
    let startup = again.startup.unwrap();
    assert_eq!(startup.project, before.project);
    assert_eq!(session.value("helper (total [])").await, "1");
}

#[tokio::test]
async fn how_far_a_start_is_is_said() {
    let shop = Shop::build().await;
    let said = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&said);
    let mut beginning = shop.beginning();
    beginning.profiles.push(shop.file("init.fsx", "()"));
    beginning.report = Report::to(move |progress| hears.lock().unwrap().push(progress));
    Session::begin(beginning, Vec::new()).await;
    let said = said.lock().unwrap();
    let mut phases: Vec<_> = said.iter().map(|progress| progress.phase).collect();
    phases.dedup();
    assert_eq!(phases, [WarmUpPhase::Assemblies, WarmUpPhase::Namespaces, WarmUpPhase::Profile]);
    assert_eq!((said[0].done, said[0].total), (0, 2));
}

#[tokio::test]
async fn what_listens_on_after_a_reset_is_told() {
    let mut session = Session::start().await;
    let code = "let listener = System.Net.Sockets.TcpListener(System.Net.IPAddress.Loopback, 0)
listener.Start()
(listener.LocalEndpoint :?> System.Net.IPEndPoint).Port";
    let port = session.value(code).await;
    let kernel = session.worker.runner.kernel().unwrap().clone();
    let startup = kernel.reset().await.unwrap().startup.expect("it is told");
    let note =
        format!("code from before the reset goes on: it listens on 127.0.0.1:{port}; a hard reset ends it");
    assert_eq!(startup.notes, [note]);
}

#[tokio::test]
async fn a_task_that_has_failed_when_its_code_has_run_is_told() {
    let mut session = Session::start().await;
    let code = "let fails () = System.Threading.Tasks.Task.FromException(exn \"in use\")
let good = System.Threading.Tasks.Task.CompletedTask
let running = fails ()";
    let ran = session.eval(code).await.report;
    assert_eq!(ran.ending, JobEnding::Completed);
    let [told] = ran.result.diagnostics.as_slice() else { panic!("{:?}", ran.result.diagnostics) };
    let place = (told.code.as_str(), told.start.line, told.start.column, told.end.column);
    assert_eq!(place, ("task_failed", 3, 5, 12));
    assert_eq!(told.message, "`running` has failed: System.Exception: in use");
    let ran = session.eval("fails ()").await.report;
    assert_eq!(
        ran.result.diagnostics[0].message,
        "The task that this gave has failed: System.Exception: in use"
    );
    assert_eq!(session.eval("Async.Sleep 1 |> Async.StartAsTask").await.report.result.diagnostics, []);
}

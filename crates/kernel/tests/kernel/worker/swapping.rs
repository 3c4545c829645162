//! Changed sources of a project in a worker that runs: what is put in, what is not and why. The project in `swapping/` is built with the SDK
//! under test; each row of a table is one save of it, and what the session answers afterwards.

use std::fs;
use std::path::PathBuf;
use std::process::Command as Program;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_kernel::{Project, ShadowCopy, StartupContext};
use mainstay_model::{KeptVersion, LoadedProject, Swap, SwappedDeclaration};

use super::smoke::program_of;
use super::*;

/// The sources, in the order of the build.
const SOURCES: [&str; 5] = ["Early.fs", "Shop.fs", "Root.fs", "Later.fs", "Crlf.fs"];

/// A source whose lines end as on Windows, and so do those of its string.
const CRLF: &str = "module Shop.Crlf\r\nlet lines () =\r\n    \"\"\"a\r\nb\"\"\" + \"\"\r\n\
                    [<EntryPoint; System.STAThread>]\r\nlet main args = Array.length args\r\n";

/// The project in a folder of its own, built.
pub(super) struct Shop {
    folder: TempDir,
    configuration: &'static str,
}

impl Shop {
    pub(super) fn build() -> Self {
        Self::build_for("Debug")
    }

    pub(super) fn build_for(configuration: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/swapping");
        for file in SOURCES[..4].iter().chain(&["Shop.fsproj"]) {
            fs::copy(sources.join(file), folder.path().join(file)).unwrap();
        }
        fs::write(folder.path().join("Crlf.fs"), CRLF).unwrap();
        build_as(folder.path(), configuration);
        Self { folder, configuration }
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(super) fn original(file: &str) -> String {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/swapping");
        fs::read_to_string(sources.join(file)).unwrap()
    }

    /// Saves a file as it was built, but for this.
    pub(super) fn save(&self, file: &str, old: &str, new: &str) {
        let text = Self::original(file);
        assert!(text.contains(old), "{file} has no {old:?}");
        fs::write(self.path(file), text.replacen(old, new, 1)).unwrap();
    }

    pub(super) fn restore(&self, file: &str) {
        fs::write(self.path(file), Self::original(file)).unwrap();
    }

    fn beginning(&self) -> StartupContext {
        let path = self.path(&format!("bin/{}/net10.0/Shop.dll", self.configuration));
        let known = LoadedProject {
            path: self.path("Shop.fsproj").display().to_string(),
            sources: SOURCES.map(|file| self.path(file).display().to_string()).into(),
            ..LoadedProject::default()
        };
        let own = vec![ShadowCopy { origin: path.clone(), copy: path }];
        let arguments = vec!["--define:DEBUG".to_owned()];
        let project = Project { known, own, arguments, ..Project::default() };
        StartupContext { project: Some(project), ..StartupContext::in_folder(self.folder.path()) }
    }

    pub(super) async fn session(&self) -> Session {
        Session::begin(self.beginning(), Vec::new()).await
    }

    async fn session_with(&self, program: WorkerProgram) -> Session {
        Session::with(program, self.beginning(), Vec::new()).await
    }

    pub(super) async fn swap(&self, session: &Session, files: &[&str]) -> Swap {
        let files = files.iter().map(|file| self.path(file).display().to_string()).collect();
        soon(session.worker.runner.kernel().unwrap().swap(files)).await.unwrap().unwrap()
    }
}

/// Builds the project in a folder; gives the host that runs what came of it.
pub(super) fn build(folder: &Path) -> PathBuf {
    build_as(folder, "Debug")
}

fn build_as(folder: &Path, configuration: &str) -> PathBuf {
    let host = choose(&support::search(Path::new("/nowhere"))).unwrap().parts().unwrap().host;
    let output = Program::new(&host)
        .args(["build", "-v:quiet", "-nologo", "-nodeReuse:false", "-p:UseSharedCompilation=false"])
        .args(["-c", configuration])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    host
}

/// The value of an expression, or what the compiler says of it.
pub(super) async fn answer(session: &mut Session, asks: &str) -> String {
    let result = session.eval(asks).await.report.result;
    result.value.unwrap_or_else(|| result.diagnostics.iter().map(|one| one.message.clone()).collect())
}

pub(super) fn codes(swap: &Swap) -> Vec<&str> {
    swap.obstacles.iter().map(|one| one.code.as_str()).collect()
}

/// The kept versions that are told of what was put in, by name.
fn kept(swap: &Swap) -> Vec<(&str, Option<KeptVersion>)> {
    swap.swapped.iter().map(|one| (one.name.as_str(), one.kept)).collect()
}

/// A function that takes or gives something else is another function, which its callers use if they are saved too.
async fn callers_use_what_has_another_signature(shop: &Shop, session: &mut Session) {
    let curried = "let curried (a: int) (b: int, c: string) = sprintf \"%d%d%s\" a b c";
    // Alone it leaves its callers without what they call.
    shop.save("Shop.fs", curried, "let curried (a: int) (c: string) = sprintf \"%d%s\" a c");
    let swapped = shop.swap(session, &["Shop.fs"]).await;
    assert!(codes(&swapped).contains(&"signature"), "{swapped:?}");
    assert_eq!(session.value("Later.callsCurried ()").await, "\"12c\"");
    shop.save("Later.fs", "1 (2, \"c\")", "1 \"d\"");
    let swapped = shop.swap(session, &["Later.fs", "Shop.fs"]).await;
    assert!(swapped.is_applied(), "{swapped:?}");
    assert!(kept(&swapped).contains(&("Shop.Basics.curried", Some(KeptVersion::Signature))), "{swapped:?}");
    assert_eq!(session.value("Later.callsCurried ()").await, "\"1d\"");
    assert_eq!(
        session.value("Basics.curried 1 (2, \"c\")").await,
        "\"12c\"",
        "the session's own code calls what was built"
    );

    // Later saves of one file or the other go on from there.
    shop.save("Shop.fs", curried, "let curried (a: int) (c: string) = sprintf \"%d-%s\" a c");
    assert!(shop.swap(session, &["Shop.fs"]).await.is_applied());
    assert_eq!(session.value("Later.callsCurried ()").await, "\"1-d\"");
    shop.save("Later.fs", "1 (2, \"c\")", "2 \"e\"");
    assert!(shop.swap(session, &["Later.fs"]).await.is_applied());
    assert_eq!(session.value("Later.callsCurried ()").await, "\"2-e\"");

    // With its first signature again, all run it.
    let both = "Later.callsCurried () + Basics.curried 3 (4, \"f\")";
    shop.save("Shop.fs", curried, &curried.replace("%d%d", "%d+%d"));
    shop.restore("Later.fs");
    let swapped = shop.swap(session, &["Shop.fs", "Later.fs"]).await;
    assert!(swapped.is_applied(), "{swapped:?}");
    assert!(kept(&swapped).contains(&("Shop.Basics.curried", None)), "{swapped:?}");
    assert_eq!(session.value(both).await, "\"1+2c3+4f\"");
    shop.restore("Shop.fs");
    assert!(shop.swap(session, &["Shop.fs"]).await.is_applied());
    assert_eq!(session.value(both).await, "\"12c34f\"");

    // What it is called with may be new, too.
    shop.save(
        "Shop.fs",
        curried,
        "let curried (a: int) (c: string) = sprintf \"%d%s\" a c\n    let fresh = \"e\"",
    );
    shop.save("Later.fs", "1 (2, \"c\")", "1 Basics.fresh");
    let swapped = shop.swap(session, &["Later.fs", "Shop.fs"]).await;
    assert!(swapped.is_applied(), "{swapped:?}");
    assert_eq!(session.value("Later.callsCurried ()").await, "\"1e\"");
    shop.restore("Shop.fs");
    shop.restore("Later.fs");
    assert!(shop.swap(session, &["Later.fs", "Shop.fs"]).await.is_applied());
    assert_eq!(session.value(both).await, "\"12c34f\"");
}

/// A function that was private may be used by others once it is not, and one that is private now by nobody else.
async fn others_use_what_is_no_longer_private(shop: &Shop, session: &mut Session) {
    let secret = "let private secret (x: int) = x * 2";
    shop.save("Shop.fs", secret, "let secret (x: int) = x * 2");
    shop.save("Later.fs", "Basics.plain x", "Basics.secret x");
    let swap = shop.swap(session, &["Later.fs", "Shop.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(session.value("Later.callsPlain 4").await, "8");
    shop.save("Shop.fs", secret, "let secret (x: int) = x * 20");
    assert!(shop.swap(session, &["Shop.fs"]).await.is_applied());
    assert_eq!(session.value("Later.callsPlain 4, Basics.usesSecret 1").await, "(80, 23)");
    shop.restore("Shop.fs");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert!(!swap.is_applied(), "a build says that nobody else sees it: {swap:?}");
    assert_eq!(session.value("Later.callsPlain 4").await, "80");
    shop.restore("Later.fs");
    let swap = shop.swap(session, &["Later.fs", "Shop.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(session.value("Later.callsPlain 4, Basics.usesSecret 1").await, "(5, 5)");

    shop.save("Shop.fs", "let plain (x: int)", "let private plain (x: int)");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert!(!swap.is_applied(), "others use it: {swap:?}");
    shop.restore("Shop.fs");
    assert!(shop.swap(session, &["Shop.fs"]).await.is_applied());
}

/// What a file has and had not when it was built is what the others mean by its name from then on.
async fn other_files_see_what_a_file_added(shop: &Shop, session: &mut Session) {
    shop.save("Early.fs", "let helper", "let fresh (x: int) = x + 5\n    let helper");
    assert!(shop.swap(session, &["Early.fs"]).await.is_applied());
    shop.save("Later.fs", "Basics.plain x", "Early.fresh x");
    let swapped = shop.swap(session, &["Later.fs"]).await;
    assert!(swapped.is_applied(), "{swapped:?}");
    assert_eq!(session.value("Later.callsPlain 1").await, "6");
    shop.save("Early.fs", "let helper", "let fresh (x: int) = x + 50\n    let helper");
    assert!(shop.swap(session, &["Early.fs"]).await.is_applied());
    assert_eq!(session.value("Later.callsPlain 1").await, "51");
    shop.restore("Early.fs");
    assert_eq!(codes(&shop.swap(session, &["Early.fs"]).await), ["not_compiled"], "it is still used");
    assert_eq!(session.value("Later.callsPlain 1").await, "51");
    shop.save("Early.fs", "let helper", "let private fresh (x: int) = x + 500\n    let helper");
    assert_eq!(codes(&shop.swap(session, &["Early.fs"]).await), ["not_compiled"], "nobody else sees it");
    shop.restore("Early.fs");
    shop.restore("Later.fs");
    assert!(shop.swap(session, &["Early.fs", "Later.fs"]).await.is_applied());

    // What a file adds itself comes first, where another has added the same and is named.
    shop.save("Early.fs", "let helper", "let same (x: int) = x + 5\n    let helper");
    let own = "let same (x: int) = x * 100\n    let callsPlain (x: int) = same x + Early.same 0";
    shop.save("Later.fs", "let callsPlain (x: int) = Basics.plain x", own);
    let swapped = shop.swap(session, &["Early.fs", "Later.fs"]).await;
    assert!(swapped.is_applied(), "{swapped:?}");
    assert_eq!(session.value("Later.callsPlain 1").await, "105");
    shop.restore("Early.fs");
    shop.restore("Later.fs");
    assert!(shop.swap(session, &["Early.fs", "Later.fs"]).await.is_applied());

    // What bears the name of something else hides it, in a save of its own or in the same, and shows it again when it is gone.
    let rounded = "Rounding.rounded 1.5";
    shop.save("Early.fs", "let helper", "let ceil (x: float) = floor x\n    let helper");
    shop.save("Shop.fs", "let rounded (x: float) = round x", "let rounded (x: float) = ceil x");
    let swapped = shop.swap(session, &["Shop.fs", "Early.fs"]).await;
    assert!(swapped.is_applied(), "{swapped:?}");
    assert_eq!(session.value(rounded).await, "1.0");
    shop.restore("Early.fs");
    let swapped = shop.swap(session, &["Early.fs"]).await;
    assert!(swapped.is_applied(), "{swapped:?}");
    assert_eq!(session.value(rounded).await, "2.0");
    shop.save("Early.fs", "let helper", "let ceil (x: float) = floor x\n    let helper");
    assert!(shop.swap(session, &["Early.fs"]).await.is_applied());
    assert_eq!(session.value(rounded).await, "1.0");
    shop.restore("Early.fs");
    shop.restore("Shop.fs");
    assert!(shop.swap(session, &["Early.fs", "Shop.fs"]).await.is_applied());
    assert_eq!(session.value(rounded).await, "2.0");
}

/// Also one that changes nothing that runs, or only takes something away.
async fn new_members_are_seen_by_other_files(shop: &Shop, session: &mut Session) {
    let unit = "    member _.Unit() = 1\n";
    let with = |body: &str| format!("{unit}    member basket.Fresh(x: int) = {body}\n");
    shop.save("Shop.fs", unit, &with("basket.Pure x + 1"));
    shop.save("Later.fs", "Basics.plain x", "(Basket x).Fresh x");
    let swap = shop.swap(session, &["Shop.fs", "Later.fs"]).await;
    assert!(kept(&swap).contains(&("Shop.Basket.Fresh", Some(KeptVersion::Reflection))), "{swap:?}");
    assert_eq!(session.value("Later.callsPlain 4").await, "9");
    shop.save("Shop.fs", unit, &with("basket.Pure x + 100"));
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(session.value("Later.callsPlain 4").await, "108", "what calls it is compiled anew");
    shop.restore("Shop.fs");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert!(!swap.is_applied(), "a build says that nobody has it: {swap:?}");
    shop.restore("Later.fs");
    let swap = shop.swap(session, &["Later.fs", "Shop.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(session.value("Later.callsPlain 4").await, "5");

    let doubled = "static member inline Doubled(x: int) = x + x";
    shop.save("Shop.fs", doubled, "static member inline Doubled(x: int) =\n        x + x // twice");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert!(swap.is_applied() && swap.swapped.is_empty(), "it is laid out otherwise: {swap:?}");
    shop.restore("Shop.fs");
    assert!(shop.swap(session, &["Shop.fs"]).await.is_applied());

    // Linq's own comes after a type's, and before what is compiled here.
    let using = "namespace Shop\n\nopen System.Linq\n";
    let text = Shop::original("Later.fs").replacen("namespace Shop\n", using, 1);
    fs::write(shop.path("Later.fs"), text.replace("Basics.plain x", "(Numbers x).Sum()")).unwrap();
    assert!(shop.swap(session, &["Later.fs"]).await.is_applied());
    assert_eq!(session.value("Later.callsPlain 4").await, "4");
    shop.save("Shop.fs", "    member _.Size = 1\n", "    member _.Size = 1\n    member _.Sum() = -1\n");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    let value = session.value("Later.callsPlain 4").await;
    assert!(value == "-1" || codes(&swap) == ["ambiguous"], "{value} {swap:?}");
    for file in ["Shop.fs", "Later.fs"] {
        shop.restore(file);
    }
    assert!(shop.swap(session, &["Later.fs", "Shop.fs"]).await.is_applied());
}

async fn every_save_is_told(shop: &Shop, session: &mut Session) {
    // A save that changes nothing that runs is one all the same, and what names its line runs with the new one.
    shop.save("Shop.fs", "module Basics =\n", "module Basics =\n    // said\n");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert_eq!(session.value("Basics.place ()").await, "(\"65\", \"Shop.fs\")", "{swap:?}");
    shop.save("Early.fs", "let helper", "// said\n    let helper");
    let said = shop.swap(session, &["Early.fs"]).await;
    let again = shop.swap(session, &["Early.fs"]).await;
    assert_eq!(
        (said.is_nothing(), said.is_renewed, again.is_renewed),
        (true, true, false),
        "{said:?} {again:?}"
    );
    shop.restore("Early.fs");
    shop.restore("Shop.fs");
    assert!(shop.swap(session, &["Early.fs", "Shop.fs"]).await.is_applied());

    // What contains an inline function of another file is another function itself, and stays so when its own file is saved.
    shop.save("Shop.fs", "let inline inlined (x: int) = x + 9", "let inline inlined (x: int) = x + 90");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert_eq!(session.value("Later.usesDoubly 1, Basics.usesInlined 1").await, "(182, 91)", "{swap:?}");
    assert!(kept(&swap).contains(&("Shop.Later.doublyInlined", Some(KeptVersion::Inline))), "{swap:?}");
    shop.save("Later.fs", "let isApart (x: int) = x", "let isApart (x: int) = x + 1");
    let swap = shop.swap(session, &["Later.fs"]).await;
    assert_eq!(session.value("Later.usesDoubly 1, Later.isApart 1").await, "(182, 2)", "{swap:?}");
    shop.restore("Shop.fs");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert_eq!(session.value("Later.usesDoubly 1, Later.isApart 1").await, "(20, 2)", "{swap:?}");
    shop.restore("Later.fs");
    assert!(shop.swap(session, &["Later.fs"]).await.is_applied());

    // A private name of another file is nobody else's.
    shop.save(
        "Shop.fs",
        "let inline inlined (x: int) = x + 9",
        "let inline inlined (x: int) = x + 9\n    let private doublyInlined (x: int) = x",
    );
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert!(
        swap.is_applied() && !kept(&swap).iter().any(|(name, _)| name.starts_with("Shop.Later.")),
        "{swap:?}"
    );
    shop.restore("Shop.fs");
    assert!(shop.swap(session, &["Shop.fs"]).await.is_applied());

    // Code of the session contains what was inline.
    shop.save("Shop.fs", "let inline inlined (x: int) = x + 9", "let inlined (x: int) = x + 8");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert!(kept(&swap).contains(&("Shop.Basics.inlined", Some(KeptVersion::Inline))), "{swap:?}");
    shop.restore("Shop.fs");
    assert!(shop.swap(session, &["Shop.fs"]).await.is_applied());

    // What is gone from its file is told once, and is there again when it is.
    let seqs = "    let seqs (n: int) = seq { for i in 1 .. n -> i }\n";
    shop.save("Shop.fs", seqs, "");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    let gone = ("Shop.Basics.seqs", Some(KeptVersion::Removed));
    assert!(kept(&swap).contains(&gone) && swap.is_applied(), "{swap:?}");
    let again = shop.swap(session, &["Shop.fs"]).await;
    assert!(again.is_nothing(), "{again:?}");
    shop.restore("Shop.fs");
    let swap = shop.swap(session, &["Shop.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
}

#[tokio::test]
async fn a_swap_goes_on_while_code_runs_and_names_what_stays_old() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    // The values of a file are made when one of them is first asked for.
    assert_eq!(session.value("Later.fromValue").await, "4");
    shop.save("Shop.fs", "let value = List.sum [ 1; 2 ]", "let value = List.sum [ 1; 2; 3 ]");
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    let named = |all: &[SwappedDeclaration]| all.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    assert_eq!(named(&swap.swapped), ["Shop.Basics.value"]);
    assert_eq!(swap.swapped[0].kept, Some(KeptVersion::Value));
    assert_eq!(named(&swap.outdated), ["Shop.Later.fromValue"]);
    assert_eq!(session.value("Later.fromValue").await, "4");
    // So are those of objects and types, whatever calls what changed while they are made; a function that is a value runs the new code.
    shop.restore("Shop.fs");
    assert!(shop.swap(&session, &["Shop.fs"]).await.is_applied());
    shop.save("Shop.fs", "let making (x: int) = x\n", "let making (x: int) = x * 10\n");
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    let mut outdated = named(&swap.outdated);
    outdated.sort();
    assert_eq!(outdated, ["Shop.Meter.held", "Shop.Meters.lazily", "Shop.Meters.meter"], "{swap:?}");
    shop.restore("Shop.fs");
    assert!(shop.swap(&session, &["Shop.fs"]).await.is_applied());

    // Code that runs sees the new body at its next call, and ends as it would have.
    let spins = r#"let mutable seen = []
while List.length seen < 2 do
    let now = Later.callsPlain 1
    if not (List.contains now seen) then
        seen <- now :: seen
        printfn "%d" now
seen"#;
    let job = session.submit(spins).await;
    assert!(session.prints("2").await);
    shop.save("Shop.fs", "let plain (x: int) = x + 1", "let plain (x: int) = x + 70");
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    let ran = session.end_of(job).await;
    assert_eq!(
        (ran.report.ending, ran.report.result.value.unwrap()),
        (JobEnding::Completed, "[71; 2]".to_owned())
    );
    assert_eq!(session.value("seen.Length").await, "2", "what the code defined is there");

    shop.save("Shop.fs", "let plain (x: int) = x + 1", "let added = 5\n    let plain (x: int) = x + added");
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert_eq!(session.value("Later.callsPlain 1").await, "6", "{swap:?}");
    shop.save("Shop.fs", "let plain (x: int) = x + 1", "let added = 5\n    let plain (x: int) = x * added");
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert_eq!(session.value("Later.callsPlain 3").await, "15", "{swap:?}");

    every_save_is_told(&shop, &mut session).await;
    new_members_are_seen_by_other_files(&shop, &mut session).await;
    other_files_see_what_a_file_added(&shop, &mut session).await;
    callers_use_what_has_another_signature(&shop, &mut session).await;
    others_use_what_is_no_longer_private(&shop, &mut session).await;

    // Names of the file's own hide those that it opens, and those of a module around it.
    shop.save("Root.fs", "= helper x", "= helper x * 10");
    assert!(shop.swap(&session, &["Root.fs"]).await.is_applied());
    assert_eq!(session.value("Root.total 1").await, "20");
    let both = Shop::original("Root.fs").replace("x + 100", "x + 200").replace("= pick x", "= pick x * 10");
    fs::write(shop.path("Root.fs"), both).unwrap();
    assert!(shop.swap(&session, &["Root.fs"]).await.is_applied());
    assert_eq!(session.value("Root.pick 1, Root.Inner.uses 1").await, "(201, 30)");

    // The ends of lines in a string are what they are in the file.
    fs::write(shop.path("Crlf.fs"), CRLF.replace("+ \"\"", "+ \"!\"")).unwrap();
    let swap = shop.swap(&session, &["Crlf.fs"]).await;
    assert_eq!(session.value("Crlf.lines () = \"a\\r\\nb!\"").await, "true", "{swap:?}");

    // Where the program begins. A run of it that goes on is not stopped for it.
    fs::write(shop.path("Crlf.fs"), CRLF.replace("length args", "length args + 1")).unwrap();
    let swap = shop.swap(&session, &["Crlf.fs"]).await;
    assert_eq!(session.value("Crlf.main [||]").await, "1", "{swap:?}");
    assert_eq!(swap.swapped.iter().filter_map(|one| one.kept).collect::<Vec<_>>(), [KeptVersion::Run]);

    // What is gone, what is none of the project, and what is as it was.
    shop.restore("Shop.fs");
    assert_eq!(codes(&shop.swap(&session, &["Gone.fs"]).await), ["gone"]);
    fs::write(shop.path("Other.fs"), "module Other").unwrap();
    assert_eq!(codes(&shop.swap(&session, &["Other.fs"]).await), ["unknown_source"]);
    assert!(shop.swap(&session, &["Shop.fs"]).await.is_applied());
    assert_eq!(shop.swap(&session, &["Shop.fs"]).await.swapped, []);
    assert_eq!(session.value("Later.callsPlain 1").await, "2");

    // The assembly stays loaded, as it is: another session needs another process.
    let refused = soon(session.worker.runner.kernel().unwrap().reset()).await;
    assert!(matches!(refused, Err(Error::WorkerFailed { .. })), "{refused:?}");
}

/// A save of `Shop.fs` that is put in: what is there and what it becomes, what is asked, and the answer before and after.
struct Edit {
    old: &'static str,
    new: &'static str,
    asks: &'static str,
    answers: [&'static str; 2],
}

const fn edit(old: &'static str, new: &'static str, asks: &'static str, answers: [&'static str; 2]) -> Edit {
    Edit { old, new, asks, answers }
}

const EDITS: &[Edit] = &[
    edit("let plain (x: int) = x + 1", "let plain (x: int) = x + 100", "Later.callsPlain 1", ["2", "101"]),
    edit("= x * 2\n    let internal", "= x * 20\n    let internal", "Basics.usesSecret 1", ["5", "23"]),
    edit("= x * 3\n    let uses", "= x * 30\n    let uses", "Basics.usesSecret 1", ["5", "32"]),
    edit("secret x + inner x", "secret x * inner x", "Basics.usesSecret 2", ["10", "24"]),
    edit(
        "calls <- calls + 1\n        x",
        "calls <- calls + 10\n        x",
        "let before = calls in Basics.counted 1 + calls - before",
        ["2", "11"],
    ),
    edit("if n = 0 then false else even", "if n = 0 then true else even", "Basics.even 3", ["false", "true"]),
    edit("if n > 100", "if n > 10", "Basics.size 50", ["\"small\"", "\"big\""]),
    edit("a * 10 + b", "a * 100 + b", "Basics.operated 1 2", ["12", "102"]),
    edit("let named (x: int) = x + 5", "let named (x: int) = x + 50", "Basics.named 1", ["6", "51"]),
    edit("\"%A-%A\" x y", "\"%A/%A\" x y", "Basics.generic 1 \"a\"", ["\"1-\"a\"\"", "\"1/\"a\"\""]),
    edit("\"%d%d%s\" a b c", "\"%d.%d.%s\" a b c", "Basics.curried 1 (2, \"c\")", ["\"12c\"", "\"1.2.c\""]),
    edit("let unit () = 1", "let unit () = 10", "Basics.unit ()", ["1", "10"]),
    edit("let units (a: int) () = a", "let units (a: int) () = a * 10", "Basics.units 1 ()", ["1", "10"]),
    edit("fun (x: int) -> x * 3", "fun (x: int) -> x * 30", "Basics.lambda 1", ["3", "30"]),
    edit("1 -> \"one\"", "1 -> \"eins\"", "Basics.cases 1", ["\"one\"", "\"eins\""]),
    edit("task { return x + 1 }", "task { return x + 10 }", "(Basics.tasks 1).Result", ["2", "11"]),
    edit(
        "async { return x + 1 }",
        "async { return x + 10 }",
        "Async.RunSynchronously(Basics.asyncs 1)",
        ["2", "11"],
    ),
    edit(
        "for i in 1 .. n -> i }",
        "for i in 1 .. n -> i * 10 }",
        "List.ofSeq (Basics.seqs 2)",
        ["[1; 2]", "[10; 20]"],
    ),
    edit("fun y -> x + y", "fun y -> x * y", "Basics.captures 3", ["[4; 5]", "[3; 6]"]),
    edit(
        "x + List.length (defaultArg",
        "x * 10 + List.length (defaultArg",
        "Basket(1).Optional(1, [ 2 ]), Basket(1).Optional(1)",
        ["(2, 1)", "(11, 10)"],
    ),
    edit("right + 1", "right + 10", "Basket(1) +. 1", ["2", "11"]),
    edit(
        "int -> int = fun y -> x + y",
        "int -> int = fun y -> x + y * 10",
        "Basket(1).Gives 1 2",
        ["3", "21"],
    ),
    edit("| y -> x * y", "| y -> x * y * 10", "Basket(1).GivesCases 2 3", ["6", "60"]),
    edit("inner.Depth", "inner.Depth * 10", "InnerUses.asks 1", ["(1, 1)", "(10, 1)"]),
    edit("hidden.Width", "hidden.Width * 10", "InnerUses.asks 1", ["(1, 1)", "(1, 10)"]),
    edit("Low -> \"low\"", "Low -> \"LOW\"", "Level.Low.Words", ["\"low\"", "\"LOW\""]),
    edit(
        "_.Kind = \"two\"",
        "_.Kind = \"one\"",
        "Pair().Kind + Pair<int>().Kind",
        ["\"onetwo\"", "\"oneone\""],
    ),
    edit(
        "        let auto (x: float) = x\n",
        "        let auto (x: float) = x\n        let round (x: float) = floor x\n",
        "Rounding.rounded 1.5",
        ["2.0", "1.0"],
    ),
    edit(
        "        let auto (x: float) = x\n\n    let rounded (x: float) = round x",
        "        let auto (x: float) = x\n        let extra (x: float) = x * 4.0\n\n    let rounded (x: float) = Auto.extra x",
        "Rounding.rounded 1.5",
        ["2.0", "6.0"],
    ),
    edit("one\ntwo", "one\n  two", "Basics.text () = \"one\\ntwo\"", ["true", "false"]),
    edit("\"debug\"", "\"swapped\"", "Basics.conditional ()", ["\"debug\"", "\"swapped\""]),
    edit(
        "__LINE__, __SOURCE_FILE__",
        "__SOURCE_FILE__, __LINE__",
        "Basics.place ()",
        ["(\"64\", \"Shop.fs\")", "(\"Shop.fs\", \"64\")"],
    ),
    edit("value * 10 + hiddenValue", "value * 100 + hiddenValue", "Basics.usesValues ()", ["37", "307"]),
    edit("= x <- x + 1", "= x <- x + 10", "(let mutable x = 1 in Basics.byrefs &x; x)", ["2", "11"]),
    edit(
        "(x: float<kg>) = x * 2.0",
        "(x: float<kg>) = x * 20.0",
        "float (Basics.measured 1.0<kg>)",
        ["2.0", "20.0"],
    ),
    edit(
        "(new 'T()).GetType().Name",
        "\"a \" + (new 'T()).GetType().Name",
        "Basics.made<System.Random> ()",
        ["\"Random\"", "\"a Random\""],
    ),
    edit("compare x y", "compare y x", "Basics.compared 1 2", ["-1", "1"]),
    edit(
        ") = x.Length",
        ") = x.Length * 10",
        "Basics.spans(System.MemoryExtensions.AsSpan \"abc\")",
        ["3", "30"],
    ),
    edit(
        "Option.defaultValue 0 x +",
        "Option.defaultValue 5 x +",
        "Basics.optional None (ValueSome 1)",
        ["1", "6"],
    ),
    edit(
        "= struct (b, a)",
        "= struct (b + b, a)",
        "Basics.structs (struct (1, \"b\"))",
        ["struct (\"b\", 1)", "struct (\"bb\", 1)"],
    ),
    edit(
        "if x > 0 then Cat else Dog",
        "if x > 0 then Dog else Cat",
        "Basics.animal 1",
        ["\"Cat\"", "\"Dog\""],
    ),
    edit("(x: int) = helper x", "(x: int) = helper x + 1", "Basics.helped 1", ["1001", "1002"]),
    edit(
        "failwith \"boom\"",
        "failwith \"bang\"",
        "(try Basics.thrown 1 |> string with e -> e.Message)",
        ["\"boom\"", "\"bang\""],
    ),
    edit("= inlined x", "= inlined x * 2", "Basics.usesInlined 1", ["10", "20"]),
    edit(
        "let value = List.sum [ 1; 2 ]",
        "let value = List.sum [ 1; 2; 3 ]",
        "Basics.value, Basics.usesValues (), Later.readsValue ()",
        ["(3, 37, 3)", "(6, 67, 6)"],
    ),
    edit(
        "let private hiddenValue = 7",
        "let private hiddenValue = 70",
        "Basics.usesValues ()",
        ["37", "100"],
    ),
    edit("let private inner x = x + 1", "let private inner x = x + 10", "Strict.outer 1", ["2", "11"]),
    edit("let outer (x: int) = inner x", "let outer (x: int) = inner x * 10", "Strict.outer 1", ["2", "20"]),
    edit("let deepest (x: int) = x - 1", "let deepest (x: int) = x - 10", "Strict.viaDeep 1", ["0", "-9"]),
    edit("= Deep.deepest x", "= Deep.deepest x * 10", "Strict.viaDeep 3", ["2", "20"]),
    edit("then \"first\" else", "then \"erste\" else", "Mutual.second 1", ["\"first\"", "\"erste\""]),
    edit("let above (x: int) = x + 1", "let above (x: int) = x + 10", "Split.above 1", ["2", "11"]),
    edit("this.Add x + this.Add x", "this.Add x + this.Add x + 1000", "Basket(1).Twice 2", ["8", "1008"]),
    edit("member _.Pure(x: int) = x * 2", "member _.Pure(x: int) = x * 20", "Basket(1).Pure 1", ["2", "20"]),
    edit("(x: int) (y: int) = x * y", "(x: int) (y: int) = x + y", "Basket(1).Curried 3 4", ["12", "7"]),
    edit("member _.Unit() = 1", "member _.Unit() = 10", "Basket(1).Unit()", ["1", "10"]),
    edit("member _.Property = 5", "member _.Property = 50", "Basket(1).Property", ["5", "50"]),
    edit(
        "static member Static(x: int) = x * 3",
        "static member Static(x: int) = x * 30",
        "Basket.Static 1",
        ["3", "30"],
    ),
    edit("static member Zero = 0", "static member Zero = 10", "Basket.Zero", ["0", "10"]),
    edit(
        "(x: string) = \"string\"",
        "(x: string) = \"text\"",
        "Basket(1).Over \"\", Basket(1).Over 1",
        ["(\"string\", \"int\")", "(\"text\", \"int\")"],
    ),
    edit(
        "override _.ToString() = \"basket\"",
        "override _.ToString() = \"cart\"",
        "string (Basket 1)",
        ["\"basket\"", "\"cart\""],
    ),
    edit(
        "member _.Dispose() = ()",
        "member _.Dispose() = calls <- calls + 100",
        "(let before = calls in (new Basket(1) :> System.IDisposable).Dispose(); calls - before)",
        ["0", "100"],
    ),
    edit("counter.Count + x", "counter.Count * x", "{ Count = 3 }.Plus 4", ["7", "12"]),
    edit("point.X + point.Y", "point.X * point.Y", "{ X = 3; Y = 4 }.Sum", ["7", "12"]),
    edit("Origin = { X = 0; Y = 0 }", "Origin = { X = 1; Y = 0 }", "Point.Origin.Sum", ["0", "1"]),
    edit(
        "sprintf \"round %d\" r",
        "sprintf \"circle %d\" r",
        "(Round 1).Words",
        ["\"round 1\"", "\"circle 1\""],
    ),
    edit("member _.Value = value", "member _.Value = value", "Box(1).Value", ["1", "1"]),
    edit(
        "let plain (x: int) = x + 1",
        "[<Diagnostics.DebuggerStepThrough>]\n    let plain (x: int) = x + 2",
        "Basics.plain 1",
        ["2", "3"],
    ),
    // Members that are new.
    edit(
        "member _.Owner = owner",
        "member this.Owner = this.Titled \"Dr\"\n    member private _.Titled(title: string) = title + \" \" + owner",
        "Account(\"ada\", 1).Owner",
        ["\"ada\"", "\"Dr ada\""],
    ),
    edit(
        "sprintf \"%s%A\" prefix this.Value",
        "sprintf \"%s:%A\" prefix (this.Kept())\n    member _.Kept() : 'a = value",
        "Box(1).Shown \"a\"",
        ["\"a1\"", "\"a:1\""],
    ),
    edit(
        "point.X + point.Y",
        "point.Product + 1\n\n    /// All of it.\n    member point.Product =\n        point.X\n        * point.Y",
        "{ X = 3; Y = 4 }.Sum",
        ["7", "13"],
    ),
    edit(
        "Origin = { X = 0; Y = 0 }",
        "Origin = Point.At()\n    static member At(?x: int) = { X = defaultArg x 5; Y = 0 }",
        "Point.Origin.Sum",
        ["0", "5"],
    ),
    edit(
        "counter.Count + x",
        "counter.Minus x\n    member counter.Minus(x: int) = counter.Count - x",
        "{ Count = 3 }.Plus 4",
        ["7", "-1"],
    ),
    edit(
        "level.Words = match level with Low -> \"low\" | High -> \"high\"",
        "level.Words = if level.IsTop then \"top\" else \"low\"\n    member level.IsTop = level = High",
        "Level.High.Words",
        ["\"high\"", "\"top\""],
    ),
    edit(
        "sprintf \"%s%A\" prefix this.Value",
        "sprintf \"%s=%A\" prefix this.Value",
        "Box(1).Shown \"a\"",
        ["\"a1\"", "\"a=1\""],
    ),
    edit(
        "sprintf \"%A,%A\" this.Value other",
        "sprintf \"%A;%A\" this.Value other",
        "Box(1).With \"b\"",
        ["\"1,\"b\"\"", "\"1;\"b\"\""],
    ),
    edit(
        "let plain (x: int) = x + 1",
        "let extra (x: int) = x * 7\n    let plain (x: int) = extra x",
        "Basics.plain 1",
        ["2", "7"],
    ),
    edit(
        "let plain (x: int) = x + 1",
        "let table = [ 5 ]\n    let plain (x: int) = x + table.Head",
        "Basics.plain 1",
        ["2", "6"],
    ),
    edit("    let asyncs (x: int) = async { return x + 1 }\n", "", "Basics.plain 1", ["2", "2"]),
    edit(
        "let plain (x: int) = x + 1",
        "// said\n    let plain (x: int) =\n        // why\n        x + 1",
        "Basics.plain 1",
        ["2", "2"],
    ),
    // What a name means is the compiler's to say, and not that of words.
    edit(
        "let plain (x: int) = x + 1",
        "let helper (x: int) = x\n    let plain (x: int) = x + 1",
        "Basics.helped 1",
        ["1001", "1"],
    ),
    edit("let unit () = 1", "let unit () = String.length \"unit\"", "Basics.unit ()", ["1", "4"]),
    edit(
        "let helped (x: int) = helper x",
        "let helped (x: int) = (let usesInlined = x in usesInlined * 3)",
        "Basics.helped 2",
        ["1002", "6"],
    ),
    edit(
        "x.ToString CultureInfo.InvariantCulture",
        "x.ToString(\"D3\", CultureInfo.InvariantCulture)",
        "Split.below 7",
        ["\"7\"", "\"007\""],
    ),
    // What an `open` brings is what code means from then on.
    edit("open Shop.Early\n", "open Shop.Early\nopen System.IO\n", "Basics.plain 1", ["2", "2"]),
    edit(
        "open Shop.Early\n",
        "open Shop.Early\nopen Shop.Earlier\n",
        "Basics.original ()",
        ["\"early\"", "\"earlier\""],
    ),
    edit(
        "    let plain (x: int) = x + 1",
        "    open System.IO\n\n    let plain (x: int) = Path.GetFileName(\"a/bc\").Length + x",
        "Basics.plain 1",
        ["2", "3"],
    ),
    // What contains an inline function is compiled anew, in other files too.
    edit(
        "let inline inlined (x: int) = x + 9",
        "let inline inlined (x: int) = x + 90",
        "Basics.usesInlined 1",
        ["10", "91"],
    ),
    edit(
        "let inline inlined (x: int) = x + 9",
        "let inlined (x: int) = x + 8",
        "Basics.usesInlined 1",
        ["10", "9"],
    ),
    edit(
        "(x: ^T) = x + x",
        "(x: ^T) = x + x + x",
        "Inlines.usesQuadruple 1, Later.callsInline ()",
        ["(4, 4)", "(9, 9)"],
    ),
    edit(
        "(x: ^T) = double (double x)",
        "(x: ^T) = double x",
        "Inlines.usesQuadruple 1, Later.callsInline ()",
        ["(4, 4)", "(2, 2)"],
    ),
    edit("hiddenly (x: int) = x + 1", "hiddenly (x: int) = x + 10", "Inlines.usesHiddenly 1", ["2", "11"]),
    // What a constructor's objects keep is read and set in the objects that there are.
    edit(
        "balance <- balance + x\n",
        "balance <- balance + x * 10\n",
        "let account = Account(\"ada\", 1) in account.Put 2 |> ignore; account.Put 3, account.Last",
        ["(6, 3)", "(51, 3)"],
    ),
    edit(
        "member _.Owner = owner",
        "member _.Owner = owner + \"!\"",
        "Account(\"ada\", 1).Owner",
        ["\"ada\"", "\"ada!\""],
    ),
    edit(
        "history.[history.Count - 1]",
        "history.[0]",
        "let account = Account(\"ada\", 1) in account.Put 2 |> ignore; account.Put 3 |> ignore; account.Last",
        ["3", "2"],
    ),
    edit(
        "(owner: string) = owner",
        "(owner: string) = owner + owner",
        "Account(\"ada\", 1).Local \"b\"",
        ["\"b\"", "\"bb\""],
    ),
    edit(
        "value = [| owner |]",
        "value = [| owner; $\"{owner}{balance}\" |]",
        "Account(\"ada\", 1).Named()",
        ["\"ada\"", "\"ada-ada1\""],
    ),
    edit("= fun () -> balance", "= fun () -> balance * 10", "Account(\"ada\", 1).Reader ()", ["1", "10"]),
    edit("member _.Plain = 1", "member _.Plain = balance + 1", "Account(\"ada\", 1).Plain", ["1", "2"]),
    edit(
        "CompareTo _ = balance",
        "CompareTo _ = balance * 10",
        "compare (Account(\"ada\", 1)) (Account(\"bob\", 1))",
        ["1", "10"],
    ),
    edit(
        "one.Length - other.Length",
        "other.Length - one.Length",
        "(Account(\"ada\", 1) :> System.Collections.Generic.IComparer<string>).Compare(\"abc\", \"a\")",
        ["2", "-2"],
    ),
    edit(
        "sprintf \"%s%A\" prefix this.Value",
        "sprintf \"%s/%A\" prefix value",
        "Box(1).Shown \"a\"",
        ["\"a1\"", "\"a/1\""],
    ),
    edit("\"the base\"", "\"the new base\"", "Basket(1).Based()", ["\"the base\"", "\"the new base\""]),
    edit("source * 2", "source * 20", "TwiceReading().Of 2", ["(6, 3)", "(60, 3)"]),
    edit(
        "box {| P = x |}",
        "box {| P = x; Q = 2 |}",
        "System.Text.Json.JsonSerializer.Serialize(Basics.anonymous 1)",
        ["\"{\"P\":1}\"", "\"{\"P\":1,\"Q\":2}\""],
    ),
    edit("{| Q = x |}", "{| Q = x + 1 |}", "Basics.anonymousUsed ()", ["1", "2"]),
    // Slashes in an operator begin no comment.
    edit("\"a\" <//> \"b\"", "\"a\" <//> \"z\"", "Slashes.root", ["\"a/b\"", "\"a/z\""]),
    // A value that is generic is a method.
    edit(
        "let none<'a> : 'a list = []",
        "let none<'a> : 'a list = [ Unchecked.defaultof<'a> ]",
        "Generics.counts ()",
        ["0", "1"],
    ),
    edit("let nothing = []", "let nothing : 'a list = []", "Generics.counts ()", ["0", "0"]),
    // Layout alone changes nothing, wherever it is.
    edit("      Y: int }", "      Y:  int // down\n    }", "Point.Origin.Sum", ["0", "0"]),
    edit("    let Fixed = 4", "    let Fixed =\n        4 // four", "Basics.Fixed", ["4", "4"]),
    edit(
        "let add x = total <- total + x",
        "let add x =\n        total <- total + x",
        "Basket(1).Add 2",
        ["3", "3"],
    ),
    edit(
        "    | Square of int\n",
        "    // four sides\n    | Square of (* side *) int\n",
        "(Round 1).Words",
        ["\"round 1\"", "\"round 1\""],
    ),
    edit("member a.ToB = B(a)", "member a.ToB = B(A())", "A().ToB.GetType().Name", ["\"B\"", "\"B\""]),
];

#[tokio::test]
async fn what_a_save_changes_is_what_runs_from_then_on_and_what_it_takes_back_too() {
    all_edits_are_put_in(program().await).await;
}

#[tokio::test]
async fn fsharp_11_puts_in_the_same() {
    let Some(program) = program_of("MAINSTAY_TEST_DOTNET_FSHARP_11").await else { return };
    all_edits_are_put_in(program).await;
}

async fn all_edits_are_put_in(program: WorkerProgram) {
    let shop = Shop::build();
    let mut session = shop.session_with(program).await;
    // What the session's own code defines is nothing that a file of the project could mean.
    session.defines("let helper (x: int) = -1").await;
    session.defines("let inner (x: int) = -1").await;
    let mut wrong = Vec::new();
    for Edit { old, new, asks, answers: [before, after] } in EDITS {
        shop.save("Shop.fs", old, new);
        let there = shop.swap(&session, &["Shop.fs"]).await;
        let now = answer(&mut session, asks).await;
        shop.restore("Shop.fs");
        let back = shop.swap(&session, &["Shop.fs"]).await;
        let then = answer(&mut session, asks).await;
        if (now.as_str(), then.as_str()) != (*after, *before) || !there.is_applied() || !back.is_applied() {
            wrong.push(format!("{new}\n  {now} for {after}, {then} for {before}: {there:?} {back:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), EDITS.len(), wrong.join("\n"));
}

/// Saves of `Shop.fs` that are not put in: what is there and what it becomes, and the code of the reason.
const OBSTACLES: &[(&str, &str, &str)] = &[
    ("let plain (x: int) = x + 1", "let plain (x: int) = x +", "syntax_error"),
    ("let plain (x: int) = x + 1", "let plain (x: int) = x + \"1\"", "not_compiled"),
    ("let plain (x: int) = x + 1", "let plain (x: int64) = 1", "signature"),
    ("let plain (x: int) = x + 1", "let plain (x: int) = string x", "signature"),
    ("let plain (x: int) = x + 1", "let plain (x: int) (y: int) = x + y", "signature"),
    ("let plain (x: int) = x + 1", "let plain x = x", "signature"),
    ("let helped (x: int) = helper x", "let helped (x: int) = shadowed x |> String.length", "declared_below"),
    ("let plain (x: int) = x + 1", "let plain (x: int) = (Round x).GetHashCode()", "declared_below"),
    ("let late (x: int) = helper x", "let late (x: int) = helper x + 1", "ambiguous"),
    ("it.P | _ -> 0", "it.P | _ -> 1", "anonymous_record"),
    (
        "let aware () = \"here\"",
        "let aware () = Reflection.Assembly.GetExecutingAssembly().FullName",
        "self_aware",
    ),
    ("let aware () = \"here\"", "let aware () = Reflection.MethodBase.GetCurrentMethod().Name", "self_aware"),
    ("counter.Count <- counter.Count + 1", "counter.Count <- counter.Count + 2", "not_compiled"),
    ("counter.Count <- counter.Count + 1", "counter.Bump()", "mutable_struct"),
    ("let inline held (x: int) = x", "let inline held (x: int) = x + 1", "name"),
    ("let Fixed = 4", "let Fixed = 5", "fixed"),
    ("let mutable calls = 0", "let mutable calls = 1", "fixed"),
    ("member _.Plain = 1", "member _.Plain = start", "constructor_state"),
    // Of what bears one name in a type it is not known which is meant.
    ("= label \"x\"", "= label \"y\"", "constructor_state"),
    ("member _.Count = count", "member _.Count = count + 1", "constructor_state"),
    ("= List.length all", "= List.sumBy (fun (this: Account) -> balance) all", "constructor_state"),
    ("(fun (one: Shadowing) -> one.size)", "_.size", "constructor_state"),
    ("member _.Plain = 1", "member _.Plain = place.Count", "constructor_state"),
    ("member _.Plain = 1", "member _.Plain = (let balance = 2 in balance)", "constructor_state"),
    ("member _.Owner = owner", "member _.Owner = (owner <- \"eve\"; owner)", "constructor_state"),
    ("let mutable balance = start", "let mutable balance = start + 1", "shape"),
    ("type Basket(start: int) =", "type Basket(start: int, more: int) =", "shape"),
    ("      Y: int }", "      Y: int\n      Z: int }", "shape"),
    ("    | Square of int", "    | Square of int\n    | Flat", "shape"),
    ("    member _.Unit() = 1\n", "    member _.Unit() = 1\n    member _.Unit(x: int) = x\n", "member"),
    ("    member _.Unit() = 1\n", "    member _.Unit() = 1\n    member _.GetType() = 2\n", "member"),
    (
        "    member _.Unit() = 1\n",
        "    member _.Unit() = 1\n    member _.Delay(f: unit -> int) = f ()\n",
        "member",
    ),
    ("    member _.Unit() = 1\n", "    member _.Unit() = 1\n    override _.GetHashCode() = 2\n", "member"),
    ("    member _.Unit() = 1\n", "", "member"),
    ("static member inline Doubled(x: int) = x + x", "static member inline Doubled(x: int) = x * 3", "fixed"),
    ("override _.ToString() = \"basket\"", "override _.ToString() = base.ToString()", "base_call"),
    ("= base.GetHashCode()", "= base.GetHashCode() + 1", "base_call"),
    ("open Shop.Early\n", "open Shop.Early\nopen Shop.Earliest\n", "opened"),
    ("open Shop.Early\n", "open Shop.Early\nopen Shop.Nowhere\n", "opened"),
    ("open Shop.Early\n", "", "not_compiled"),
    ("open Shop.Early\n", "open Shop.Early\nopen Checked\n", "opened"),
    (
        "    let above (x: int) = x + 1\n    let helper (x: int) = x + 5\n\n    open System.Globalization\n",
        "    open System.Globalization\n\n    let above (x: int) = x + 1\n    let helper (x: int) = x + 5\n",
        "order",
    ),
    ("[<RequireQualifiedAccess>]\n", "", "shape"),
    ("module Strict =", "module Severe =", "shape"),
    (
        "    let unit () = 1\n    let units (a: int) () = a\n",
        "    let units (a: int) () = a\n    let unit () = 1\n",
        "order",
    ),
    ("    let private secret (x: int) = x * 2\n", "", "name"),
    ("    let plain (x: int) = x + 1\n", "", "name"),
    ("[<CompiledName \"Renamed\">]", "[<CompiledName \"Other\">]", "attribute"),
    (
        "    let generic",
        "    [<ComponentModel.Description \"a\">]\n    let fresh (x: int) = x\n    let generic",
        "attribute",
    ),
    ("let absolute (x: int) = Math.Abs x", "let absolute (x: int) = Math.Abs x + 1", "ambiguous"),
    ("let plain (x: int) = x + 1", "let plain (x: int) = plain x + 1", "own_name"),
    ("let operated a b", "let (+!) (a: int) (b: int) = a\n    let operated a b", "name"),
    ("member _.Pure(x: int) = x * 2", "member _.Pure(y: int) = y * 2", "signature"),
    ("let rec even n", "let even n", "syntax_error"),
    ("[<Measure>]\ntype kg", "type kg = int", "shape"),
    ("module rec Mutual", "module Mutual", "shape"),
];

/// Each of these saves of `Shop.fs` is refused with its code; the file is then as it was built.
pub(super) async fn all_are_refused(shop: &Shop, session: &Session, saves: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (old, new, code) in saves {
        shop.save("Shop.fs", old, new);
        let swap = shop.swap(session, &["Shop.fs"]).await;
        if !codes(&swap).contains(code) || !swap.swapped.is_empty() {
            wrong.push(format!("{new}\n  {code}: {swap:?}"));
        }
    }
    shop.restore("Shop.fs");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), saves.len(), wrong.join("\n"));
}

#[tokio::test]
async fn what_cannot_be_put_in_is_said_with_its_reason_and_nothing_changes() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    all_are_refused(&shop, &session, OBSTACLES).await;
    assert_eq!(session.value("Basics.plain 1, Basics.usesSecret 1, Basket(1).Unit()").await, "(2, 5, 1)");
}

#[tokio::test]
async fn a_worker_takes_as_many_saves_as_it_may() {
    let shop = Shop::build();
    let mut beginning = shop.beginning();
    beginning.project.as_mut().unwrap().most_swaps = Some(2);
    let mut session = Session::begin(beginning, Vec::new()).await;
    let plain = "let plain (x: int) = x + 1";
    for (added, refused) in [(10, &[][..]), (20, &[]), (30, &["swap_limit"])] {
        shop.save("Shop.fs", plain, &format!("let plain (x: int) = x + {added}"));
        assert_eq!(codes(&shop.swap(&session, &["Shop.fs"]).await), refused);
    }
    assert_eq!(session.value("Basics.plain 0").await, "20");
    shop.restore("Shop.fs");
    let taken_back = shop.swap(&session, &["Shop.fs"]).await;
    assert!(taken_back.is_applied(), "nothing is compiled for it: {taken_back:?}");
    assert_eq!(session.value("Basics.plain 0").await, "1");
}

#[tokio::test]
async fn what_code_defines_that_ends_while_a_save_is_put_in_stays() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    let runner = session.worker.runner.clone();
    let path = shop.path("Shop.fs");
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let saving = tokio::spawn(async move {
        let mut saves = 0;
        while !over.load(Ordering::SeqCst) {
            saves += 1;
            let plain = format!("let plain (x: int) = x + {saves}");
            let text = Shop::original("Shop.fs").replace("let plain (x: int) = x + 1", &plain);
            fs::write(&path, text).unwrap();
            let swap =
                runner.kernel().unwrap().swap(vec![path.display().to_string()]).await.unwrap().unwrap();
            assert!(swap.is_applied(), "{swap:?}");
        }
        saves
    });
    let mut defined = Vec::new();
    for round in 0..12 {
        // Each begins where the one before it may end within a check.
        let names: Vec<_> = (0..4).map(|part| format!("d{round}_{part}")).collect();
        let parts =
            names.iter().map(|name| format!("let {name} = 1\nSystem.Threading.Thread.Sleep {}", 7 * round));
        let ran = session.eval(&parts.collect::<Vec<_>>().join("\n;;\n")).await;
        assert_eq!(ran.report.ending, JobEnding::Completed, "{:?}", ran.report);
        defined.extend(names);
    }
    is_over.store(true, Ordering::SeqCst);
    let saves = saving.await.unwrap();
    let all = answer(&mut session, &format!("List.sum [ {} ]", defined.join("; "))).await;
    assert_eq!(all, defined.len().to_string(), "after {saves} saves");
}

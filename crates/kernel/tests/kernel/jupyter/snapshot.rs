//! Values that a Python kernel keeps, and gives to the one that comes after it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use mainstay_kernel::jupyter::SnapshotPlace;
use mainstay_model::JobId;
use mainstay_model::replay::Snapshot;
use mainstay_runner::AskAnswer;
use serde_json::Value;
use tempfile::TempDir;

use crate::jupyter::session::{Session, soon};
use crate::jupyter::tongue::IPYKERNEL;

/// A session of which values are kept, over several kernels.
struct Kept {
    folder: TempDir,
    session: Session,
    /// What ran, in order.
    ran: Vec<(JobId, String)>,
}

impl Kept {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let session = Session::start_with(&IPYKERNEL, place(folder.path(), 64 << 20)).await;
        Self { folder, session, ran: Vec::new() }
    }

    async fn cells(&mut self, cells: &[&str]) {
        for code in cells {
            let job = self.session.submit(code).await;
            let ran = self.session.end_of(job).await;
            assert_eq!(ran.report.ending, mainstay_model::JobEnding::Completed, "{code}: {}", ran.printed);
            self.ran.push((job, (*code).to_owned()));
        }
    }

    /// Waits until all that ran is in what is kept, and gives that.
    async fn snapshot(&self) -> Snapshot {
        let last = self.ran.last().unwrap().0;
        let is_there = async {
            loop {
                let snapshot = self.session.kernel().snapshot().await;
                if let Ok(Some(snapshot)) = snapshot
                    && snapshot.cells.last().is_some_and(|cell| cell.job == last)
                {
                    return snapshot;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        soon(is_there).await
    }

    /// Another kernel takes the place of this one, runs again what has to, and is given the values; the cells that ran again.
    async fn rebuilt(&mut self) -> Vec<usize> {
        let snapshot = self.snapshot().await;
        self.session.kernel().kill();
        self.session.exit().await;
        self.session = Session::start_with(&IPYKERNEL, place(self.folder.path(), 64 << 20)).await;
        assert_eq!(self.session.kernel().snapshot().await.unwrap(), Some(snapshot.clone()));
        let jobs: Vec<_> = self.ran.iter().map(|(job, _)| *job).collect();
        let plan = snapshot.plan(&jobs).unwrap();
        let again: Vec<_> = (0..plan.before.len()).filter(|index| plan.before[*index].is_some()).collect();
        for index in &again {
            let (job, code) = self.ran[*index].clone();
            self.session.submit_as(job, &code).await;
            self.session.end_of(job).await;
        }
        self.session.kernel().restore().await.unwrap();
        again
    }

    async fn prints(&mut self, code: &str) -> String {
        let job = self.session.submit(&format!("print({code})")).await;
        let ran = self.session.end_of(job).await;
        self.ran.push((job, code.to_owned()));
        format!("{}{}", ran.stdout.trim_end(), ran.stderr)
    }
}

fn place(folder: &Path, bytes: u64) -> SnapshotPlace {
    SnapshotPlace { folder: folder.join("kept"), bytes }
}

fn names(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn values_are_the_same_again_with_all_that_they_share() {
    let mut kept = Kept::start().await;
    kept.cells(&[
        "import numpy as np, random\nimport pandas as pd",
        "def f(x):\n    global count\n    count += 1\n    return x * k\nclass P:\n    def __init__(self): self.v = []",
        "k, count = 2, 0\nrows = [1]; alias = rows; holder = {'rows': rows}",
        "a = np.arange(100000.); view = a[10:20]; table = pd.DataFrame({'x': a[:10]})",
        "p = P(); p.v = rows\nfact = lambda n: 1 if n < 2 else n * fact(n - 1)",
        "def make(n):\n    def inner(): return n + k\n    return inner\ninner = make(5); f(1)",
        "random.seed(3); np.random.seed(4)",
        "6 * 7",
    ])
    .await;
    assert_eq!(kept.rebuilt().await, [0, 1]);
    assert_eq!(kept.prints("(_, count, fact(5), inner(), isinstance(p, P))").await, "(42, 1, 120, 7, True)");
    assert_eq!(
        kept.prints("round(random.random(), 6), round(np.random.rand(), 6)").await,
        "0.237965 0.96703"
    );
    kept.cells(&["rows.append(2); a[12] = -1; k = 10"]).await;
    assert_eq!(kept.prints("alias, holder['rows'], p.v").await, "[1, 2] [1, 2] [1, 2]");
    assert_eq!(kept.prints("view[2], inner(), f(1), count, table.x.sum()").await, "-1.0 15 10 2 45.0");
    // And so again, with what has run since.
    assert_eq!(kept.rebuilt().await, [0, 1]);
    assert_eq!(kept.prints("alias is rows, view[2], inner(), count").await, "True -1.0 15 2");
}

#[tokio::test]
async fn what_cannot_be_kept_is_named_and_runs_again() {
    let mut kept = Kept::start().await;
    kept.cells(&[
        "import sqlite3, numpy as np",
        "log = []\nbig = np.zeros(20_000_000)\nnumbers = (n * n for n in range(9))",
        "db = sqlite3.connect(':memory:')\ndb.execute('create table t (x)'); db.execute('insert into t values (3)')",
        "[row] = db.execute('select * from t')",
        "# mainstay: rerun\nmarked = 1",
        "total = row[0] + 1",
        "np.made_here = 5",
    ])
    .await;
    let snapshot = kept.snapshot().await;
    let not_kept: BTreeSet<_> = snapshot.not_kept.keys().cloned().collect();
    assert_eq!(not_kept, names(&["_", "big", "db", "marked", "numbers"]));
    assert!(snapshot.not_kept["big"].contains("snapshot-bytes"), "{snapshot:?}");
    assert!(snapshot.not_kept["db"].contains("sqlite3.Connection"), "{snapshot:?}");
    assert_eq!(kept.rebuilt().await, [0, 1, 2, 3, 4, 6]);
    assert_eq!(
        kept.prints("next(numbers), big.size, row, total, marked, np.made_here").await,
        "0 20000000 (3,) 4 1 5"
    );
    assert_eq!(kept.prints("list(db.execute('select count(*) from t'))").await, "[(1,)]");
}

#[tokio::test]
async fn what_code_shares_and_changes_is_as_it_was() {
    let mut kept = Kept::start().await;
    kept.cells(&[
        "import os, sys\nfrom random import random, seed",
        "class Plain:\n    total = 0\n    def add(self): self.total += 1\nclass Counted:\n    made = 0\n    def __init__(self): Counted.made += 1",
        "def make():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n        return n\n    return inc, lambda: n\ninc, get = make()",
        "inc(); plain = Plain(); one = Counted(); two = Counted(); plain.add()",
        "rows = []; add = rows.append; paths = sys.path; home = os.environ\nloop = {}; loop['self'] = loop",
        "setattr(Plain, 'late', 7)\n__version__ = '1'",
        "# mainstay: rerun\nconfig = [1]",
        "holder = {'config': config}",
        "folder = os.getcwd(); os.chdir('/tmp'); numbers = (n for n in [1])",
        "os.chdir(folder)",
        "def max(*_): return 'mine'",
        "del max",
        "seed(5); caught = open('/dev/null')",
    ])
    .await;
    let snapshot = kept.snapshot().await;
    assert_eq!(snapshot.not_kept.get("caught").map(String::as_str), Some("it is an open file"));
    kept.rebuilt().await;
    assert_eq!(kept.prints("inc(), get(), plain.total, Plain.late, __version__").await, "2 2 1 7 1");
    assert_eq!(
        kept.prints("Counted.made, type(one) is Counted, holder['config'] is config").await,
        "2 True True"
    );
    assert_eq!(
        kept.prints("add(1), rows, paths is sys.path, home is os.environ").await,
        "None [1] True True"
    );
    assert_eq!(kept.prints("os.getcwd() == folder, loop['self'] is loop, max(1, 2)").await, "True True 2");
    kept.cells(&["seed(5); first = random(); seed(5)"]).await;
    assert_eq!(kept.prints("first == random()").await, "True");
}

#[tokio::test]
async fn a_kernel_that_is_being_rebuilt_keeps_what_it_is_to_be_given() {
    let mut kept = Kept::start().await;
    kept.cells(&["def f(): return 1", "rows = [1]", "more = [rows]"]).await;
    let snapshot = kept.snapshot().await;
    kept.session.kernel().kill();
    kept.session.exit().await;
    kept.session = Session::start_with(&IPYKERNEL, place(kept.folder.path(), 64 << 20)).await;
    let (job, code) = kept.ran[0].clone();
    kept.session.submit_as(job, &code).await;
    kept.session.end_of(job).await;
    // By then it would have been written down.
    let mut clock = Kept::start().await;
    clock.cells(&["later = 1"]).await;
    clock.snapshot().await;
    assert_eq!(kept.session.kernel().snapshot().await.unwrap(), Some(snapshot));
    kept.session.kernel().restore().await.unwrap();
    assert_eq!(kept.prints("rows, more[0] is rows").await, "[1] True");
}

#[tokio::test]
async fn nothing_is_kept_once_there_is_a_secret() {
    let (mut kept, mut clock) = (Kept::start().await, Kept::start().await);
    kept.cells(&["before = 1"]).await;
    kept.snapshot().await;
    let job = kept.session.submit("import getpass\nsecret = getpass.getpass()").await;
    let (ask, _) = kept.session.asks(job).await;
    let answer = AskAnswer { ask, answer: Ok(Value::from("swordfish")), is_secret: true };
    kept.session.kernel().answer(answer).await;
    kept.session.end_of(job).await;
    kept.cells(&["after = secret * 2"]).await;
    // By then it would have begun, and what follows in the same kernel comes after that.
    clock.cells(&["later = 1"]).await;
    clock.snapshot().await;
    kept.session.eval("1").await;
    let snapshot = kept.session.kernel().snapshot().await.unwrap().unwrap();
    assert_eq!(snapshot.kept, names(&["before"]));
    let files = std::fs::read_dir(kept.folder.path().join("kept")).unwrap();
    for file in files {
        let text = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!text.windows(9).any(|part| part == b"swordfish"));
    }
}

#[tokio::test]
async fn a_damaged_file_and_another_python_restore_nothing() {
    let mut kept = Kept::start().await;
    kept.cells(&["rows = list(range(10))"]).await;
    kept.snapshot().await;
    let folder = kept.folder.path().join("kept");
    let contents = std::fs::read_to_string(folder.join("snapshot.json")).unwrap();
    let file = serde_json::from_str::<Value>(&contents).unwrap()["kept"][0]["pickle"].clone();
    std::fs::write(folder.join(file.as_str().unwrap()), b"damaged").unwrap();
    let error = kept.session.kernel().restore().await.unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
    std::fs::write(folder.join("snapshot.json"), contents.replace("\"python\": \"", "\"python\": \"2.7"))
        .unwrap();
    assert_eq!(kept.session.kernel().snapshot().await.unwrap(), None);
}

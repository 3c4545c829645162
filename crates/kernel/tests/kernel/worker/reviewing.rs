//! What a review suggests, with a real worker: each rule as docs/fsharp-review.md shows it, and code that people wrote.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use mainstay_runner::query::{KernelQuery, Review};

use super::{Session, soon};

impl Session {
    async fn review(&self, code: &str) -> Review {
        let query = KernelQuery::Review { code: code.to_owned() };
        soon(self.worker.runner.kernel().unwrap().query(query)).await.unwrap().review().unwrap()
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap()
}

/// The rules as they are documented: what each is called, code that it speaks of, and code that it does not.
fn rules() -> Vec<(String, String, String)> {
    let text = fs::read_to_string(repository().join("docs/fsharp-review.md")).unwrap();
    text.split("\n## ")
        .skip(1)
        .map(|section| {
            let code = |number: usize| section.split("```").nth(number).unwrap();
            let code = |number| code(number).strip_prefix("fsharp\n").unwrap().to_owned();
            (section[..6].to_owned(), code(1), code(3))
        })
        .collect()
}

fn lines(review: &Review) -> String {
    let line = |one: &mainstay_model::Diagnostic| {
        format!("{}:{} {} {}\n", one.start.line, one.start.column, one.code, one.message)
    };
    review.remarks.iter().map(line).collect()
}

#[tokio::test]
async fn each_rule_speaks_of_what_its_documentation_shows_and_not_of_what_it_would_have() {
    let session = Session::start().await;
    let mut said = String::new();
    for (rule, bad, good) in rules() {
        let review = session.review(&bad).await;
        assert!(review.is_parsed, "{rule}: {}", lines(&review));
        let codes: Vec<&str> = review.remarks.iter().map(|one| one.code.as_str()).collect();
        assert_eq!(codes, [rule.as_str()], "{bad}\n{}", lines(&review));
        said.push_str(&lines(&review));
        let better = session.review(&good).await;
        assert!(better.is_parsed && better.remarks.is_empty(), "{good}\n{}", lines(&better));
    }
    insta::assert_snapshot!(said);
}

#[tokio::test]
async fn an_argument_that_is_named_is_no_comparison() {
    let session = Session::start().await;
    let code = "let t = System.Threading.Thread((fun () -> ()), IsBackground = true)\nlet b = new Box(Text = null)\n\
                [<System.AttributeUsage(System.AttributeTargets.Class, AllowMultiple = true)>]\ntype A() = inherit System.Attribute()";
    assert_eq!(lines(&session.review(code).await), "");
    let assigned = session.review("let set (w: System.IO.StreamWriter) b = w.AutoFlush <- (b = true)").await;
    assert!(lines(&assigned).contains("FSR002"), "{}", lines(&assigned));
}

#[tokio::test]
async fn every_rule_is_documented() {
    let source = fs::read_to_string(repository().join("kernels/fsharp/Review.fs")).unwrap();
    let documented = rules();
    for (index, _) in source.match_indices("\"FSR") {
        let rule = &source[index + 1..index + 7];
        assert!(documented.iter().any(|(documented, ..)| documented == rule), "{rule}");
    }
}

#[tokio::test]
async fn code_that_people_wrote_is_reviewed_with_its_places() {
    let session = Session::start().await;
    let mut said = String::new();
    for folder in ["examples", "examples/shop", "kernels/fsharp", "kernels/fsharp/display"] {
        let files = fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let is_source = |file: &PathBuf| file.extension().is_some_and(|kind| kind == "fs" || kind == "fsx");
        let files: BTreeSet<PathBuf> = files.filter(is_source).collect();
        for file in files {
            let code = fs::read_to_string(&file).unwrap();
            let review = session.review(&code).await;
            assert!(review.is_parsed, "{}: {}", file.display(), lines(&review));
            let name = file.strip_prefix(repository()).unwrap().display();
            for remark in &review.remarks {
                // The number of the line changes with whatever is above it.
                let start = remark.start.column as usize - 1;
                let from = &code.lines().nth(remark.start.line as usize - 1).unwrap()[start..];
                said.push_str(&format!("{name}: {from}\n    {} {}\n", remark.code, remark.message));
            }
        }
    }
    insta::assert_snapshot!(said);
}

#[tokio::test]
async fn what_cannot_be_parsed_is_answered_by_the_compiler() {
    let session = Session::start().await;
    let review = session.review("let x = (1 +").await;
    assert!(!review.is_parsed);
    assert_eq!(review.remarks[0].severity, mainstay_model::Severity::Error);
    let placed = session.review("let! x = async { return 1 }\nlet y = not (x = 1)").await;
    assert_eq!(lines(&placed), "2:9 FSR003 there is an operator for it: `x <> 1`\n");
}

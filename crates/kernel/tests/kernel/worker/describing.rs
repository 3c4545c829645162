//! What a worker says of code that may have to run again in it: on every SDK the same.

use std::fmt::Write;
use std::fs;

use mainstay_model::reload::Description;
use mainstay_runner::CodeText;

use super::smoke::session_on;
use super::*;

impl Session {
    async fn describe(&self, codes: &[String]) -> Vec<Description> {
        let codes = codes.iter().map(|code| CodeText { code: code.clone(), file: None }).collect();
        soon(self.worker.runner.kernel().unwrap().describe(codes)).await.unwrap().unwrap()
    }

    /// A line for each.
    async fn descriptions(&self, codes: &[String]) -> String {
        let mut lines = String::new();
        for (code, one) in codes.iter().zip(self.describe(codes).await) {
            let Description { defines, defines_others, loads, runs_once } = one;
            let code = code.replace('\n', "⏎").replace(" \"/", " \"…/");
            let code =
                code.split('"').map(|part| part.rsplit('/').next().unwrap()).collect::<Vec<_>>().join("\"");
            // A namespace of the framework has more from version to version.
            let defines = match defines.iter().any(|name| name == "StringBuilder") {
                true => "StringBuilder and others".to_owned(),
                false => defines.join(" "),
            };
            write!(lines, "{code} | {defines}").unwrap();
            let loads = loads.join(" ");
            let more = [(defines_others, "…".to_owned()), (!loads.is_empty(), format!("loads {loads}"))];
            more.into_iter()
                .filter(|(is_so, _)| *is_so)
                .for_each(|(_, text)| lines.push_str(&format!(" | {text}")));
            runs_once.into_iter().for_each(|reason| lines.push_str(&format!(" | {reason}")));
            lines.push('\n');
        }
        lines
    }
}

const TAX: &str = "let rate = 0.2\nlet of_ x = x * rate\nmodule Inner =\n    let deep = 1\n";
const BROKEN: &str = "let rate = \n";
const PRINTS: &str = "module Loud.Voice\nlet voice = 1\nprintfn \"%d\" voice\n";
const NESTED: &str = "#load \"tax.fsx\"\ntype Kind = Big | Small\n";
const OPENS: &str = "[<AutoOpen>]\nmodule Wide\nlet anything = 1\n";

const CODES: &str = r#"
let price = 100.0 * Tax.rate
let a, (b: int) = 1, 2
let rec f x = if x = 0 then g x else f (x - 1)⏎and g y = counter <- y
let list = [ counter <- 1 ]
let cell = (let r = ref 0 in r := 1; r)
let () = printfn "x"
let _ : int = f 1
do printfn "x"
printfn "%f" (price * 2.0)
List.map (fun x -> x + 1) [ 1; 2 ]
Tax.rate + price
Tax.of_ 2.0
f 1
counter <- 2
use file = System.IO.File.OpenRead "x"
let again = it + 1
type T = { Amount: int; Other: T option } with member this.Twice = 2 * this.Amount
type U = Case of int | Empty
exception Bad of string
module M =⏎    let inner = 1
module M =⏎    printfn "x"
module Short = System.IO
let (+.) x y = x + y
let (|Even|Odd|) n = if n % 2 = 0 then Even else Odd
open System.Text
open System.Net.Mail
open Tax
open Something
[<AutoOpen>]⏎module Auto =⏎    let open_ = 1
let x = 1;;⏎let y = x;;⏎printfn "x"
#time⏎let z = 1
#r "nuget: FParsec"⏎let z = 1
#r "lib.dll"⏎#nowarn "40"⏎open Tax
let let = 1
"#;

async fn says(session: Session) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let files = [
        ("tax.fsx", TAX),
        ("broken.fsx", BROKEN),
        ("prints.fsx", PRINTS),
        ("nested.fsx", NESTED),
        ("opens.fsx", OPENS),
    ];
    for (name, text) in files {
        fs::write(path(name), text).unwrap();
    }
    let loads = ["tax.fsx", "broken.fsx", "prints.fsx", "nested.fsx", "opens.fsx", "gone.fsx"];
    let loads = loads.iter().map(|name| format!("#load \"{}\"", path(name)));
    let codes = CODES.trim().lines().map(|code| code.replace('⏎', "\n"));
    let said = session.descriptions(&loads.chain(codes).collect::<Vec<_>>()).await;
    insta::assert_snapshot!(said);
}

#[tokio::test]
async fn what_code_defines_loads_and_must_do_only_once_is_told() {
    says(Session::start().await).await;
}

/// Nothing but the types of the framework differs.
async fn says_the_same(variable: &str) {
    if let Some((session, _)) = session_on(variable).await {
        let codes = CODES.trim().lines().map(|code| code.replace('⏎', "\n"));
        let codes: Vec<_> = codes.filter(|code| !code.starts_with("open System")).collect();
        assert_eq!(session.describe(&codes).await, Session::start().await.describe(&codes).await);
    }
}

#[tokio::test]
async fn fsharp_11_says_the_same() {
    says_the_same("MAINSTAY_TEST_DOTNET_FSHARP_11").await;
}

#[tokio::test]
async fn sdk_3_1_says_no_less() {
    let Some((session, _)) = session_on("MAINSTAY_TEST_DOTNET_3_1").await else { return };
    let codes: Vec<_> = CODES.trim().lines().map(|code| code.replace('⏎', "\n")).collect();
    let (there, here) = (session.describe(&codes).await, Session::start().await.describe(&codes).await);
    for ((code, there), here) in codes.iter().zip(there).zip(here) {
        let is_told = there.runs_once.is_some() || here.runs_once.is_none();
        let is_known = |name| there.defines.contains(name) || there.defines_others;
        let names_types = code.starts_with("open System");
        assert!(is_told && (names_types || here.defines.iter().all(is_known)), "{code}: {there:?} {here:?}");
    }
}

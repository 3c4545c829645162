//! What a model does in a folder with an F# project. The daemon is started by the agent's server, whose environment may be filtered: .NET is found
//! through the user's login shell.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent_clients::clients::{Client, Turn};
use crate::agent_clients::conversation::Running;
use crate::agent_clients::stage::{Stage, behind, code, has_begun};
use crate::support::nunit;

/// Its build waits for a file.
const PROJECT: &str = r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Money.fs" /><Compile Include="Cart.fs" /></ItemGroup>
  <Target Name="Wait" BeforeTargets="CopyFilesToOutputDirectory">
    <Exec Command="while [ ! -e gate-of-build ]; do sleep 0.01; done" />
  </Target>
</Project>"#;
const MONEY: &str = "namespace Shop
module Money =
    let euros (cents: int) = sprintf \"%d.%02d\" (cents / 100) (cents % 100)
";
const CART: &str = "namespace Shop
type Item = { Name: string; Price: int }
module Cart =
    let total (items: Item list) = items |> List.sumBy (fun item -> item.Price)
    let average (items: Item list) =
        total items / List.length items
";

/// It opens the project, which is built first, checks code, runs it right, wrong and to an exception, answers a question of it, runs tests, has
/// a changed file built, loses its daemon in mid-call, and works on.
pub(crate) fn works_in_a_project_of_fsharp(client: &'static dyn Client) {
    let files = [("Shop.fsproj", PROJECT), ("Money.fs", MONEY), ("Cart.fs", CART)];
    let mut stage = Stage::with_files(client, "fsharp", &files);
    let (folder, waiting) = (stage.world.work(), stage.waiting_in_fsharp());
    let mut conversation = stage.conversation_of_login_shell(client);
    let gate = stage.gate();
    let mut turn = conversation.turn(Turn::First, &mut stage.golden);

    opens_the_project(&mut turn, &folder);
    runs_code(&mut turn);
    answers_a_question(&mut turn);
    runs_tests(&mut turn, &folder);

    std::fs::write(folder.join("Money.fs"), MONEY.replace("%d.%02d", "%d,%02d")).unwrap();
    let built = until_ended(&mut turn, "hard_reset_session", &json!({ "rebuild": true, "keep": true }));
    assert!(built.contains("Shop.fsproj"), "{built}");
    let value = turn.call("send_code", &code("Money.euros tea.Price")).text();
    assert!(value.contains("\"2,50\""), "{value}");

    turn.begin("send_code", &code(&waiting));
    has_begun(&stage.world);
    stage.world.kill_daemon();
    std::fs::write(gate, "").unwrap();
    let told = turn.result().text();
    assert!(told.contains("rested"), "{told}");
    let value = until_ended(&mut turn, "send_code", &code("Money.euros (tea.Price * 2)"));
    assert!(value.contains("\"5,00\""), "{value}");
    turn.end();
    insta::assert_snapshot!(stage.name(), stage.golden.text());
}

fn opens_the_project(turn: &mut Running<'_>, folder: &Path) {
    let create = json!({ "kind": "fsharp", "name": "main", "wait": 1 });
    let building = turn.call_until("create_session", &create, |shown| shown.contains("building the project"));
    assert!(!building.contains("cancel_eval"), "nothing runs yet that it could stop: {building}");
    std::fs::write(folder.join("gate-of-build"), "").unwrap();
    let created = until_ended(turn, "get_result", &json!({ "id": behind(&building, "[id ") }));
    assert!(created.contains("send_code runs fsharp now"), "{created}");
    assert!(created.contains("Shop.fsproj: 1 assembly loaded"), "{created}");
}

fn runs_code(turn: &mut Running<'_>) {
    let tea = "let tea = { Name = \"tea\"; Price = 250 }\n";
    let wrong = turn.call("check_code", &code(&format!("{tea}Cart.totl [ tea ]"))).text();
    assert!(wrong.contains("2:6 error FS0039") && wrong.contains("totl"), "{wrong}");
    let value = turn.call("send_code", &code(&format!("{tea}Cart.total [ tea; tea ] |> Money.euros"))).text();
    assert!(value.contains("\"5.00\""), "{value}");
    let wrong =
        turn.call("send_code", &code("let prices = [ tea.Price ]\nlet all: string list = prices\nall"));
    assert!(wrong.text().contains("2:24 error FS0001") && wrong.text().contains("string list"), "{wrong:?}");
    assert_ne!(wrong.is_error, Some(false));
    let failed = turn.call("send_code", &code("let averages = [ [ tea ]; [] ] |> List.map Cart.average"));
    assert!(failed.text().contains("DivideByZeroException"), "{failed:?}");
    assert!(failed.text().contains("Cart.fs:line 6"), "{failed:?}");
    assert_ne!(failed.is_error, Some(false));
}

fn answers_a_question(turn: &mut Running<'_>) {
    let asks = "printf \"How many? \"\nlet count = System.Console.ReadLine() |> int\nCart.total (List.replicate count tea)";
    let asked = turn.call("send_code", &code(asks)).text();
    for words in ["How many?", "answer_ask", "cancel_eval"] {
        assert!(asked.contains(words), "{words}: {asked}");
    }
    let answered = turn.call("answer_ask", &json!({ "ask": behind(&asked, "[ask "), "answer": "3" })).text();
    assert!(answered.contains("750"), "{answered}");
}

fn runs_tests(turn: &mut Running<'_>, folder: &Path) {
    let assembly = folder.join("nunit.framework.dll");
    std::fs::copy(nunit(), &assembly).unwrap();
    let tests = format!(
        "#r @\"{}\"\nopen NUnit.Framework\n[<Test>]\nlet ``tea costs two fifty`` () = Assert.AreEqual(\"2.50\", Money.euros tea.Price)\n[<Test>]\nlet ``tea is free`` () = Assert.AreEqual(0, tea.Price)",
        assembly.display()
    );
    let defined = turn.call("send_code", &code(&tests)).text();
    assert!(defined.contains("tea is free"), "{defined}");
    let ran = turn.call("run_tests", &json!({})).text();
    assert!(ran.contains("Expected: 0") && ran.contains("passed 1, failed 1"), "{ran}");
}

/// Has the model call a tool, and wait until that has ended.
fn until_ended(turn: &mut Running<'_>, tool: &str, arguments: &Value) -> String {
    turn.call_until(tool, arguments, |shown| !shown.contains("still running"))
}

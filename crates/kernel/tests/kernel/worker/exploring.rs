//! What a session has, asked of a real worker: names, what is found by a text, what is bound.

use mainstay_model::{Binding, Error, JobId};
use mainstay_runner::Submission;
use mainstay_runner::query::{KernelQuery, Members, Symbols};

use super::{Session, soon};

impl Session {
    async fn has_run(&mut self, code: &str) {
        let job = self.submit(code).await;
        self.end_of(job).await;
    }

    async fn members(&self, name: &str) -> Result<Members, Error> {
        let query = KernelQuery::Members { name: name.to_owned() };
        soon(self.worker.runner.kernel().unwrap().query(query)).await?.members()
    }

    async fn symbols(&self, text: &str, limit: u32) -> Symbols {
        let query = KernelQuery::Symbols { text: text.to_owned(), limit };
        soon(self.worker.runner.kernel().unwrap().query(query)).await.unwrap().symbols().unwrap()
    }

    async fn values(&self) -> Vec<Binding> {
        soon(self.worker.runner.kernel().unwrap().query(KernelQuery::Values)).await.unwrap().values().unwrap()
    }
}

const ZOO: &str = "
module Zoo =
    /// Something that is alive.
    type Animal(name: string) =
        /// What it is called.
        member _.Name = name
    type Dog(name) =
        inherit Animal(name)
        member _.Bark(times: int) = String.replicate times \"wow\"
        interface System.IDisposable with
            member _.Dispose() = ()
    /// How many legs a dog has.
    let legsOfDog = 4
    let feed (animal: Animal) = animal.Name.Length
";

async fn a_module_does_not_hide_the_type_of_its_name(session: &mut Session) {
    session.has_run("type Cart = { Items: int }\nmodule Cart =\n    let empty = { Items = 0 }").await;
    session.has_run("module Shop =\n    type Order = Open | Paid\n    module Order =\n        let all = [ Open; Paid ]").await;
    for (name, of_module, of_type) in [
        ("Option", "map", "Some"),
        ("Result", "bind", "Error"),
        ("List", "rev", "Head"),
        ("Map", "add", "Count"),
        ("Cart", "empty", "Items"),
        ("Shop.Order", "all", "Paid"),
    ] {
        let found = session.members(name).await.unwrap();
        let has = |wanted: &str| found.members.iter().any(|member| member.name == wanted);
        assert_eq!((has(of_module), has(of_type)), (true, true), "{name}: {found:?}");
    }
}

async fn a_type_is_told_with_what_it_inherits_and_implements(session: &mut Session) {
    session.has_run(ZOO).await;
    let dog = session.members("Zoo.Dog").await.unwrap();
    assert_eq!((dog.kind.as_str(), &*dog.bases), ("type", &["Zoo.Animal".to_owned(), "obj".into()][..]));
    assert_eq!(dog.interfaces, ["System.IDisposable"]);
    let bark = dog.members.iter().find(|member| member.name == "Bark").unwrap();
    assert_eq!((bark.kind.as_str(), bark.signature.as_deref()), ("method", Some("int -> string")));
    let animal = session.members("Zoo.Animal").await.unwrap();
    assert_eq!(animal.documentation.as_deref(), Some("Something that is alive."));
    let name = animal.members.iter().find(|member| member.name == "Name").unwrap();
    assert_eq!(name.documentation.as_deref(), Some("What it is called."));
    let zoo = session.members("Zoo").await.unwrap();
    assert_eq!((zoo.kind.as_str(), zoo.bases.len()), ("module", 0));
    assert!(zoo.members.iter().any(|member| member.name == "feed"), "{zoo:?}");
    let refused = session.members("Zoo.Cat").await;
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
}

async fn what_is_referred_to_is_documented(session: &mut Session) {
    for (name, documentation) in [
        ("System.String", "Represents text as a sequence of UTF-16 code units."),
        ("System.Collections.Generic.Dictionary", "Represents a collection of keys and values."),
        ("List.map", "Builds a new collection whose elements are the results"),
    ] {
        let told = session.members(name).await.unwrap().documentation.unwrap_or_default();
        assert!(told.starts_with(documentation), "{name}: {told:?}");
    }
    let string = session.members("System.String").await.unwrap();
    let trim = string.members.iter().find(|member| member.name == "Trim").unwrap();
    assert!(trim.documentation.is_some(), "{trim:?}");
}

#[tokio::test]
async fn names_are_found_in_the_session_and_in_what_it_refers_to() {
    let mut session = Session::start().await;
    session.has_run(ZOO).await;
    let dogs = session.symbols("dog", 10).await;
    let names: Vec<_> = dogs.items.iter().map(|item| item.full_name.as_str()).collect();
    assert_eq!(
        names[..2],
        ["Zoo.Dog", "Zoo.legsOfDog"],
        "what is called so comes before what has it in its name"
    );
    assert_eq!(dogs.items[1].signature.as_deref(), Some("int"));
    assert_eq!(dogs.items[1].documentation.as_deref(), Some("How many legs a dog has."));
    assert!(dogs.items.iter().all(|item| item.assembly.is_none()), "{dogs:?}");
    let builders = session.symbols("StringBuilder", 3).await;
    assert_eq!(builders.items[0].full_name, "System.Text.StringBuilder");
    assert!(builders.items[0].assembly.is_some(), "{builders:?}");
    let functions = session.symbols("List.chunkBy", 5).await;
    assert_eq!(
        functions.items[0].full_name, "Microsoft.FSharp.Collections.List.chunkBySize",
        "{functions:?}"
    );
    assert_eq!(functions.items[0].kind, "function");
    let many = session.symbols("e", 7).await;
    assert!(many.items.len() == 7 && many.found > 1000, "{}", many.found);
    // Of two with one name only the newer can be reached.
    session.has_run("module Zoo = let legsOfDog = \"four\"").await;
    let legs = session.symbols("legsOfDog", 10).await;
    assert_eq!((legs.found, legs.items[0].signature.as_deref()), (1, Some("string")));
}

#[tokio::test]
async fn what_is_bound_is_told_as_it_is_now() {
    let mut session = Session::start().await;
    session
        .has_run("let answer = 42\nlet mutable count = 0\nlet double x = x * 2\nlet cells = [| 1; 2 |]")
        .await;
    session.has_run("count <- 5\ncells.[0] <- 9").await;
    session.has_run("let answer = \"forty-two\"").await;
    session.has_run("let never = seq { yield 1; failwith \"it was looked at\" }").await;
    session.has_run("answer.Length").await;
    let told: Vec<_> = session
        .values()
        .await
        .into_iter()
        .map(|Binding { name, value_type, value }| {
            format!("{name}: {value_type} = {}", value.unwrap_or_default())
        })
        .collect();
    assert_eq!(told[0].split(" = ").next(), Some("never: int seq"));
    insta::assert_debug_snapshot!(told[1..], @r#"
    [
        "answer: string = \"forty-two\"",
        "cells: int array = [|9; 2|]",
        "double: x: int -> int = ",
        "count: int = 5",
    ]
    "#);
    session.has_run("let wrong = 1 / 0").await;
    assert!(session.values().await.iter().all(|binding| binding.name != "wrong"));
}

#[tokio::test]
async fn to_tell_what_is_bound_runs_no_code_of_the_sessions() {
    let mut session = Session::start().await;
    let counts = "let mutable asked = 0\ntype Tells() = override _.ToString() = (asked <- asked + 1; \"told\")\nlet tells = Tells()";
    session.has_run(counts).await;
    let asked = |values: Vec<Binding>| values.into_iter().find(|one| one.name == "asked").unwrap().value;
    let first = asked(session.values().await);
    assert_eq!(asked(session.values().await), first);
}

#[tokio::test]
async fn what_is_withheld_is_told_to_nobody() {
    let mut session = Session::start().await;
    session.has_run("let pin = 1").await;
    let job = JobId::from_uuid(uuid::Uuid::now_v7());
    let code = "let pin = 4711\ntype Hidden = { Secret: int }\nlet secretWord = \"x\"".to_owned();
    let submission = Submission { job, code, file: None, command_line: None, is_withheld: true };
    session.worker.runner.kernel().unwrap().run(submission).await;
    session.end_of(job).await;
    session.has_run("let open' = 2").await;
    let told: Vec<_> = session.values().await.into_iter().map(|binding| binding.name).collect();
    assert_eq!(told, ["open'"]);
    assert_eq!(session.symbols("secretWord", 5).await.found, 0);
    assert_eq!(
        session.symbols("Hidden", 5).await.items.iter().filter(|item| item.assembly.is_none()).count(),
        0
    );
    assert!(session.members("Hidden").await.is_err());
    assert_eq!(session.symbols("open'", 5).await.found, 1);
}

/// One session for all of it. The first asserts what was bound first, so it stays the first.
#[tokio::test]
async fn names_are_told_with_their_signatures_documentation_and_members() {
    let mut session = Session::start().await;
    functions_operators_and_values_are_told_with_their_signatures(&mut session).await;
    a_module_does_not_hide_the_type_of_its_name(&mut session).await;
    what_is_referred_to_is_documented(&mut session).await;
    a_type_is_told_with_what_it_inherits_and_implements(&mut session).await;
}

async fn functions_operators_and_values_are_told_with_their_signatures(session: &mut Session) {
    session
        .has_run("let xs = [1; 2]\nlet (|>>) x f = f x\nlet inline sum x y = x + y\nlet most x y = max x y\n")
        .await;
    for (name, kind, signature) in [
        ("List.map", "function", "mapping: ('T -> 'U) -> list: 'T list -> 'U list"),
        ("xs", "value", "int list"),
        ("(|>>)", "function", "x: 'a -> f: ('a -> 'b) -> 'b"),
        ("|>>", "function", "x: 'a -> f: ('a -> 'b) -> 'b"),
        ("( |>> )", "function", "x: 'a -> f: ('a -> 'b) -> 'b"),
        ("most", "function", "x: 'a -> y: 'a -> 'a when 'a: comparison"),
        ("sum", "function", "x: ^a -> y: ^b -> 'c when (^a or ^b) : (static member (+) : ^a * ^b -> 'c)"),
    ] {
        let told = session.members(name).await.unwrap();
        let item = &told.members[0];
        assert_eq!((told.kind.as_str(), item.signature.as_deref()), (kind, Some(signature)), "{name}");
    }
    let told = session.members("System.String.Join").await.unwrap();
    assert!(told.kind == "method" && told.members.len() > 3, "every overload: {told:?}");
    let found = session.symbols("(|>>)", 10).await;
    assert_eq!(found.items[0].name, "(|>>)", "as `explore` takes it");
    assert_eq!(session.values().await.last().unwrap().name, "xs");
    assert!(session.values().await.iter().any(|value| value.name == "(|>>)"));
    for nothing in ["List.nothing", "nothing", "(+++)", ".", "a.", ""] {
        assert!(session.members(nothing).await.is_err(), "{nothing:?}");
    }
}

//! Random edits of a random project, saved one after the other while a session runs it: after each save the session answers as a clean build
//! of the sources would, or it has said why not and answers as before. All versions are built at once, each in a namespace of its own, and
//! their answers are what the session's are compared with.
//!
//! Every name that the code mentions is given by the first file, so that whatever a name comes to mean, the code compiles: which of
//! several things it means is what an edit changes. `MAINSTAY_RANDOM_EDITS` has more seeds, separated by spaces.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command as Program;

use mainstay_kernel::{Project, ShadowCopy, StartupContext};
use mainstay_model::LoadedProject;

use super::swapping::{answer, build};
use super::*;

/// The saves of one project.
const SAVES: usize = 24;
/// How many saves build upon one another before all is as it was built again.
const CHAIN: usize = 3;
/// The names of functions, all of which take and give a number.
const FUNCTIONS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
/// The names of values, all of which are numbers.
const VALUES: [&str; 3] = ["p", "q", "r"];
/// The modules, a file each, in the order of the build.
const MODULES: [&str; 3] = ["First", "Second", "Third"];
/// The numbers that each function is asked with.
const ASKED: [i32; 2] = [3, 60];

/// Random numbers that a seed decides.
struct Dice {
    state: u64,
    /// Whether functions may be inline. Then none is private: one that others see may contain no private one.
    is_inlining: bool,
}

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        // Xorshift, after Marsaglia.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % 1_000_003).unwrap() % end
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A declaration of a module, with code that takes `x`.
#[derive(Clone)]
enum Declaration {
    Function {
        name: &'static str,
        reach: Reach,
        body: String,
    },
    Value {
        name: &'static str,
        number: usize,
    },
    Static {
        name: &'static str,
        body: String,
    },
    /// A type whose objects keep a `p` that they are given and a `q`, where its code mentions them.
    Object {
        bound: Vec<Bound>,
        body: String,
    },
    Module {
        name: &'static str,
        opens_itself: bool,
        inner: Vec<Declaration>,
    },
    Open(&'static str),
}

use Declaration::{Function, Module, Object, Open, Static, Value as Constant};

/// A function that `let` binds in a type.
#[derive(Clone)]
struct Bound {
    name: &'static str,
    place: Place,
    body: String,
}

/// Where a function is bound in a type. What is static stands first, and sees no object.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Static,
    AboveValue,
    BelowValue,
}

impl Bound {
    fn of(dice: &mut Dice, others: &[Self]) -> Option<Self> {
        let name = free_name(dice, &FUNCTIONS, |name| others.iter().any(|one| one.name == name))?;
        let place = match dice.below(4) {
            0 => Place::Static,
            1 => Place::AboveValue,
            _ => Place::BelowValue,
        };
        Some(Self { name, place, body: Self::body_of(dice, place) })
    }

    fn body_of(dice: &mut Dice, place: Place) -> String {
        let body = expression(dice, 1);
        let has = |name: &str| body.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
        if place == Place::Static && (has("p") || has("q")) { Self::body_of(dice, place) } else { body }
    }
}

/// Who has a function, and how.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Public,
    Private,
    Inline,
}

impl Reach {
    fn of(dice: &mut Dice) -> Self {
        match (dice.is_inlining, dice.chance(20)) {
            (_, false) => Self::Public,
            (true, true) => Self::Inline,
            (false, true) => Self::Private,
        }
    }

    const fn keyword(self) -> &'static str {
        match self {
            Self::Public => "",
            Self::Private => "private ",
            Self::Inline => "inline ",
        }
    }
}

/// A file with a module of its own.
#[derive(Clone)]
struct Source {
    name: &'static str,
    /// Whether the file is the module, and not a namespace with it.
    is_module: bool,
    opens: Vec<&'static str>,
    declarations: Vec<Declaration>,
}

/// Code that gives a number. It makes one call at most: two would make 2ⁿ of a chain of n functions.
fn expression(dice: &mut Dice, depth: usize) -> String {
    let number = dice.below(90) + 1;
    if depth == 0 {
        return if dice.chance(40) { dice.one_of(&VALUES).to_owned() } else { format!("x + {number}") };
    }
    let call = format!("{} (x - {number})", dice.one_of(&FUNCTIONS));
    match dice.below(9) {
        0 => format!("{call} + {}", expression(dice, 0)),
        1 => format!("(if x > {number} then {call} else {})", expression(dice, depth - 1)),
        2 => format!("List.sum (List.map {} [ x + {number} ])", dice.one_of(&FUNCTIONS)),
        // A name of its own hides whatever has it too.
        3 => format!("(let {} = x * {number} in {})", dice.one_of(&VALUES), expression(dice, depth - 1)),
        4 => {
            format!("(fun {} -> {}) {number}", dice.one_of(&VALUES), expression(dice, depth - 1))
        }
        5 => format!("{}.Run (x + {number})", dice.one_of(&["Kind", "Sort"])),
        6 => format!("(match x with {number} -> {} | _ -> {call})", dice.one_of(&VALUES)),
        7 => format!("{}.{} (x + {number})", dice.one_of(&["Given", "Other"]), dice.one_of(&FUNCTIONS)),
        _ => call,
    }
}

fn unused(dice: &mut Dice, names: &[&'static str], declarations: &[Declaration]) -> Option<&'static str> {
    let is_used = |name: &str| {
        declarations.iter().any(|one| match one {
            Function { name: own, .. } | Constant { name: own, .. } => *own == name,
            Static { .. } | Object { .. } | Module { .. } | Open(_) => false,
        })
    };
    free_name(dice, names, is_used)
}

fn free_name(
    dice: &mut Dice,
    names: &[&'static str],
    is_used: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    let free: Vec<_> = names.iter().copied().filter(|name| !is_used(name)).collect();
    (!free.is_empty()).then(|| free[dice.below(free.len())])
}

fn object(dice: &mut Dice) -> Declaration {
    let mut bound = Vec::new();
    for _ in 0..dice.below(4) {
        bound.extend(Bound::of(dice, &bound));
    }
    Object { bound, body: expression(dice, 1) }
}

fn function(dice: &mut Dice, others: &[Declaration]) -> Option<Declaration> {
    let name = unused(dice, &FUNCTIONS, others)?;
    Some(Function { name, reach: Reach::of(dice), body: body_of(dice, name) })
}

/// The body of a function. Its name means something else there, and is seldom mentioned.
fn body_of(dice: &mut Dice, name: &str) -> String {
    let body = expression(dice, 2);
    if body.contains(&format!("{name} ")) && dice.chance(95) { body_of(dice, name) } else { body }
}

/// A type's static member, which does not call itself: that would go on for ever.
fn member_of(dice: &mut Dice, name: &str) -> String {
    let body = expression(dice, 1);
    if body.contains(name) { member_of(dice, name) } else { body }
}

fn declarations(dice: &mut Dice, is_nested: bool) -> Vec<Declaration> {
    let mut all = Vec::new();
    for _ in 0..3 + dice.below(2) {
        let next = match dice.below(11) {
            0 => Some(Open(dice.one_of(&["Given", "Other"]))),
            1 | 2 => unused(dice, &VALUES, &all).map(|name| Constant { name, number: dice.below(99) }),
            3 if !all.iter().any(|one| matches!(one, Static { .. })) => {
                let name = dice.one_of(&["Kind", "Sort"]);
                Some(Static { name, body: member_of(dice, name) })
            }
            4 if !all.iter().any(|one| matches!(one, Object { .. })) => Some(object(dice)),
            5 if !is_nested && !all.iter().any(|one| matches!(one, Module { .. })) => {
                Some(Module { name: "Inner", opens_itself: dice.chance(50), inner: declarations(dice, true) })
            }
            _ => function(dice, &all),
        };
        all.extend(next);
    }
    // A module has to declare something.
    all.extend(function(dice, &all));
    all
}

fn source(dice: &mut Dice, name: &'static str) -> Source {
    let opens = if dice.chance(40) { vec!["Given", "Other"] } else { vec!["Other", "Given"] };
    Source { name, is_module: dice.chance(50), opens, declarations: declarations(dice, false) }
}

/// What the code of every file can mention.
fn given(space: &str) -> String {
    let mut text = format!("namespace {space}\n\n");
    for (offset, module) in ["Given", "Other"].iter().enumerate() {
        let _ = writeln!(text, "module {module} =");
        for (index, name) in FUNCTIONS.iter().enumerate() {
            let _ = writeln!(text, "    let {name} (x: int) = x * {} + {}", index + 2, offset + 1);
        }
        for (index, name) in VALUES.iter().enumerate() {
            let _ = writeln!(text, "    let {name} = {}", 100 * (offset + 1) + index);
        }
        for kind in ["Kind", "Sort"] {
            let _ = writeln!(text, "    type {kind} =\n        static member Run(x: int) = x + {offset}7");
        }
        text.push('\n');
    }
    text
}

fn write_declarations(text: &mut String, space: &str, pad: &str, all: &[Declaration]) {
    for one in all {
        let _ = match one {
            Function { name, reach, body } => {
                writeln!(text, "{pad}let {}{name} (x: int) : int =\n{pad}    {body}\n", reach.keyword())
            }
            Constant { name, number } => writeln!(text, "{pad}let {name} = {number}\n"),
            Static { name, body } => {
                writeln!(text, "{pad}type {name} =\n{pad}    static member Run(x: int) : int = {body}\n")
            }
            Object { bound, body } => {
                let functions = |place: Place| {
                    let keyword = if place == Place::Static { "static let" } else { "let" };
                    let bound = bound.iter().filter(|one| one.place == place);
                    bound.fold(String::new(), |text, Bound { name, body, .. }| {
                        format!("{text}{pad}    {keyword} {name} (x: int) : int = {body}\n")
                    })
                };
                let [first, above, below] =
                    [Place::Static, Place::AboveValue, Place::BelowValue].map(functions);
                writeln!(
                    text,
                    "{pad}type Holder(p: int) =\n{first}{above}{pad}    let q = p * 3\n{below}\
                     {pad}    member _.Run(x: int) : int = {body}\n"
                )
            }
            Module { name, opens_itself, inner } => {
                let attribute = if *opens_itself { format!("{pad}[<AutoOpen>]\n") } else { String::new() };
                let _ = writeln!(text, "{attribute}{pad}module {name} =");
                write_declarations(text, space, &format!("{pad}    "), inner);
                Ok(())
            }
            Open(name) => writeln!(text, "{pad}open {space}.{name}\n"),
        };
    }
}

impl Source {
    fn text(&self, space: &str) -> String {
        let mut text = String::new();
        let opens: String = self.opens.iter().map(|name| format!("open {space}.{name}\n")).collect();
        if self.is_module {
            let _ = writeln!(text, "module {space}.{}\n\n{opens}", self.name);
            write_declarations(&mut text, space, "", &self.declarations);
        } else {
            let _ = writeln!(text, "namespace {space}\n\n{opens}\nmodule {} =", self.name);
            write_declarations(&mut text, space, "    ", &self.declarations);
        }
        text
    }

    /// What can be asked of it: the path of each function that others see, and of each value.
    fn shown(&self) -> Vec<(String, bool)> {
        fn of(path: &str, all: &[Declaration], shown: &mut Vec<(String, bool)>) {
            for one in all {
                match one {
                    Function { name, reach: Reach::Public, .. } => {
                        shown.push((format!("{path}.{name}"), true));
                    }
                    Constant { name, .. } => shown.push((format!("{path}.{name}"), false)),
                    Static { name, .. } => shown.push((format!("{path}.{name}.Run"), true)),
                    Object { .. } => shown.push((format!("{path}.Holder(7).Run"), true)),
                    Module { name, inner, .. } => of(&format!("{path}.{name}"), inner, shown),
                    // The code that asks would contain an inline function as it was built.
                    Function { reach: Reach::Private | Reach::Inline, .. } | Open(_) => {}
                }
            }
        }
        let mut shown = Vec::new();
        of(self.name, &self.declarations, &mut shown);
        shown
    }

    /// Changes something in a declaration, or which there are.
    fn edit(&mut self, dice: &mut Dice) {
        if dice.chance(5) {
            self.opens.reverse();
        }
        let mut all = &mut self.declarations;
        if let Some(index) = all.iter().position(|one| matches!(one, Module { .. }))
            && dice.chance(40)
        {
            let Module { inner, .. } = &mut all[index] else { unreachable!() };
            all = inner;
        }
        let at = dice.below(all.len());
        match dice.below(12) {
            0 | 1 => all.extend(function(dice, &all.clone())),
            2 => {
                if let Some(new) = function(dice, &all.clone()) {
                    all.insert(at, new);
                }
            }
            3 if all.len() > 2
                && !matches!(all[at], Module { .. } | Static { .. } | Object { .. } | Open(_)) =>
            {
                all.remove(at);
            }
            4 => all.insert(at, Open(dice.one_of(&["Given", "Other"]))),
            5 if matches!(all[at], Open(_)) => {
                all.remove(at);
            }
            6 => {
                if let Some(name) = unused(dice, &VALUES, &all.clone()) {
                    all.insert(at, Constant { name, number: dice.below(99) });
                }
            }
            _ => match &mut all[at] {
                Function { name, body, reach } => {
                    *body = body_of(dice, name);
                    if dice.chance(10) {
                        *reach = if *reach == Reach::Public { Reach::of(dice) } else { Reach::Public };
                    }
                }
                Constant { number, .. } => *number = dice.below(99),
                Static { name, body } => *body = member_of(dice, name),
                Object { bound, body } => edit_object(dice, bound, body),
                Module { .. } | Open(_) => {}
            },
        }
    }
}

/// Changes one function of a type, its place, or which there are; or its member.
fn edit_object(dice: &mut Dice, bound: &mut Vec<Bound>, body: &mut String) {
    if bound.is_empty() || dice.chance(30) {
        *body = expression(dice, 1);
        return;
    }
    let at = dice.below(bound.len());
    match dice.below(6) {
        0 => {
            bound.remove(at);
        }
        1 => bound.extend(Bound::of(dice, &bound.clone())),
        2 if bound[at].place != Place::Static => {
            bound[at].place =
                if bound[at].place == Place::AboveValue { Place::BelowValue } else { Place::AboveValue };
        }
        3 => bound.rotate_left(1),
        _ => bound[at].body = Bound::body_of(dice, bound[at].place),
    }
}

/// The answers of a version, by what was asked.
type Answers = BTreeMap<String, String>;

/// The code that asks a version of a namespace for all that is shown, a line each.
fn questions(space: &str, version: &[Source]) -> Vec<(String, String)> {
    let asked = version.iter().flat_map(Source::shown);
    asked
        .flat_map(|(path, is_function)| {
            if is_function {
                ASKED.map(|number| (format!("{path} {number}"), format!("{space}.{path} {number}"))).to_vec()
            } else {
                vec![(path.clone(), format!("{space}.{path}"))]
            }
        })
        .collect()
}

fn project(sources: &[String], is_program: bool) -> String {
    let files: String = sources.iter().map(|file| format!("<Compile Include=\"{file}\" />")).collect();
    let kind = if is_program { "<OutputType>Exe</OutputType>" } else { "" };
    format!(
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>net10.0</TargetFramework>{kind}\
         <SatelliteResourceLanguages>en</SatelliteResourceLanguages></PropertyGroup><ItemGroup>{files}</ItemGroup></Project>"
    )
}

/// What each version answers when it is built.
fn reference(folder: &Path, versions: &[Vec<Source>]) -> Vec<Answers> {
    let mut files = Vec::new();
    let mut asks = String::from("module Asks\n\n");
    for (index, version) in versions.iter().enumerate() {
        let space = format!("V{index}");
        let mut write = |name: &str, text: String| {
            let file = format!("{space}{name}.fs");
            fs::write(folder.join(&file), text).unwrap();
            files.push(file);
        };
        write("Given", given(&space));
        version.iter().for_each(|source| write(source.name, source.text(&space)));
        let _ = writeln!(asks, "let of{index} () =");
        for (name, code) in questions(&space, version) {
            let _ = writeln!(asks, "    printfn \"{index}|{name}|%d\" ({code})");
        }
    }
    asks.push_str("[<EntryPoint>]\nlet main _ =\n");
    (0..versions.len()).for_each(|index| asks.push_str(&format!("    of{index} ()\n")));
    asks.push_str("    0\n");
    fs::write(folder.join("Asks.fs"), asks).unwrap();
    files.push("Asks.fs".to_owned());
    fs::write(folder.join("Reference.fsproj"), project(&files, true)).unwrap();
    let host = build(folder);
    let program = folder.join("bin/Debug/net10.0/Reference.dll");
    let output = Program::new(host).arg(program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut answers = vec![Answers::new(); versions.len()];
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let [index, name, value] = line.split('|').collect::<Vec<_>>().try_into().unwrap();
        answers[index.parse::<usize>().unwrap()].insert(name.to_owned(), value.to_owned());
    }
    answers
}

fn versions(dice: &mut Dice) -> Vec<Vec<Source>> {
    let first: Vec<Source> = MODULES.iter().map(|name| source(dice, name)).collect();
    let mut all = vec![first.clone()];
    for index in 0..SAVES {
        // What is refused would be so until it is taken back.
        let mut next = if index % CHAIN == 0 { first.clone() } else { all.last().unwrap().clone() };
        let at = dice.below(next.len());
        next[at].edit(dice);
        if dice.chance(15) {
            let other = dice.below(next.len());
            next[other].edit(dice);
        }
        all.push(next);
    }
    all
}

/// What is wrong with the saves of a project, and how many were put in.
async fn wrongs(seed: u64) -> (Vec<String>, usize) {
    let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let versions = versions(&mut Dice { state, is_inlining: seed.is_multiple_of(2) });
    let (folder, built) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = reference(built.path(), &versions);
    let files: Vec<String> = ["Given"].iter().chain(&MODULES).map(|name| format!("{name}.fs")).collect();
    fs::write(folder.path().join("Given.fs"), given("Gen")).unwrap();
    let save = |version: &[Source]| {
        for source in version {
            fs::write(folder.path().join(format!("{}.fs", source.name)), source.text("Gen")).unwrap();
        }
    };
    save(&versions[0]);
    fs::write(folder.path().join("Gen.fsproj"), project(&files, false)).unwrap();
    build(folder.path());
    let paths: Vec<String> =
        files.iter().map(|file| folder.path().join(file).display().to_string()).collect();
    let assembly = folder.path().join("bin/Debug/net10.0/Gen.dll");
    let known = LoadedProject {
        path: folder.path().join("Gen.fsproj").display().to_string(),
        sources: paths.clone(),
        ..LoadedProject::default()
    };
    let own = vec![ShadowCopy { origin: assembly.clone(), copy: assembly }];
    let startup = StartupContext {
        project: Some(Project { known, own, ..Project::default() }),
        ..StartupContext::in_folder(folder.path())
    };
    // What it runs beforehand, as the workers of users do, changes no answer.
    let as_users_have_it = vec![("MAINSTAY_TEST_WARM_UP".into(), "1".into())];
    let mut session = Session::begin(startup, as_users_have_it).await;

    let asks = questions("Gen", &versions[0]);
    let code = format!(
        "[ {} ]",
        asks.iter().map(|(_, code)| format!("string ({code})")).collect::<Vec<_>>().join("; ")
    );
    let (mut wrong, mut applied, mut runs) = (Vec::new(), 0, 0);
    for index in 1..versions.len() {
        save(&versions[index]);
        let changed = versions[index].iter().zip(&versions[index - 1]).zip(&paths[1..]);
        let written: Vec<String> = changed
            .filter(|((now, before), _)| now.text("Gen") != before.text("Gen"))
            .map(|(_, path)| path.clone())
            .collect();
        // What was refused before is saved again with the rest, as a build would take it in.
        let written = if runs + 1 == index { written } else { paths[1..].to_vec() };
        let swap = soon(session.worker.runner.kernel().unwrap().swap(written)).await.unwrap().unwrap();
        if swap.is_applied() {
            (applied, runs) = (applied + 1, index);
        }
        let answers = answer(&mut session, &format!("String.concat \";\" (\n  {code})")).await;
        for ((name, _), value) in asks.iter().zip(answers.trim_matches('"').split(';')) {
            if let Some(should) = expected[runs].get(name)
                && should != value
            {
                wrong.push(format!("seed {seed}, save {index}, {name}: {value} instead of {should} of version {runs}\n{swap:?}\n{}",
                    versions[index].iter().map(|source| source.text("Gen")).collect::<String>()));
                break;
            }
        }
        if !wrong.is_empty() {
            break;
        }
    }
    (wrong, applied)
}

#[tokio::test]
async fn after_any_save_a_session_answers_as_a_build_would_or_says_why_not() {
    let seeds = env::var("MAINSTAY_RANDOM_EDITS").unwrap_or_else(|_| "1 2".to_owned());
    let (mut applied, mut saves) = (0, 0);
    for seed in seeds.split_whitespace() {
        let (wrong, put_in) = wrongs(seed.parse().unwrap()).await;
        println!("seed {seed}: {put_in} of {SAVES} saves were put in");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        (applied, saves) = (applied + put_in, saves + SAVES);
    }
    // These edits are harder than those of people: names hide one another everywhere.
    assert!(applied * 3 > saves, "only {applied} of {saves} saves were put in");
}

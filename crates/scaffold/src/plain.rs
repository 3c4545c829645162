//! Tests that need no library: a module for the prompt, which makes its own values from a seed.

use super::candidates::Candidate;
use super::signature::Type;
use super::{Subject, helpers, module_name, subjects, word};

/// What the values of a type are made with: code, and the helpers it needs.
#[derive(Default)]
struct Makers {
    /// In the order in which they are needed.
    helpers: Vec<(&'static str, &'static str)>,
    /// What there is no maker of, in the order met.
    unknown: Vec<Type>,
}

const LOOP: &str = "\
let forAll claim (make: System.Random -> 'value) (holds: 'value -> bool) =
    let random = System.Random 1
    for _ in 1 .. 100 do
        let value = make random
        let broken =
            try (if holds value then None else Some \"is not so\")
            with error -> Some(\"raised \" + error.GetType().Name + \": \" + error.Message)
        match broken with
        | None -> ()
        | Some how -> failwithf \"%s: %s with %A\" claim how value";

/// Writes the tests without a framework.
pub(super) fn written(subject: &Subject<'_>, candidates: &[Candidate]) -> String {
    let word = word(subject.name);
    let mut makers = Makers::default();
    let tests: Vec<_> = candidates.iter().map(|candidate| test(&word, candidate, &mut makers)).collect();

    let mut lines = subjects(subject);
    lines.push(String::new());
    lines.extend(helpers(candidates));
    lines.extend(makers.written());
    lines.extend(LOOP.lines().map(str::to_owned));
    for test in tests {
        lines.push(String::new());
        lines.extend(test);
    }
    lines.push(String::new());
    lines.push("/// Checks all that is above, until something is not so.".to_owned());
    lines.push("let checkAll () =".to_owned());
    lines.extend(candidates.iter().map(|candidate| format!("    ``{word} {}`` ()", candidate.name)));

    let indented: String = lines
        .into_iter()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") })
        .collect();
    format!("module {} =\n{indented}", module_name(subject.name))
}

fn test(word: &str, candidate: &Candidate, makers: &mut Makers) -> Vec<String> {
    let Candidate { name, claim, inputs, check } = candidate;
    let made: Vec<_> = inputs.iter().map(|(_, kind)| makers.of(&kind.grounded())).collect();
    let make = match made.as_slice() {
        [one] => one.clone(),
        several => together(several),
    };
    let names: Vec<_> = inputs.iter().map(|(name, _)| name.as_str()).collect();
    let names = match names.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("({})", several.join(", ")),
    };
    vec![
        format!("/// Candidate: {claim}. Delete it where that is not meant."),
        format!("let ``{word} {name}`` () ="),
        format!("    forAll \"{word} {name}\" {make} (fun {names} -> {check})"),
    ]
}

fn together(makers: &[String]) -> String {
    let made: Vec<_> = makers.iter().map(|make| format!("{make} random")).collect();
    format!("(fun random -> {})", made.join(", "))
}

impl Makers {
    /// Code of a function from a source of chance to a value.
    fn of(&mut self, kind: &Type) -> String {
        match kind {
            Type::Named { name, arguments } => match (name.as_str(), arguments.as_slice()) {
                ("int" | "int32", []) => self.needs("makeInt", "random.Next(-20, 21)"),
                ("int64", []) => self.needs("makeInt64", "int64 (random.Next(-20, 21))"),
                ("float" | "double", []) => self.needs("makeFloat", "float (random.Next(-80, 81)) / 4.0"),
                ("bool", []) => self.needs("makeBool", "random.Next 2 = 0"),
                ("char", []) => self.needs("makeChar", CHAR),
                ("string", []) => {
                    let _ = self.needs("makeChar", CHAR);
                    self.needs(
                        "makeString",
                        "System.String(Array.init (random.Next 9) (fun _ -> makeChar random))",
                    )
                }
                ("unit", []) => self.needs("makeUnit", "ignore random"),
                ("option", [item]) => {
                    self.around(item, "makeOption", "if random.Next 4 = 0 then None else Some(make random)")
                }
                ("list", [item]) => {
                    self.around(item, "makeList", "List.init (random.Next 9) (fun _ -> make random)")
                }
                ("seq", [item]) => self.around(
                    item,
                    "makeSeq",
                    "Seq.ofList (List.init (random.Next 9) (fun _ -> make random))",
                ),
                _ => self.stub(kind),
            },
            Type::Array { item, rank: 1 } => {
                self.around(item, "makeArray", "Array.init (random.Next 9) (fun _ -> make random)")
            }
            Type::Tuple(items) => {
                let made: Vec<_> = items.iter().map(|item| self.of(item)).collect();
                together(&made)
            }
            Type::Variable(_) | Type::Array { .. } | Type::Function(..) => self.stub(kind),
        }
    }

    fn needs(&mut self, name: &'static str, code: &'static str) -> String {
        if !self.helpers.iter().any(|(known, _)| *known == name) {
            self.helpers.push((name, code));
        }
        name.to_owned()
    }

    fn around(&mut self, item: &Type, name: &'static str, code: &'static str) -> String {
        let item = self.of(item);
        format!("({} {item})", self.needs(name, code))
    }

    fn stub(&mut self, kind: &Type) -> String {
        let known = self.unknown.iter().position(|other| other == kind);
        let place = known.unwrap_or_else(|| {
            self.unknown.push(kind.clone());
            self.unknown.len() - 1
        });
        format!("makeOther{}", place + 1)
    }

    fn written(&self) -> Vec<String> {
        let helpers = self.helpers.iter().map(|(name, code)| {
            let of = if code.contains("make random") { " (make: System.Random -> 'item)" } else { "" };
            format!("let {name}{of} (random: System.Random) = {code}")
        });
        let stubs = self.unknown.iter().enumerate().flat_map(|(place, kind)| {
            [
                "/// How its values are made is not known here: write it, then the tests can run.".to_owned(),
                format!("let makeOther{} (_: System.Random) : {kind} =", place + 1),
                format!("    failwith \"write a generator of {}\"", kind.to_string().replace('"', "'")),
            ]
        });
        helpers.chain(stubs).collect()
    }
}

const CHAR: &str = "char (random.Next(32, 127))";

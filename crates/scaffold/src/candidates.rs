//! What may hold of a function of such a type. A candidate is a guess from the shape alone.

use super::signature::{Signature, Type};

/// One property that the function may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// What it is called, behind the function's name.
    pub(super) name: &'static str,
    /// The property in words, for a comment.
    pub(super) claim: &'static str,
    /// What it is checked with, by name.
    pub(super) inputs: Vec<(String, Type)>,
    /// Code that is true where it holds; `subject` is the function.
    pub(super) check: String,
}

const INPUTS: [&str; 3] = ["x", "y", "z"];

/// All that the shape suggests, and at least one.
pub(super) fn candidates(signature: &Signature, has_inverse: bool) -> Vec<Candidate> {
    let result = signature.result();
    let inverse = match signature.arguments() {
        [argument] if has_inverse => vec![one(
            "is undone by its inverse",
            "the inverse gives back what went in",
            argument,
            same(argument, "(inverse (subject x))", "x"),
        )],
        _ => Vec::new(),
    };
    let by_shape = match signature.arguments() {
        [argument] if argument == result && tells_something(result) => on_itself(result),
        [first, second] if first == second && first == result && can_be_compared(result) => combining(result),
        [first, second] if first == second && *result == Type::named("int") => vec![many(
            "changes its sign when its arguments change places",
            "the sign for x and y is the opposite of the sign for y and x",
            &[first, first],
            "sign (subject x y) = -(sign (subject y x))".to_owned(),
        )],
        _ => Vec::new(),
    };
    match inverse.is_empty() && by_shape.is_empty() {
        true => anything(signature),
        false => inverse.into_iter().chain(by_shape).collect(),
    }
}

/// Proposes properties of a function `a -> a`.
fn on_itself(kind: &Type) -> Vec<Candidate> {
    let mut found = match items(kind) {
        Some(items) => {
            let listed = |value: &str| format!("({items} {value})");
            let (before, after) = (listed("x"), listed("(subject x)"));
            vec![
                one(
                    "keeps the length",
                    "as many items come out as went in",
                    kind,
                    format!("List.length {after} = List.length {before}"),
                ),
                one(
                    "keeps the items",
                    "the same items come out, in whatever order",
                    kind,
                    format!("sameItems {after} {before}"),
                ),
            ]
        }
        None => Vec::new(),
    };
    found.push(one(
        "is idempotent",
        "the second time changes nothing more",
        kind,
        same(kind, "(subject (subject x))", "(subject x)"),
    ));
    found.push(one(
        "is its own inverse",
        "the second time gives back what went in",
        kind,
        same(kind, "(subject (subject x))", "x"),
    ));
    found
}

/// `a -> a -> a`.
fn combining(kind: &Type) -> Vec<Candidate> {
    vec![
        many(
            "is associative",
            "it does not matter which two of three are combined first",
            &[kind, kind, kind],
            same(kind, "(subject (subject x y) z)", "(subject x (subject y z))"),
        ),
        many(
            "is commutative",
            "it does not matter which comes first",
            &[kind, kind],
            same(kind, "(subject x y)", "(subject y x)"),
        ),
    ]
}

/// Where nothing is known of the shape.
fn anything(signature: &Signature) -> Vec<Candidate> {
    let arguments = signature.arguments();
    let names: Vec<String> = match arguments.len() <= INPUTS.len() {
        true => INPUTS.into_iter().take(arguments.len()).map(str::to_owned).collect(),
        false => (1..=arguments.len()).map(|number| format!("x{number}")).collect(),
    };
    let call = format!("subject {}", names.join(" "));
    let inputs: Vec<_> = names.into_iter().zip(arguments.iter().cloned()).collect();
    let result = signature.result();
    let mut found = vec![Candidate {
        name: "raises nothing",
        claim: "there is a result for everything of this type",
        inputs: inputs.clone(),
        check: format!("ignore ({call}); true"),
    }];
    if tells_something(result) {
        found.push(Candidate {
            name: "gives the same again",
            claim: "the result depends on the arguments alone",
            inputs,
            check: same(result, &format!("({call})"), &format!("({call})")),
        });
    }
    found
}

fn one(name: &'static str, claim: &'static str, input: &Type, check: String) -> Candidate {
    many(name, claim, &[input], check)
}

fn many(name: &'static str, claim: &'static str, inputs: &[&Type], check: String) -> Candidate {
    let inputs =
        INPUTS.map(str::to_owned).into_iter().zip(inputs.iter().map(|input| (*input).clone())).collect();
    Candidate { name, claim, inputs, check }
}

/// Code that compares two values. A sequence itself is compared by its identity.
fn same(kind: &Type, left: &str, right: &str) -> String {
    match is_sequence(kind) {
        true => format!("same (List.ofSeq {left}) (List.ofSeq {right})"),
        false => format!("same {left} {right}"),
    }
}

/// What makes a list of it, where it is a collection with an order.
fn items(kind: &Type) -> Option<&'static str> {
    match kind {
        Type::Named { name, arguments } if name == "list" && arguments.len() == 1 => Some("id"),
        Type::Array { rank: 1, .. } => Some("List.ofArray"),
        kind if is_sequence(kind) => Some("List.ofSeq"),
        Type::Variable(_) | Type::Named { .. } | Type::Array { .. } | Type::Tuple(_) | Type::Function(..) => {
            None
        }
    }
}

fn is_sequence(kind: &Type) -> bool {
    matches!(kind, Type::Named { name, arguments } if name == "seq" && arguments.len() == 1)
}

/// Whether two of its values can differ, and be seen to.
fn tells_something(kind: &Type) -> bool {
    can_be_compared(kind) && *kind != Type::named("unit")
}

/// Whether F# compares its values by what is in them: no function, and no sequence within another type.
fn can_be_compared(kind: &Type) -> bool {
    fn within(kind: &Type) -> bool {
        !is_sequence(kind) && can_be_compared(kind)
    }
    match kind {
        Type::Variable(_) => true,
        Type::Named { name: _, arguments } => arguments.iter().all(within),
        Type::Array { item, rank: _ } => within(item),
        Type::Tuple(items) => items.iter().all(within),
        Type::Function(..) => false,
    }
}

//! What is written for each shape, and that types are read as they are printed.

use proptest::prelude::*;

use super::signature::parse;
use super::{Framework, ScaffoldError, Signature, SignatureError, Subject, Type, scaffold};

fn of(name: &str, signature: &str, inverse: Option<&str>, framework: Framework) -> String {
    let signature = Signature::parse(signature).unwrap();
    scaffold(Subject { name, signature: &signature, inverse }, framework).unwrap()
}

fn plain(name: &str, signature: &str) -> String {
    of(name, signature, None, Framework::Plain)
}

/// The names of the tests in code for the prompt.
fn names(code: &str) -> Vec<&str> {
    let lines = code.lines().filter_map(|line| line.strip_prefix("    let ``"));
    lines.filter_map(|line| line.split("``").next()).collect()
}

#[test]
fn a_list_of_the_same_type_is_written_whole() {
    insta::assert_snapshot!(plain("List.rev", "'a list -> 'a list"));
}

#[test]
fn a_property_of_xunit_is_written_whole() {
    insta::assert_snapshot!(of("List.rev", "'a list -> 'a list", None, Framework::FscheckXunit));
}

#[test]
fn a_property_of_expecto_is_written_whole() {
    insta::assert_snapshot!(of("compareBy", "string -> string -> int", None, Framework::Expecto));
}

#[test]
fn an_inverse_makes_a_round_trip() {
    insta::assert_snapshot!(of("encode", "int -> string", Some("decode"), Framework::Plain));
}

#[test]
fn a_sequence_is_compared_by_its_items() {
    insta::assert_snapshot!(plain("Seq.rev", "seq<'T> -> seq<'T>"));
}

#[test]
fn what_cannot_be_made_is_left_to_be_written() {
    insta::assert_snapshot!(plain(
        "stock",
        "Map<string,int> -> (int -> bool) -> Map<string,int> -> int * Shop.Order"
    ));
}

#[test]
fn the_shape_chooses_the_candidates() {
    let chosen = |signature| names(&plain("f", signature)).join("; ");
    let shapes = [
        "int -> int",
        "int [] -> int array",
        "int -> int -> int",
        "'a -> 'a -> int",
        "string -> int option",
        "unit -> unit",
        "'a -> 'b",
        "('a -> 'b) -> ('a -> 'b)",
        "int * string -> int * string",
    ];
    let table: Vec<_> = shapes.into_iter().map(|shape| format!("{shape}: {}", chosen(shape))).collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn names_and_constraints_around_types_are_read_over() {
    let read = |text| Signature::parse(text).unwrap().to_string();
    assert_eq!(read("list:'a list -> 'a list when 'a : comparison"), "'a list -> 'a list");
    assert_eq!(read("x: int -> ?y:string -> list<int>"), "int -> string -> int list");
    assert_eq!(read("#seq<int> -> int[,]"), "seq<int> -> int [,]");
    assert_eq!(
        read("Map<string,int> -> Map<string, (int->int)>"),
        "Map<string,int> -> Map<string,int -> int>"
    );
    assert_eq!(read("((int * string)) -> ``My type`` list"), "int * string -> ``My type`` list");
}

#[test]
fn a_text_that_is_no_type_of_a_function_says_where() {
    let refused = |text: &str| Signature::parse(text).unwrap_err();
    assert_eq!(refused("int list"), SignatureError::NotAFunction("int list".to_owned()));
    assert_eq!(refused("int -> "), SignatureError::Unreadable { place: 8, expected: "a type" });
    assert_eq!(refused("(int -> int"), SignatureError::Unreadable { place: 12, expected: "`)`" });
    assert_eq!(
        refused("int -> int)"),
        SignatureError::Unreadable { place: 11, expected: "the end of the type" }
    );
    assert_eq!(refused(&"(".repeat(100)), SignatureError::TooDeep);
    assert_eq!(refused(&"a".repeat(3000)), SignatureError::TooLong);
}

#[test]
fn what_is_no_name_makes_no_code() {
    let signature = Signature::parse("int -> int -> int").unwrap();
    let refused = |name, inverse| {
        scaffold(Subject { name, signature: &signature, inverse }, Framework::Plain).unwrap_err()
    };
    assert_eq!(refused("f\nexit 1", None), ScaffoldError::Name("f\nexit 1".to_owned()));
    assert_eq!(refused(" ", None), ScaffoldError::Name(" ".to_owned()));
    assert_eq!(refused("f", Some("g")), ScaffoldError::Inverse(2));
}

fn types() -> impl Strategy<Value = Type> {
    let name = prop::sample::select(vec!["int", "string", "Shop.Order", "when'", "``a b``.c"]);
    let leaf = prop_oneof![
        name.prop_map(Type::named),
        prop::sample::select(vec!["a", "T", "b'"]).prop_map(|name| Type::Variable(name.to_owned())),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let applied = |name: &str, arguments| Type::Named { name: name.to_owned(), arguments };
        prop_oneof![
            (prop::sample::select(vec!["list", "option", "seq", "Lazy"]), inner.clone())
                .prop_map(move |(name, item)| applied(name, vec![item])),
            prop::collection::vec(inner.clone(), 2..4).prop_map(move |items| applied("Map", items)),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Type::Tuple),
            (inner.clone(), 1..4_usize).prop_map(|(item, rank)| Type::Array { item: Box::new(item), rank }),
            (inner.clone(), inner).prop_map(|(from, to)| Type::Function(Box::new(from), Box::new(to))),
        ]
    })
}

proptest! {
    #[test]
    fn every_type_is_read_as_it_is_printed(kind in types()) {
        prop_assume!(kind.to_string().len() < 1500);
        prop_assert_eq!(parse(&kind.to_string()), Ok(kind));
    }

    #[test]
    fn no_text_is_too_odd_to_be_read_or_refused(text in "[a-z'`<>()*,:#?\\[\\] .-]{0,60}") {
        let _ = Signature::parse(&text);
    }
}

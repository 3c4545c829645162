//! Members, symbols and values of a session, as text.

use std::fmt::Write as _;

use mainstay_model::Binding;
use mainstay_runner::query::{Members, Symbols};
use mainstay_terminal::{Paint, Tone, counted, note, printable};

/// What a name stands for, a member a line.
pub fn members_text(members: &Members, paint: Paint) -> String {
    let Members { name, kind, documentation, bases, interfaces, members } = members;
    let mut text =
        format!("{} {}\n", paint.tone(Tone::Faint, kind), paint.tone(Tone::Name, &printable(name)));
    if let Some(documentation) = documentation {
        let _ = writeln!(text, "  {}", printable(documentation));
    }
    for (label, names) in [("inherits", bases), ("implements", interfaces)] {
        if !names.is_empty() {
            let _ = writeln!(text, "  {} {}", paint.tone(Tone::Faint, label), printable(&names.join(", ")));
        }
    }
    for member in members {
        let line = Line {
            name: &member.name,
            signature: member.signature.as_deref(),
            kind: &member.kind,
            place: None,
        };
        line.write(&mut text, member.documentation.as_deref(), paint);
    }
    text
}

/// What was found, one a line.
pub fn symbols_text(symbols: &Symbols, paint: Paint) -> String {
    if symbols.items.is_empty() {
        note("nothing that is loaded has that in its name");
        return String::new();
    }
    let mut text = String::new();
    for symbol in &symbols.items {
        let (signature, place) = (symbol.signature.as_deref(), symbol.assembly.as_deref());
        let line = Line { name: &symbol.full_name, signature, kind: &symbol.kind, place };
        line.write(&mut text, symbol.documentation.as_deref(), paint);
    }
    let left = symbols.found.saturating_sub(symbols.items.len() as u64);
    if left > 0 {
        let more = format!("… {} more; a longer part of the name finds less", counted(left, "name"));
        let _ = writeln!(text, "{}", paint.tone(Tone::Faint, &more));
    }
    text
}

/// What is bound, one name a line.
pub fn values_text(values: &[Binding], paint: Paint) -> String {
    if values.is_empty() {
        note("the session's code has bound nothing");
    }
    let mut text = String::new();
    for Binding { name, value_type, value } in values {
        let name = paint.tone(Tone::Name, &printable(name));
        let _ = match value {
            Some(value) => writeln!(text, "{name} : {} = {}", printable(value_type), printable(value)),
            None => writeln!(text, "{name} : {}", printable(value_type)),
        };
    }
    text
}

/// A name, and what there is to say of it.
struct Line<'a> {
    name: &'a str,
    signature: Option<&'a str>,
    kind: &'a str,
    place: Option<&'a str>,
}

impl Line<'_> {
    fn write(&self, text: &mut String, documentation: Option<&str>, paint: Paint) {
        let Self { name, signature, kind, place } = self;
        let name = paint.tone(Tone::Name, &printable(name));
        let signature = signature.map(|signature| format!(" : {}", printable(signature))).unwrap_or_default();
        let place = place.map(|place| format!(", {place}")).unwrap_or_default();
        let kind = paint.tone(Tone::Faint, &format!("({kind}{place})"));
        let _ = writeln!(text, "  {name}{signature} {kind}");
        if let Some(documentation) = documentation {
            let _ = writeln!(text, "      {}", paint.tone(Tone::Faint, &printable(documentation)));
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_runner::query::{Member, Symbol};

    use super::*;

    #[test]
    fn a_type_is_told_with_its_members() {
        let members = Members {
            name: "Dog".to_owned(),
            kind: "type".to_owned(),
            documentation: Some("It barks.".to_owned()),
            bases: vec!["Animal".to_owned(), "obj".to_owned()],
            interfaces: Vec::new(),
            members: vec![Member {
                name: "Bark".to_owned(),
                kind: "method".to_owned(),
                signature: Some("int -> string".to_owned()),
                documentation: Some("So often.".to_owned()),
            }],
        };
        insta::assert_snapshot!(members_text(&members, Paint::plain()), @"
        type Dog
          It barks.
          inherits Animal, obj
          Bark : int -> string (method)
              So often.
        ");
    }

    #[test]
    fn what_is_found_says_where_it_is_and_how_much_there_is() {
        let symbol = |full_name: &str, assembly: Option<&str>| Symbol {
            name: full_name.rsplit('.').next().unwrap_or_default().to_owned(),
            full_name: full_name.to_owned(),
            kind: "function".to_owned(),
            signature: Some("int -> int".to_owned()),
            documentation: None,
            assembly: assembly.map(str::to_owned),
        };
        let items = vec![symbol("Zoo.feed", None), symbol("Other.feed", Some("Other"))];
        insta::assert_snapshot!(symbols_text(&Symbols { items, found: 5 }, Paint::plain()), @"
          Zoo.feed : int -> int (function)
          Other.feed : int -> int (function, Other)
        … 3 names more; a longer part of the name finds less
        ");
    }

    #[test]
    fn what_is_bound_is_told_with_its_type() {
        let binding = |name: &str, value: Option<&str>| Binding {
            name: name.to_owned(),
            value_type: "int".to_owned(),
            value: value.map(str::to_owned),
        };
        let values = [binding("count", Some("5")), binding("later", None)];
        insta::assert_snapshot!(values_text(&values, Paint::plain()), @"
        count : int = 5
        later : int
        ");
    }
}

//! Functions that `let` binds in a type: only the type's own code can call them, so they are compiled with whatever of it is.

use std::fs;

use super::swapping::{Shop, all_are_refused, answer};

/// Changes to `Shop.fs`, one upon another, with what is asked after each and the answer to that.
struct Saves<'a> {
    shop: &'a Shop,
    text: String,
}

impl Saves<'_> {
    fn change(&mut self, old: &str, new: &str) {
        assert!(self.text.contains(old), "there is no {old:?}");
        self.text = self.text.replacen(old, new, 1);
        fs::write(self.shop.path("Shop.fs"), &self.text).unwrap();
    }
}

#[tokio::test]
async fn each_runs_as_saved_whoever_calls_it() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    session.defines("let till = Till<string>(\"a\", 10)").await;
    let mut wrong = Vec::new();
    for (old, new, asks, [before, after]) in [
        (
            "        total <- total + x\n",
            "        total <- total + x * 10\n",
            "till.Put 0 - till.Put 1",
            ["-1", "-10"],
        ),
        ("prefix + string entries.Count", "prefix + prefix", "till.Noted \"b\"", ["3", "4"]),
        (
            "sprintf \"%A/%A/%d\" x y total",
            "sprintf \"%A-%A\" x y",
            "till.Shown(\"d\").Substring(0, 8)",
            ["\"'c'/\"d\"/\"", "\"'c'-\"d\"S\""],
        ),
        (
            "let rec even n = n = 0",
            "let rec even n = n = 1 || n = 0",
            "till.Even 1",
            ["(false, true)", "(true, true)"],
        ),
        ("fun (x: int) -> x + start", "fun (x: int) -> x - start", "till.Offset 1", ["11", "-9"]),
        ("x <- x + by + start", "x <- x + by * 5", "till.Raised 1", ["12", "6"]),
        ("let taxed (x: int) = x * 2", "let taxed (x: int) = x * 20", "Taxes.Taxed 1", ["2", "20"]),
        ("put x + rise x", "rise x", "till.Deep 0 > 0", ["true", "false"]),
        // What a constructor has made with it stays in what is there; the next object has what is saved.
        (
            "let opening (x: int) = x + 1",
            "let opening (x: int) = x + 100",
            "till.Opened, Till<int>(\"\", 1).Opened",
            ["(11, 2)", "(11, 101)"],
        ),
        ("ValueSome(struct (x, _)) -> x", "ValueSome(struct (x, _)) -> x * 2", "till.Wanted", ["10", "20"]),
        ("= entries.Count\n", "= entries.Count + 100\n", "till.Count - till.Again()", ["0", "0"]),
        ("(1, entries.Count)", "(2, entries.Count)", "fst (till.Both())", ["1", "2"]),
        ("| 0 -> \"none\"", "| 0 -> \"no\"", "till.Sized 0", ["\"none\"", "\"no\""]),
        ("let added' (x: int) = x + start", "let added' (x: int) = x - start", "till.Added 1", ["11", "-9"]),
        (
            "let Dispose () = total <- 0",
            "let Dispose () = total <- -1",
            "(let one = Till<int>(\"\", 1) in (one :> System.IDisposable).Dispose(); one.Total)",
            ["0", "-1"],
        ),
        // Members that call them, each in another way.
        ("(x: int) = put x\n", "(x: int) = put x * 0 + 7\n", "till.Put 1", ["", "7"]),
        ("|> List.map put |> List.sum", "|> List.map put |> List.length", "till.PutAll [ 0; 0 ]", ["", "2"]),
        ("noted(entry).Length", "noted(entry).Length + 1", "till.Noted \"\"", ["", "4"]),
        (
            "shown 'c' y + shown (Some 1) y",
            "shown (Some 1) y",
            "till.Shown(\"d\").Substring(0, 6)",
            ["", "\"Some 1\""],
        ),
        ("even x, odd x", "odd x, even x", "till.Even 1", ["", "(true, false)"]),
        ("raised &raising 1", "raised &raising 2", "till.Raised 1", ["", "13"]),
        ("taxed (taxed x)", "taxed (taxed (taxed x))", "Taxes().Twice 1", ["4", "8"]),
        ("(x: int) = taxed x", "(x: int) = taxed(x) + 1", "Taxes.Taxed 1", ["2", "3"]),
        ("if x = 0 then 0 else down", "if x = 0 then 7 else down", "Taxes.Down 2", ["0", "7"]),
    ] {
        shop.save("Shop.fs", old, new);
        let there = shop.swap(&session, &["Shop.fs"]).await;
        let now = answer(&mut session, asks).await;
        shop.restore("Shop.fs");
        let back = shop.swap(&session, &["Shop.fs"]).await;
        let then = answer(&mut session, asks).await;
        let is_right = now == after && (before.is_empty() || then == before);
        if !(is_right && there.is_applied() && back.is_applied()) {
            wrong.push(format!("{new}\n  {now} for {after}, {then} for {before}: {there:?} {back:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_was_compiled_with_one_runs_its_next_version_too() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    session.defines("let till = Till<string>(\"a\", 0)").await;
    let mut saves = Saves { shop: &shop, text: Shop::original("Shop.fs") };
    for (old, new, asks, expected) in [
        ("(x: int) = deep x", "(x: int) = deep x * 1000", "till.Deep 1", "3000"),
        // Two calls away, and nothing else has changed.
        ("let rise (x: int) = x * 2", "let rise (x: int) = x * 4", "till.Deep 1 - till.Deep 0", "4000"),
        ("        total <- total + x\n", "        total <- total + x + 1\n", "till.Deep 0", "3000"),
        // As it was built, while what was compiled with it is not.
        ("let rise (x: int) = x * 4", "let rise (x: int) = x * 2", "till.Deep 1 - till.Deep 0", "1000"),
        // A new one, which another calls; what it takes is nobody else's.
        (
            "    let deep (x: int) = put x + rise x\n",
            "    let half x = x / 2\n    let deep (x: int) = half (rise x)\n",
            "till.Deep 4",
            "4000",
        ),
        ("let half x = x / 2", "let half (x: int) (by: int) = x / by", "till.Deep 4", "error"),
        ("half (rise x)", "half (rise x) 4", "till.Deep 4", "2000"),
        // It gives something else, and what calls it has the same text.
        (
            "    let shown (x: 'b) (y: 'a) =",
            "    let shown (x: 'b) (y: 'a) : string =",
            "till.Even 2",
            "(true, false)",
        ),
        (
            "    let put x =\n",
            "    let put (x: int) : int64 = int64 x\n    let spare x =\n",
            "till.Put 5",
            "error",
        ),
        ("int64 x", "(int64 >> int) x", "till.Put 5", "error"),
        (": int64 =", ": int =", "till.Put 5", "5"),
        // And it is gone, and so is what called it.
        (
            "    let half (x: int) (by: int) = x / by\n    let deep (x: int) = half (rise x) 4\n",
            "    let deep (x: int) = rise x\n",
            "till.Deep 4",
            "8000",
        ),
    ] {
        saves.change(old, new);
        let swap = shop.swap(&session, &["Shop.fs"]).await;
        assert_eq!(swap.is_applied(), expected != "error", "{new}: {swap:?}");
        if swap.is_applied() {
            assert_eq!(session.value(asks).await, expected, "{new}");
        }
    }
    shop.restore("Shop.fs");
    assert!(shop.swap(&session, &["Shop.fs"]).await.is_applied());
    assert_eq!(session.value("till.Deep 0 - till.Put 0, till.Noted \"\"").await, "(0, 3)");
}

#[tokio::test]
async fn what_only_a_build_can_change_of_them_is_said() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    let saves = [
        // The constructor goes on with what it was built with.
        ("let opening (x: int) = x + 1", "let opening (x: int) = int64 x", "name"),
        ("    let opened = opening start", "    let name = \"\"\n    let opened = opening start", "shape"),
        (
            "    let opening (x: int) = x + 1\n    let opened = opening start\n",
            "    let opened = opening start\n    let opening (x: int) = x + 1\n",
            "shape",
        ),
        ("    member _.Total = total\n", "    let Total () = total\n", "member"),
        ("let offset = fun", "let mutable offset = fun", "shape"),
        // What is static keeps nothing in objects; in a generic type, there is one for each of its types.
        ("(x: int) = x * rate", "(x: int) = x * rate + 1", "constructor_state"),
        ("typeof<'a>.Name", "typeof<'a>.FullName", "shape"),
        // Of what bears one name in a type it is not known which is meant.
        ("let doubled () = count * 2", "let doubled () = count * 3", "constructor_state"),
        ("= doubled ()", "= doubled () + 1", "constructor_state"),
    ];
    all_are_refused(&shop, &session, &saves).await;
    assert!(shop.swap(&session, &["Shop.fs"]).await.is_applied());
    assert_eq!(session.value("Till<int>(\"\", 1).Put 2").await, "3");
}

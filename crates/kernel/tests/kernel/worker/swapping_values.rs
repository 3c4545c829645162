//! Values of modules that a save makes anew: by which code, and what is left of them where the save is refused.

use std::fs;

use mainstay_model::SwapObstacle;

use super::swapping::{Shop, codes};

/// Files that have something to make, in the place of `let value`: each time it is made, a line is added to a file.
fn noted(shop: &Shop, value: &str) -> String {
    let notes = shop.path("notes");
    format!("let value = (System.IO.File.AppendAllText(@\"{}\", \"made\\n\"); {value})", notes.display())
}

const VALUE: &str = "let value = List.sum [ 1; 2 ]";

#[tokio::test]
async fn values_are_made_by_the_code_that_is_saved_with_them() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    assert_eq!(session.value("Later.fromValue, Basics.value").await, "(4, 3)");

    // By a function of another file, through one that has not changed.
    shop.save("Early.fs", "x + 1000", "x + 2000");
    shop.save("Later.fs", "Basics.value + 1", "Basics.helped 1");
    let swap = shop.swap(&session, &["Later.fs", "Early.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert!(swap.outdated.iter().all(|one| one.name != "Shop.Later.fromValue"), "{swap:?}");
    assert_eq!(session.value("Later.fromValue").await, "2001");

    // One that is made anew by one that is, and a function between them that is new.
    let between = "let value = List.sum [ 5 ]\n    let between () = value + 1\n    let outcome = between ()";
    shop.save("Shop.fs", VALUE, between);
    shop.save("Later.fs", "Basics.value + 1", "Basics.outcome + 1");
    let swap = shop.swap(&session, &["Shop.fs", "Later.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(session.value("Later.fromValue").await, "7");

    shop.restore("Shop.fs");
    shop.restore("Later.fs");
    shop.restore("Early.fs");
    let swap = shop.swap(&session, &["Shop.fs", "Later.fs", "Early.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(session.value("Later.fromValue, Basics.value, Basics.helped 1").await, "(4, 3, 1001)");
}

#[tokio::test]
async fn nothing_is_made_by_a_save_that_is_refused_and_nothing_stays_of_one_that_fails() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    assert_eq!(session.value("Basics.value, Basics.plain 1").await, "(3, 2)");
    let notes = || fs::read_to_string(shop.path("notes")).unwrap_or_default();

    // What does not fit is known before anything is made.
    let value = noted(&shop, "4");
    shop.save("Shop.fs", VALUE, &format!("{value}\n    let refused = 1"));
    shop.save("Later.fs", "let callsPlain (x: int) =", "let callsPlain (x: string) = let x = int x in");
    let swap = shop.swap(&session, &["Shop.fs", "Later.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(notes(), "made\n", "once, though a signature has changed");
    shop.restore("Later.fs");
    assert!(shop.swap(&session, &["Later.fs"]).await.is_applied());

    let both = Shop::original("Shop.fs")
        .replace(VALUE, &noted(&shop, "5"))
        .replace("let curried (a: int) (b: int, c: string)", "let curried (a: int) (c: string) (b: int)");
    fs::write(shop.path("Shop.fs"), both).unwrap();
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert!(codes(&swap).contains(&"signature"), "{swap:?}");
    assert_eq!(notes(), "made\n");
    assert_eq!(session.value("Basics.value").await, "4");

    // What raises an exception leaves the functions as they were, and says which it was.
    let raising = Shop::original("Shop.fs")
        .replace("let plain (x: int) = x + 1", "let plain (x: int) = x + 70")
        .replace(VALUE, "let value = (if plain 1 = 71 then invalidOp \"no such thing\" else 1)");
    fs::write(shop.path("Shop.fs"), &raising).unwrap();
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert_eq!(codes(&swap), ["raised"]);
    let SwapObstacle { name, line, reason, .. } = &swap.obstacles[0];
    let place = raising.lines().position(|line| line.contains("no such thing")).unwrap() + 1;
    assert_eq!((name.as_str(), *line as usize), ("Shop.Basics.value", place), "{swap:?}");
    assert!(reason.contains("no such thing"), "{swap:?}");
    assert_eq!(session.value("Basics.value, Basics.plain 1, Later.callsPlain 1").await, "(4, 2, 2)");

    // And so does a value that waits for nothing, when it is saved once more.
    fs::write(shop.path("Shop.fs"), raising.replace("= 71", "= 72")).unwrap();
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(session.value("Basics.value, Basics.plain 1, Later.callsPlain 1").await, "(1, 71, 71)");
}

#[tokio::test]
async fn what_was_handed_over_between_two_saves_calls_what_was_saved_last() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    let saved = |plain: &str| {
        let text = Shop::original("Shop.fs")
            .replace("let plain (x: int) = x + 1", plain)
            .replace("let functions = [ plain ]", "let functions = [ plain; fun x -> plain x ]");
        fs::write(shop.path("Shop.fs"), text.replace("fun (x: int) -> x * 3", "fun (x: int) -> plain x * 3"))
            .unwrap();
    };
    saved("let plain (x: int) = x + 10");
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(
        session.value("let handed = Basics.functions in Basics.functions |> List.map (fun f -> f 1)").await,
        "[11; 11]"
    );
    session.eval("let keeps = Basics.lambda").await;
    saved("let plain (x: int) = x + 20");
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    let swapped: Vec<_> = swap.swapped.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(swapped, ["Shop.Basics.plain"], "what only calls it is as it was");
    assert_eq!(
        session.value("keeps 1, (Basics.functions |> List.map (fun f -> f 1))").await,
        "(63, [21; 21])"
    );
}

#[tokio::test]
async fn what_was_made_with_a_function_that_a_save_added_is_named_when_that_changes() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    let added = |twice: &str| {
        let table = "let table = [ for i in 1 .. 3 -> twice i ]";
        shop.save("Early.fs", "let helper", &format!("{twice}\n    {table}\n    let helper"));
    };
    added("let twice (x: int) = x * 2");
    assert!(shop.swap(&session, &["Early.fs"]).await.is_applied());
    shop.save("Later.fs", "Basics.plain x", "List.sum Early.table + x");
    assert!(shop.swap(&session, &["Later.fs"]).await.is_applied());
    assert_eq!(session.value("Later.callsPlain 0").await, "12");
    added("let twice (x: int) = x * 20");
    let swap = shop.swap(&session, &["Early.fs"]).await;
    let named: Vec<_> = swap.outdated.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(named, ["Shop.Early.table"], "{swap:?}");
    assert_eq!(session.value("Later.callsPlain 0").await, "12");
}

#[tokio::test]
async fn a_refusal_is_the_same_where_the_compiler_warns() {
    let shop = Shop::build();
    let mut session = shop.session().await;
    let warned = "let plain (x: int) (y: int) = (match x with 1 -> y)";
    shop.save("Shop.fs", "let plain (x: int) = x + 1", warned);
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert!(codes(&swap).contains(&"signature"), "{swap:?}");

    // What is wrong is told of the code that is wrong, and only what that mentions counts as of another signature.
    let text = Shop::original("Shop.fs")
        .replace("let plain (x: int) = x + 1", "let plain (x: float) = int x")
        .replace(
            "let usesSecret (x: int) = secret x + inner x",
            "let usesSecret (x: int) = plain 1.5 + secret x",
        );
    fs::write(
        shop.path("Shop.fs"),
        text.replace("let functions = [ plain ]", "let functions = [ fun (x: int) -> x ]"),
    )
    .unwrap();
    let swap = shop.swap(&session, &["Shop.fs"]).await;
    assert!(swap.obstacles.iter().all(|one| one.file.ends_with("Later.fs")), "{swap:?}");
    shop.save("Later.fs", "Basics.plain x", "Basics.plain (float x)");
    let swap = shop.swap(&session, &["Shop.fs", "Later.fs"]).await;
    assert!(swap.is_applied(), "{swap:?}");
    assert_eq!(session.value("Later.callsPlain 1").await, "1");
}

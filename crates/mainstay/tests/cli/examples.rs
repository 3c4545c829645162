//! Every example gives what `dotnet fsi` gives, from the command line.

use std::path::{Path, PathBuf};

use crate::support::World;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().unwrap()
}

fn gives_what_fsi_gives(name: &str) {
    let world = World::new();
    let file = examples().join(format!("{name}.fsx"));
    let eval = world.run(["eval", "--json", "--file", file.to_str().unwrap()]).json();
    assert_eq!(eval["success"], true, "{eval}");
    let expected = std::fs::read_to_string(examples().join(format!("expected/{name}.txt"))).unwrap();
    assert_eq!(eval["stdout"].as_str().unwrap(), expected);
}

macro_rules! examples {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                gives_what_fsi_gives(stringify!($name));
            }
        )*

        #[test]
        fn no_example_is_left_out() {
            let mut there: Vec<_> = std::fs::read_dir(examples())
                .unwrap()
                .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".fsx")?.to_owned()))
                .collect();
            there.sort();
            assert_eq!(there, [$(stringify!($name)),*]);
        }
    };
}

examples! { exchange inventory json submissions tables tasks units validation }

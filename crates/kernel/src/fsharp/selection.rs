//! Which SDK serves the code of a folder: the one that the nearest `global.json` means, as for `dotnet` itself, else the preferred one.

use std::fs;
use std::path::{Path, PathBuf};

use super::discover::{FoundSdk, NoSdk, Search, discover, pick, sdks_at};
use super::global_json::{FILE, GlobalJson, SdkPath};
use super::sdk::{Origin, Sdk};

/// Whose code an SDK is to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code<'a> {
    /// That of whoever works in this folder. Nothing that lies there runs only because of that, so the SDKs that its `global.json` names by
    /// their place (`paths`) are left out.
    In(&'a Path),
    /// The project of this file, which is trusted with its build.
    Of(&'a Path),
}

/// An SDK for code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// The SDK that is taken.
    pub sdk: Sdk,
    /// Why it is not the one that `global.json` asks for, for people; absent where it is, or there is no such file.
    pub note: Option<String>,
}

/// The SDK for this code. Where the SDK that a `global.json` asks for is not there, it is the preferred one, with a note.
///
/// # Errors
/// [`NoSdk`] when there is none; its text says what to do.
pub fn select(search: &Search, code: Code<'_>) -> Result<Selected, NoSdk> {
    select_among(search, code, &discover(search))
}

/// [`select`] among what [`discover`] found.
pub(super) fn select_among(search: &Search, code: Code<'_>, found: &[FoundSdk]) -> Result<Selected, NoSdk> {
    let Some(file) = nearest(code.folder()) else {
        return Ok(Selected { sdk: pick(search, found)?, note: None });
    };
    let parsed = fs::read_to_string(&file)
        .map_err(|error| error.to_string())
        .and_then(|text| GlobalJson::parse(&text).map_err(|invalid| invalid.to_string()));
    let problem = match parsed {
        Ok(wanted) => match chosen(search, code, &wanted, &file, found) {
            Ok(sdk) => return Ok(Selected { sdk, note: None }),
            Err(problem) => problem,
        },
        Err(reason) => format!("{} is ignored, as dotnet ignores it: {reason}", file.display()),
    };
    let sdk = pick(search, found)?;
    let Sdk { version, root, .. } = &sdk;
    let note = format!("{problem}. Until that is mended, the SDK {version} in {} is used", root.display());
    Ok(Selected { sdk, note: Some(note) })
}

impl Code<'_> {
    fn folder(&self) -> &Path {
        match self {
            Self::In(folder) => folder,
            Self::Of(project) => project.parent().unwrap_or(project),
        }
    }
}

/// The `global.json` that counts in a folder.
fn nearest(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|folder| folder.join(FILE)).find(|file| file.is_file())
}

/// The SDK that the file means, of those that can run F# kernels; else what is missing, for people.
fn chosen(
    search: &Search,
    code: Code<'_>,
    wanted: &GlobalJson,
    file: &Path,
    found: &[FoundSdk],
) -> Result<Sdk, String> {
    let places = wanted.places.iter().flat_map(|place| match (place, code) {
        (SdkPath::Usual, _) => usual(search, found),
        (SdkPath::At(path), Code::Of(_)) => vec![at(file, path)],
        (SdkPath::At(_), Code::In(_)) => Vec::new(),
    });
    let places: Vec<Vec<FoundSdk>> = places.collect();
    let of_place = |place: &Vec<FoundSdk>, is_meant: fn(&FoundSdk) -> bool| {
        let meant = || place.iter().filter(|found| is_meant(found));
        let version = wanted.choose(&meant().map(|found| &found.sdk.version).collect::<Vec<_>>())?;
        meant().find(|found| found.sdk.version == *version).cloned()
    };
    if let Some(found) = places.iter().find_map(|place| of_place(place, |found| found.unusable.is_none())) {
        return Ok(found.sdk);
    }
    let why = match places.iter().find_map(|place| of_place(place, |_| true)) {
        Some(FoundSdk { sdk, unusable: Some(reason) }) => {
            format!("but {} in {} cannot run F# kernels: {reason}", sdk.version, sdk.root.display())
        }
        _ if matches!(code, Code::In(_)) && wanted.places != [SdkPath::Usual] => {
            "which count only for sessions of a project, since programs there would run".to_owned()
        }
        _ => "which is not installed".to_owned(),
    };
    let message = wanted.error_message.iter().map(|message| format!(" ({message})"));
    Err(format!("{} asks for {wanted}, {why}{}", file.display(), message.collect::<String>()))
}

/// What is found without the file, by place, the most preferred first. Where the configuration names a place, there is no other.
fn usual(search: &Search, found: &[FoundSdk]) -> Vec<Vec<FoundSdk>> {
    let places = found.chunk_by(|one, other| one.sdk.origin == other.sdk.origin).map(<[FoundSdk]>::to_vec);
    let counts = |place: &Vec<FoundSdk>| {
        search.configured.is_none() || place.iter().all(|found| found.sdk.origin == Origin::Configuration)
    };
    places.filter(counts).collect()
}

/// The SDKs at a root that a `global.json` names.
fn at(file: &Path, path: &str) -> Vec<FoundSdk> {
    let root = file.parent().unwrap_or(Path::new("/")).join(path);
    root.canonicalize().map(|root| sdks_at(Origin::GlobalJson, &root)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::{NET_3_1, NET_8, Tree, search_in};

    /// SDK 8 on the `PATH`, 3.1 in Mainstay's home, and a project below a folder.
    fn machine() -> (Tree, Search) {
        let under = |folder: &str, files: &str| files.replace("    ", &format!("    {folder}/"));
        let files = [under("new", NET_8), under("home/dotnet", NET_3_1), "code/src/App.fsproj".to_owned()];
        let tree = Tree::of(&files.concat());
        let mut search = search_in(&tree.path("home"));
        search.path = vec![tree.path("new")];
        (tree, search)
    }

    /// The version that is selected for the project, and the note, with the tree's folder as `ROOT`.
    fn selected(tree: &Tree, search: &Search) -> (String, String) {
        let Selected { sdk, note } = select(search, Code::In(&tree.path("code/src"))).unwrap();
        let note = note.unwrap_or_default().replace(&tree.root().display().to_string(), "ROOT");
        (sdk.version.to_string(), note)
    }

    fn with_global_json(sdk: &str) -> (String, String) {
        let (tree, search) = machine();
        tree.write("code/global.json", sdk);
        selected(&tree, &search)
    }

    #[test]
    fn the_file_of_a_folder_above_counts_and_the_nearest_of_several() {
        let (tree, search) = machine();
        assert_eq!(selected(&tree, &search), ("8.0.404".to_owned(), String::new()));
        tree.write("code/global.json", r#"{ "sdk": { "version": "3.1.100" } }"#);
        assert_eq!(selected(&tree, &search), ("3.1.102".to_owned(), String::new()));
        tree.write("code/src/global.json", r#"{ "msbuild-sdks": {} }"#);
        assert_eq!(selected(&tree, &search), ("8.0.404".to_owned(), String::new()));
    }

    #[test]
    fn where_the_wanted_sdk_is_missing_the_note_says_so_and_what_is_taken() {
        let (version, note) =
            with_global_json(r#"{ "sdk": { "version": "9.0.100", "errorMessage": "Run ./setup." } }"#);
        assert_eq!(version, "8.0.404");
        insta::assert_snapshot!(note, @"ROOT/code/global.json asks for the .NET SDK 9.0.100 (rollForward patch), which is not installed (Run ./setup.). Until that is mended, the SDK 8.0.404 in ROOT/new is used");
    }

    #[test]
    fn a_wanted_sdk_that_cannot_run_kernels_is_not_taken() {
        let (tree, search) = machine();
        tree.write("new/sdk/9.0.100/dotnet.dll", "");
        tree.write("code/global.json", r#"{ "sdk": { "version": "9.0.100" } }"#);
        let (version, note) = selected(&tree, &search);
        assert_eq!(version, "8.0.404");
        insta::assert_snapshot!(note, @"ROOT/code/global.json asks for the .NET SDK 9.0.100 (rollForward patch), but 9.0.100 in ROOT/new cannot run F# kernels: it has no F# folder (looked for ROOT/new/sdk/9.0.100/FSharp). Until that is mended, the SDK 8.0.404 in ROOT/new is used");
    }

    #[test]
    fn a_file_that_dotnet_ignores_is_ignored_with_a_note() {
        let (version, note) = with_global_json(r#"{ "sdk": { "version": "3.1.x" } }"#);
        assert_eq!(version, "8.0.404");
        insta::assert_snapshot!(note, @"ROOT/code/global.json is ignored, as dotnet ignores it: `sdk.version` is `3.1.x`, which is not a whole version like 10.0.100. Until that is mended, the SDK 8.0.404 in ROOT/new is used");
    }

    #[test]
    fn the_configured_place_is_the_only_one() {
        let (tree, mut search) = machine();
        search.configured = Some(tree.path("new"));
        tree.write("code/global.json", r#"{ "sdk": { "version": "3.1.100" } }"#);
        let (version, note) = selected(&tree, &search);
        assert_eq!(version, "8.0.404");
        assert!(note.starts_with("ROOT/code/global.json asks for the .NET SDK 3.1.100"), "{note}");
    }

    #[test]
    fn an_sdk_is_found_where_the_file_says_for_a_project_alone() {
        let (tree, search) = machine();
        let local = NET_8.replace("    ", "    code/local/").replace("8.0.404", "8.0.405");
        local.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|file| tree.write(file, ""));
        tree.write(
            "code/global.json",
            r#"{ "sdk": { "version": "8.0.405", "paths": ["local", "$host$"] } }"#,
        );
        let Selected { sdk, .. } = select(&search, Code::Of(&tree.path("code/src/App.fsproj"))).unwrap();
        assert_eq!((sdk.root, sdk.origin), (tree.path("code/local"), Origin::GlobalJson));
        let (version, note) = selected(&tree, &search);
        assert_eq!(version, "8.0.404");
        insta::assert_snapshot!(note, @"ROOT/code/global.json asks for the .NET SDK 8.0.405 (rollForward patch) in its `paths`, which count only for sessions of a project, since programs there would run. Until that is mended, the SDK 8.0.404 in ROOT/new is used");
    }
}

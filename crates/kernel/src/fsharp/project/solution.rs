//! Solutions: `.sln` and `.slnx` files, as lists of the F# projects in them. They are read here and not by msbuild, which
//! knows `.slnx` from SDK 9.0.200 on only.

use std::path::{Path, PathBuf};

use mainstay_model::Error;

use super::document::{invalid, parse, path_from, read};

/// What the first line of a `.sln` that says anything begins with.
const SIGNATURE: &str = "Microsoft Visual Studio Solution File";

/// The two forms of a solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A `.sln` file, made of lines.
    Lines,
    /// A `.slnx` file, made of XML.
    Xml,
}

impl Form {
    /// What the name of a file says.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        if extension.eq_ignore_ascii_case("sln") {
            Some(Self::Lines)
        } else if extension.eq_ignore_ascii_case("slnx") {
            Some(Self::Xml)
        } else {
            None
        }
    }
}

/// The F# projects of a solution, in its order. Others are passed over.
pub(super) fn projects(path: &Path, form: Form) -> Result<Vec<PathBuf>, Error> {
    let text = read(path)?;
    let named = named(&text, form).map_err(|reason| invalid(path, reason))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut projects: Vec<PathBuf> = Vec::new();
    for project in named.iter().map(|project| path_from(folder, project)).filter(|path| is_fsharp(path)) {
        if !projects.contains(&project) {
            projects.push(project);
        }
    }
    if projects.is_empty() {
        return Err(invalid(path, "it has no F# project"));
    }
    Ok(projects)
}

/// Whether a solution names F# projects. One that cannot be read may.
pub(super) fn names_fsharp(path: &Path, form: Form) -> bool {
    let Ok(text) = read(path) else { return true };
    named(&text, form).map_or(true, |named| named.iter().any(|project| is_fsharp(Path::new(project))))
}

/// Whether a path is one of an F# project.
pub(super) fn is_fsharp(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("fsproj"))
}

/// The paths of all that a solution's text names, as they are written.
fn named(text: &str, form: Form) -> Result<Vec<String>, String> {
    match form {
        Form::Lines => in_lines(text),
        Form::Xml => in_xml(text),
    }
}

/// The text between the quotes at an odd place is what a line holds: type, name, path, id.
fn in_lines(text: &str) -> Result<Vec<String>, String> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    if !first.is_some_and(|line| line.starts_with(SIGNATURE)) {
        return Err(format!("it does not begin with `{SIGNATURE}`"));
    }
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("Project(") {
            let path = line.split('"').nth(5).ok_or_else(|| format!("line {number} names no project"))?;
            found.push(path.to_owned());
        }
    }
    Ok(found)
}

fn in_xml(text: &str) -> Result<Vec<String>, String> {
    let document = parse(text)?;
    if !document.root_element().has_tag_name("Solution") {
        return Err("it is no solution: its root is not `Solution`".to_owned());
    }
    let projects = document.descendants().filter(|node| node.has_tag_name("Project"));
    projects
        .map(|node| {
            let line = document.text_pos_at(node.range().start).row;
            node.attribute("Path").map(str::to_owned).ok_or_else(|| format!("line {line} names no project"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fsharp::project::document;
    use crate::fsharp::testing::Tree;

    const SLN: &str = "\u{feff}
Microsoft Visual Studio Solution File, Format Version 12.00
# Visual Studio Version 17
Project(\"{F2A71F9B-5D33-465A-A702-920D77279786}\") = \"Lib\", \"src\\Lib\\Lib.fsproj\", \"{11111111-1111-1111-1111-111111111111}\"
EndProject
Project(\"{2150E333-8FDC-42A3-9474-1A3956D46DE8}\") = \"src\", \"src\", \"{33333333-3333-3333-3333-333333333333}\"
EndProject
Project(\"{FAE04EC0-301F-11D3-BF4B-00C04F79EFBC}\") = \"Old\", \"Old.csproj\", \"{22222222-2222-2222-2222-222222222222}\"
EndProject
Project(\"{F2A71F9B-5D33-465A-A702-920D77279786}\") = \"App\", \"App.fsproj\", \"{44444444-4444-4444-4444-444444444444}\"
EndProject
Global
EndGlobal
";

    const SLNX: &str = r#"<Solution>
  <Folder Name="/src/"><Project Path="src/Lib/Lib.fsproj" /></Folder>
  <Project Path="Old.csproj" />
  <Project Path="App.fsproj"><BuildDependency Project="src/Lib/Lib.fsproj" /></Project>
</Solution>"#;

    #[test]
    fn both_forms_name_their_fsharp_projects_in_order() {
        for (name, text, form) in [("Shop.sln", SLN, Form::Lines), ("Shop.slnx", SLNX, Form::Xml)] {
            let tree = Tree::of("");
            tree.write(name, text);
            let path = tree.path(name);
            assert_eq!(Form::of(&path), Some(form));
            let expected = [tree.path("src/Lib/Lib.fsproj"), tree.path("App.fsproj")];
            assert_eq!(projects(&path, form).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn a_solution_that_is_none_says_why() {
        let reason = |text: &str, form| {
            let tree = Tree::of("");
            tree.write("Shop", text);
            match projects(&tree.path("Shop"), form).unwrap_err() {
                Error::ProjectInvalid { reason, .. } => reason,
                other => panic!("{other}"),
            }
        };
        assert!(reason("hello", Form::Lines).starts_with("it does not begin with"));
        assert_eq!(
            reason(&format!("{SIGNATURE}\nProject(\"a\") = \"b\""), Form::Lines),
            "line 2 names no project"
        );
        assert_eq!(reason(SIGNATURE, Form::Lines), "it has no F# project");
        assert!(reason("<Project />", Form::Xml).contains("root is not `Solution`"));
        assert_eq!(reason("<Solution>\n<Project />\n</Solution>", Form::Xml), "line 2 names no project");
        assert!(reason("<Solution>", Form::Xml).starts_with("line 1"));
    }

    proptest! {
        #[test]
        fn whatever_a_solution_holds_reading_it_ends(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            tail in "[\"(){}=, \\n<>/A-Za-z.]{0,80}",
        ) {
            for text in [document::text(&bytes).unwrap_or_default(), format!("{SIGNATURE}\nProject({tail}"), format!("<Solution>{tail}")] {
                let _ = (named(&text, Form::Lines), named(&text, Form::Xml));
            }
        }
    }
}

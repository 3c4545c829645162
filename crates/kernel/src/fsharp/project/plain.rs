//! Whether a project is so plain that what a build does beside compiling is known: nothing that could change when a source does. Of a
//! project that runs commands, makes sources of other files or names them by patterns, only a build knows what is due.

use std::path::{Path, PathBuf};

use roxmltree::Node;

use super::document::{parse, path_from, read};

/// Items that make nothing when a source changes.
const ITEMS: [&str; 16] = [
    "AssemblyAttribute",
    "AssemblyMetadata",
    "Compile",
    "Content",
    "EmbeddedResource",
    "Folder",
    "FrameworkReference",
    "GlobalPackageReference",
    "InternalsVisibleTo",
    "None",
    "PackageReference",
    "PackageVersion",
    "ProjectCapability",
    "ProjectReference",
    "Reference",
    "Using",
];

/// Parts of names of properties that have a build do something else, in lower case.
const PROPERTIES: [&str; 12] = [
    "buildevent",
    "compilertool",
    "custom",
    "dependson",
    "directorybuild",
    "directorypackages",
    "fsc",
    "generateinterfacefile",
    "pathmap",
    "skipcompiler",
    "targetframeworks",
    "targetstriggered",
];

const SDKS: [&str; 3] = ["Microsoft.NET.Sdk", "Microsoft.NET.Sdk.Web", "Microsoft.NET.Sdk.Worker"];
/// How deep imports may be nested.
const DEEPEST: usize = 8;

/// What the files of a project say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PlainProject {
    /// The files that it imports, beside those of the SDK and packages.
    pub(super) imports: Vec<PathBuf>,
    /// Whether files are named by patterns: a new file may be one of them.
    pub(super) has_patterns: bool,
}

/// What the file of a project, or one that it imports, says; else what is not plain about it.
pub(super) fn plain(path: &Path) -> Result<PlainProject, String> {
    let mut found = PlainProject::default();
    look(path, 0, &mut found)?;
    Ok(found)
}

fn look(path: &Path, depth: usize, found: &mut PlainProject) -> Result<(), String> {
    if depth > DEEPEST {
        return Err(format!("{}: its imports are nested too deep", path.display()));
    }
    let told = |what: String| format!("{}: {what}", path.display());
    let text = read(path).map_err(|error| error.to_string())?;
    if text.contains("$([") || text.contains("$(Registry:") {
        return Err(told("it computes values".to_owned()));
    }
    let document = parse(&text).map_err(told)?;
    let root = document.root_element();
    match root.attribute("Sdk") {
        None => {}
        Some(sdk) if SDKS.contains(&sdk) => found.has_patterns |= sdk != SDKS[0],
        Some(sdk) => return Err(told(format!("its SDK is {sdk}"))),
    }
    for node in root.children().filter(Node::is_element) {
        match node.tag_name().name() {
            "PropertyGroup" => properties(node).map_err(told)?,
            "ItemGroup" => found.has_patterns |= items(node).map_err(told)?,
            "Import" => {
                let import = node.attribute("Project").filter(|import| !import.contains(['$', '*', '?']));
                let import = import.ok_or_else(|| told("it imports what is computed".to_owned()))?;
                let import = path_from(path.parent().unwrap_or(Path::new("/")), import);
                look(&import, depth + 1, found)?;
                found.imports.push(import);
            }
            other => return Err(told(format!("it has a `{other}`"))),
        }
    }
    Ok(())
}

fn properties(group: Node<'_, '_>) -> Result<(), String> {
    for property in group.children().filter(Node::is_element) {
        let name = property.tag_name().name();
        let lower = name.to_ascii_lowercase();
        if PROPERTIES.iter().any(|part| lower.contains(part)) {
            return Err(format!("it sets `{name}`"));
        }
    }
    Ok(())
}

/// Whether items are named by patterns.
fn items(group: Node<'_, '_>) -> Result<bool, String> {
    let mut has_patterns = false;
    for item in group.children().filter(Node::is_element) {
        let name = item.tag_name().name();
        if !ITEMS.contains(&name) {
            return Err(format!("it has items of the kind `{name}`"));
        }
        let is_pattern = ["Include", "Update", "Remove"]
            .iter()
            .any(|attribute| item.attribute(*attribute).is_some_and(|value| value.contains(['*', '?'])));
        if is_pattern && matches!(name, "Compile" | "EmbeddedResource" | "Reference" | "ProjectReference") {
            return Err(format!("it names items of the kind `{name}` by patterns"));
        }
        has_patterns |= is_pattern;
    }
    Ok(has_patterns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::Tree;

    fn said(body: &str) -> Result<PlainProject, String> {
        let tree = Tree::of("");
        tree.write("shared.props", "<Project><PropertyGroup><A>1</A></PropertyGroup></Project>");
        tree.write("A.fsproj", &format!("<Project Sdk=\"Microsoft.NET.Sdk\">{body}</Project>"));
        let path = tree.path("A.fsproj");
        let folder = format!("{}/", tree.root().display());
        plain(&path).map_err(|reason| reason.replace(&folder, "")).map(|mut found| {
            found.imports.iter_mut().for_each(|path| *path = path.strip_prefix(&folder).unwrap().to_owned());
            found
        })
    }

    #[test]
    fn a_project_that_only_compiles_is_plain() {
        let body = "<Import Project=\"shared.props\" /><PropertyGroup><OtherFlags>--warnon:3390</OtherFlags></PropertyGroup>\
                    <ItemGroup><Compile Include=\"A.fs\" /><PackageReference Include=\"P\" Version=\"1.*\" /></ItemGroup>";
        let imports = vec![PathBuf::from("shared.props")];
        assert_eq!(said(body), Ok(PlainProject { imports, has_patterns: false }));
        let content = "<ItemGroup><Content Include=\"data/*.json\" /></ItemGroup>";
        assert_eq!(said(content), Ok(PlainProject { imports: Vec::new(), has_patterns: true }));
    }

    #[test]
    fn what_a_build_may_do_besides_is_named() {
        let refused = |body: &str| said(body).unwrap_err();
        assert_eq!(refused("<Target Name=\"X\" />"), "A.fsproj: it has a `Target`");
        assert_eq!(
            refused("<PropertyGroup><PostBuildEvent>x</PostBuildEvent></PropertyGroup>"),
            "A.fsproj: it sets `PostBuildEvent`"
        );
        assert_eq!(
            refused("<PropertyGroup><TargetFrameworks>net8.0;net10.0</TargetFrameworks></PropertyGroup>"),
            "A.fsproj: it sets `TargetFrameworks`"
        );
        assert_eq!(
            refused("<ItemGroup><FsLex Include=\"L.fsl\" /></ItemGroup>"),
            "A.fsproj: it has items of the kind `FsLex`"
        );
        assert_eq!(
            refused("<ItemGroup><Compile Include=\"gen/*.fs\" /></ItemGroup>"),
            "A.fsproj: it names items of the kind `Compile` by patterns"
        );
        assert_eq!(
            refused("<Import Project=\"$(Here)/x.props\" />"),
            "A.fsproj: it imports what is computed"
        );
        assert_eq!(
            refused("<PropertyGroup><V>$([System.DateTime]::Now)</V></PropertyGroup>"),
            "A.fsproj: it computes values"
        );
    }
}

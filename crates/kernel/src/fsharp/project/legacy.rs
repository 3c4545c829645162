//! Projects from before `dotnet`: written for the msbuild of Visual Studio or Mono, they name no SDK and import its targets themselves.
//! No SDK builds them.

use std::path::Path;

use super::document::{parse, read};

/// What is said of such a project.
pub(super) const REASON: &str = "it is written for the msbuild of Visual Studio, which no .NET SDK has; \
     one that begins with `<Project Sdk=\"Microsoft.NET.Sdk\">` can be built and loaded here";

/// Whether the project is one. What cannot be read is for msbuild to complain about.
pub(super) fn is_legacy(project: &Path) -> bool {
    read(project).is_ok_and(|text| is_legacy_text(&text))
}

fn is_legacy_text(text: &str) -> bool {
    let Ok(document) = parse(text) else { return false };
    let root = document.root_element();
    let names_sdk =
        |node: roxmltree::Node<'_, '_>| node.has_tag_name("Sdk") || node.attribute("Sdk").is_some();
    let imports_targets = root.descendants().any(|node| {
        let imported = node.attribute("Project").unwrap_or_default().to_ascii_lowercase();
        node.tag_name().name() == "Import" && imported.ends_with("fsharp.targets")
    });
    imports_targets && !root.descendants().any(names_sdk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_that_imports_the_targets_of_visual_studio_and_names_no_sdk_is_legacy() {
        let import = r#"<Import Project="$(MSBuildExtensionsPath32)\FSharp\1.0\Microsoft.FSharp.Targets" />"#;
        let namespace = r#"xmlns="http://schemas.microsoft.com/developer/msbuild/2003""#;
        assert!(is_legacy_text(&format!(r#"<Project ToolsVersion="15.0" {namespace}>{import}</Project>"#)));
        assert!(is_legacy_text(&format!("<Project>{import}</Project>")));
        for other in [
            r#"<Project Sdk="Microsoft.NET.Sdk"></Project>"#.to_owned(),
            format!(r#"<Project Sdk="Microsoft.NET.Sdk">{import}</Project>"#),
            format!(r#"<Project><Sdk Name="Microsoft.NET.Sdk" />{import}</Project>"#),
            r#"<Project><Import Project="Sdk.props" Sdk="Microsoft.NET.Sdk" /></Project>"#.to_owned(),
            r#"<Project><Import Project="../common.props" /></Project>"#.to_owned(),
            "<Project".to_owned(),
        ] {
            assert!(!is_legacy_text(&other), "{other}");
        }
    }
}

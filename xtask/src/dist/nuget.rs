//! The .NET tool: a package that names one package for each platform, and these. No .NET code is in them.
//!
//! `dotnet tool install` and `dnx` of SDK 10 and later know such tools: the settings have version 2, and the command of a platform's package
//! has the runner `executable`.

use std::io;

use super::archive::Files;
use super::facts::{Facts, Package, Program};
use super::names::NUGET;

/// The types of parts that a package must list, by the endings of their names.
const CONTENT_TYPES: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
  <Default Extension="nuspec" ContentType="application/octet" />
  <Default Extension="xml" ContentType="application/octet" />
  <Default Extension="md" ContentType="application/octet" />
  <Default Extension="txt" ContentType="application/octet" />
  <Default Extension="exe" ContentType="application/octet" />
  <Default Extension="json" ContentType="application/octet" />
"#;

/// Returns the package that users install.
pub(crate) fn tool(facts: &Facts, programs: &[Program]) -> io::Result<Package> {
    let of_platform = |program: &Program| {
        let rid = program.platform.rid;
        format!("    <RuntimeIdentifierPackage RuntimeIdentifier=\"{rid}\" Id=\"{}\" />\n", id(Some(program)))
    };
    let command = format!("<Command Name=\"{}\" />", facts.name);
    let packages: String = programs.iter().map(of_platform).collect();
    let packages = format!("  <RuntimeIdentifierPackages>\n{packages}  </RuntimeIdentifierPackages>\n");
    let mut files = Files::default();
    files.add_text("tools/any/any/DotnetToolSettings.xml", settings(&command, &packages));
    package(facts, id(None), "DotnetTool", files)
}

/// Returns the package of a platform, which the other one names.
pub(crate) fn tool_for_platform(facts: &Facts, program: &Program) -> io::Result<Package> {
    let executable = program.platform.executable(&facts.name);
    let folder = format!("tools/any/{}", program.platform.rid);
    let command =
        format!("<Command Name=\"{}\" EntryPoint=\"{executable}\" Runner=\"executable\" />", facts.name);
    let mut files = Files::default();
    files.add_text(format!("{folder}/DotnetToolSettings.xml"), settings(&command, ""));
    files.add_program(format!("{folder}/{executable}"), &program.bytes[..]);
    files.add(format!("sbom/{}.cdx.json", facts.archive_name(program.platform)), program.sbom.as_bytes());
    package(facts, id(Some(program)), "DotnetToolRidPackage", files)
}

fn id(program: Option<&Program>) -> String {
    match program {
        None => NUGET.to_owned(),
        Some(program) => format!("{NUGET}.{}", program.platform.rid),
    }
}

fn settings(command: &str, packages: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<DotNetCliTool Version=\"2\">\n  <Commands>\n    {command}\n  </Commands>\n{packages}</DotNetCliTool>\n"
    )
}

fn package<'a>(facts: &'a Facts, id: String, kind: &str, mut files: Files<'a>) -> io::Result<Package> {
    files.add_text(format!("{id}.nuspec"), nuspec(facts, &id, kind));
    files.add_text("_rels/.rels", relationships(&id));
    files.add_text("README.md", facts.readme());
    facts.add_licences(&mut files, "");
    files.add_text("[Content_Types].xml", content_types(&files));
    Ok(Package { name: format!("{id}.{}.nupkg", facts.version), bytes: files.zip(facts.style)? })
}

fn nuspec(facts: &Facts, id: &str, kind: &str) -> String {
    let Facts { version, description, licence, homepage, repository, .. } = facts;
    let homepage =
        homepage.as_ref().map(|homepage| format!("    <projectUrl>{}</projectUrl>\n", escaped(homepage)));
    let repository = repository
        .as_ref()
        .map(|repository| format!("    <repository type=\"git\" url=\"{}\" />\n", escaped(repository)));
    let links = [homepage, repository].into_iter().flatten().collect::<String>();
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>{id}</id>
    <version>{version}</version>
    <authors>{}</authors>
    <description>{}</description>
    <license type="expression">{licence}</license>
    <readme>README.md</readme>
{links}    <packageTypes>
      <packageType name="{kind}" />
    </packageTypes>
  </metadata>
</package>
"#,
        escaped(facts.publisher()),
        escaped(description)
    )
}

fn relationships(id: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/{id}.nuspec" Id="manifest" />
</Relationships>
"#
    )
}

/// The types of all parts. One whose name has no ending is listed by its path.
fn content_types(files: &Files) -> String {
    let has_ending = |path: &str| path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let lone = files.iter().filter(|(path, _)| !has_ending(path));
    let lone: String = lone
        .map(|(path, _)| format!("  <Override PartName=\"/{path}\" ContentType=\"application/octet\" />\n"))
        .collect();
    format!("{CONTENT_TYPES}{lone}</Types>\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::facts::{sample, sample_program, sample_without_addresses};
    use super::*;
    use std::io::{Cursor, Read};

    fn text(package: &Package, path: &str) -> String {
        let mut archive = zip::ZipArchive::new(Cursor::new(&package.bytes)).unwrap();
        let mut text = String::new();
        archive.by_name(path).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_tool_names_the_package_of_each_platform() {
        let programs = ["aarch64-apple-darwin", "x86_64-unknown-linux-gnu"].map(sample_program);
        let package = tool(&sample(), &programs).unwrap();
        assert_eq!(package.name, "mainstay.1.2.3.nupkg");
        let settings = text(&package, "tools/any/any/DotnetToolSettings.xml");
        assert!(settings.contains(r#"RuntimeIdentifier="osx-arm64" Id="mainstay.osx-arm64""#), "{settings}");
        assert!(settings.contains(r#"RuntimeIdentifier="linux-x64" Id="mainstay.linux-x64""#), "{settings}");
        assert!(text(&package, "mainstay.nuspec").contains(r#"<packageType name="DotnetTool" />"#));
    }

    #[test]
    fn the_package_of_a_platform_has_an_executable_command() {
        let package = tool_for_platform(&sample(), &sample_program("x86_64-pc-windows-msvc")).unwrap();
        assert_eq!(package.name, "mainstay.win-x64.1.2.3.nupkg");
        let settings = text(&package, "tools/any/win-x64/DotnetToolSettings.xml");
        assert!(settings.contains(r#"EntryPoint="mainstay.exe" Runner="executable""#), "{settings}");
        let mut archive = zip::ZipArchive::new(Cursor::new(&package.bytes)).unwrap();
        assert_eq!(archive.by_name("tools/any/win-x64/mainstay.exe").unwrap().unix_mode(), Some(0o100_755));
        let types = text(&package, "[Content_Types].xml");
        assert!(types.contains(r#"PartName="/LICENSE-MIT""#), "{types}");
    }

    #[test]
    fn an_address_that_is_not_set_is_left_out() {
        let nuspec = |facts: &Facts| nuspec(facts, "mainstay", "DotnetTool");
        let (with, without) = (nuspec(&sample()), nuspec(&sample_without_addresses()));
        assert!(with.contains("    <projectUrl>https://mainstay.example</projectUrl>\n    <repository type=\"git\" url=\"https://mainstay.example/source\" />\n    <packageTypes>"), "{with}");
        assert!(!without.contains("projectUrl") && !without.contains("repository"), "{without}");
    }
}

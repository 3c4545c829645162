//! Project files as they are read: usual ones, those that are not understood, those that are none.

#[test]
fn what_is_written_as_a_number_is_the_character() {
    let read = |text| super::unescaped(text);
    assert_eq!(read("A%28b%29%2520.fs"), "A(b)%20.fs");
    assert_eq!(read("100%.fs %zz %e9 %"), "100%.fs %zz %e9 %");
}

use proptest::prelude::*;

use super::*;
use crate::fsharp::testing::Tree;

fn evaluated(tree: &Tree, project: &str) -> Evaluated {
    evaluate(&tree.path(project), "Debug", &SdkVersion::release(3, 1, 2)).unwrap()
}

/// Paths and notes without the tree's own folder.
fn short(tree: &Tree, texts: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let root = format!("{}/", tree.root().display());
    texts.into_iter().map(|text| text.as_ref().replace(&root, "")).collect()
}

fn paths(tree: &Tree, paths: &[PathBuf]) -> Vec<String> {
    short(tree, paths.iter().map(|path| path.to_str().unwrap()))
}

#[test]
fn a_usual_project_is_read() {
    let tree = Tree::of("");
    tree.write(
        "src/App/App.fsproj",
        r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFrameworks>netstandard2.0;netcoreapp3.1;net8.0</TargetFrameworks>
    <AssemblyName>$(MSBuildProjectName).Main</AssemblyName>
    <DefineConstants>$(DefineConstants);SHOP</DefineConstants>
    <NoWarn>$(NoWarn);FS0025;3370</NoWarn>
    <LangVersion>4.7</LangVersion>
  </PropertyGroup>
  <ItemGroup Condition=" '$(TargetFramework)' == 'netcoreapp3.1' and '$(Configuration)' != 'Release' ">
    <Compile Include="A.fs;Sub\B.fs" />
  </ItemGroup>
  <ItemGroup Condition="'$(TargetFramework)' == 'net8.0'"><Compile Include="No.fs" /></ItemGroup>
  <ItemGroup>
    <Compile Include="Program.fs" />
    <Reference Include="Old"><HintPath>..\..\lib\Old.dll</HintPath></Reference>
    <PackageReference Include="Newtonsoft.Json" Version="13.0.1" />
    <ProjectReference Include="..\Lib\Lib.fsproj" />
    <ProjectReference Include="..\Tool\Tool.fsproj" ReferenceOutputAssembly="false" />
  </ItemGroup>
</Project>"#,
    );
    let project = evaluated(&tree, "src/App/App.fsproj");
    assert_eq!(project.framework.as_deref(), Some("netcoreapp3.1"));
    assert_eq!(
        paths(&tree, std::slice::from_ref(&project.output)),
        ["src/App/bin/Debug/netcoreapp3.1/App.Main.dll"]
    );
    assert_eq!(paths(&tree, &project.sources), ["src/App/A.fs", "src/App/Sub/B.fs", "src/App/Program.fs"]);
    assert_eq!(paths(&tree, &project.references), ["lib/Old.dll"]);
    assert_eq!(paths(&tree, &project.projects), ["src/Lib/Lib.fsproj"]);
    assert_eq!(project.packages, ["Newtonsoft.Json"]);
    assert_eq!(project.defines, ["TRACE", "SHOP", "DEBUG", "NETCOREAPP", "NETCOREAPP3_1"]);
    assert_eq!(project.options, ["--nowarn:FS0025", "--nowarn:3370", "--langversion:4.7"]);
    assert!(project.is_program);
    assert_eq!(project.notes, Vec::<String>::new());
}

#[test]
fn what_stands_in_files_above_and_in_imported_ones_counts() {
    let tree = Tree::of("");
    tree.write("Directory.Build.props", "<Project><PropertyGroup><TargetFramework>net6.0</TargetFramework><Common>Common.fs</Common></PropertyGroup></Project>");
    tree.write("Directory.Build.targets", "<Project><ItemGroup><Compile Include='Last.fs' Condition=\"'$(Last)' == 'yes'\" /></ItemGroup></Project>");
    tree.write("build/more.props", "<Project><PropertyGroup><Last>yes</Last><Here>$(MSBuildThisFileDirectory)Here.fs</Here></PropertyGroup></Project>");
    tree.write("src/A.fsproj", r#"<Project><Import Project="../build/more.props" /><ItemGroup><Compile Include="$(Common);$(Here)" /></ItemGroup></Project>"#);
    let project = evaluate(&tree.path("src/A.fsproj"), "Release", &SdkVersion::release(8, 0, 11)).unwrap();
    assert_eq!(project.framework.as_deref(), Some("net6.0"));
    assert_eq!(paths(&tree, &project.sources), ["src/Common.fs", "build/Here.fs", "src/Last.fs"]);
    assert_eq!(paths(&tree, &[project.output]), ["src/bin/Release/net6.0/A.dll"]);
}

#[test]
fn what_is_not_understood_is_left_out_and_named() {
    let tree = Tree::of("");
    tree.write(
        "A.fsproj",
        r#"<Project>
  <Import Project="missing.props" />
  <PropertyGroup><TargetFramework>net8.0</TargetFramework><Made>$([System.DateTime]::Now)</Made></PropertyGroup>
  <ItemGroup Condition="Exists('x')"><Compile Include="X.fs" /></ItemGroup>
  <ItemGroup Condition="'$(CI)' == 'true'"><Compile Include="Y.fs" /></ItemGroup>
  <ItemGroup><Compile Include="*.fs;Z.fs" /><Reference Include="System.Web" /></ItemGroup>
  <Choose />
  <Target Name="Generate" />
</Project>"#,
    );
    let project = evaluated(&tree, "A.fsproj");
    assert_eq!(paths(&tree, &project.sources), ["Z.fs"]);
    let expected = [
        "A.fsproj: it imports missing.props, which is not there",
        "A.fsproj: `ItemGroup` is left out: its condition is not understood: Exists('x')",
        "A.fsproj: `ItemGroup` is left out: its condition is not understood: '$(CI)' == 'true'",
        "A.fsproj: `*.fs` is a pattern or a list, which is not followed",
        "A.fsproj: the reference `System.Web` has no `HintPath`",
        "A.fsproj: `Choose` is not followed",
        "A.fsproj: its own target `Generate` is not run",
        "A.fsproj: it is for net8.0, which the runtime 3.1.2 cannot load",
    ];
    let mut notes = short(&tree, &project.notes);
    assert!(notes.iter().any(|note| note.contains("[System.DateTime]")), "{notes:?}");
    notes.retain(|note| !note.contains("[System.DateTime]"));
    assert_eq!(notes, expected);
}

#[test]
fn files_that_are_no_projects_are_refused() {
    let tree = Tree::of("");
    tree.write("Html.fsproj", "<html />");
    tree.write("Broken.fsproj", "<Project>\n<ItemGroup></Project>");
    let refused =
        |name: &str| evaluate(&tree.path(name), "Debug", &SdkVersion::release(8, 0, 0)).unwrap_err();
    assert!(refused("Html.fsproj").to_string().contains("its root is not `Project`"));
    assert!(refused("Broken.fsproj").to_string().contains("line 2"));
    assert!(matches!(refused("None.fsproj"), Error::ProjectNotFound { .. }));
}

#[test]
fn a_project_that_would_grow_without_end_is_still_read() {
    let tree = Tree::of("");
    let doubling = "<A>$(A)$(A)</A>".repeat(64);
    tree.write("A.fsproj", &format!("<Project><PropertyGroup><A>aa</A>{doubling}</PropertyGroup><Import Project='A.fsproj' /></Project>"));
    assert!(evaluated(&tree, "A.fsproj").notes.iter().any(|note| note.contains("too long")));
    let deep =
        format!("<Project>{}{}</Project>", "<ImportGroup>".repeat(100_000), "</ImportGroup>".repeat(100_000));
    tree.write("Deep.fsproj", &deep);
    let refused = evaluate(&tree.path("Deep.fsproj"), "Debug", &SdkVersion::release(8, 0, 0));
    assert!(matches!(refused, Err(Error::ProjectInvalid { .. })), "{refused:?}");
}

proptest! {
    #[test]
    fn whatever_a_project_file_holds_reading_it_ends(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        inner in "(<(PropertyGroup|ItemGroup|A|Import|Compile)( (Condition|Include|Project)='[$()A-Za-z=*. ;]{0,12}')?/?>|</(PropertyGroup|ItemGroup|A)>|\\$\\(A\\)|[a-z&;]){0,20}",
    ) {
        let tree = Tree::of("");
        for bytes in [bytes, format!("<Project>{inner}</Project>").into_bytes()] {
            std::fs::write(tree.path("A.fsproj"), bytes).unwrap();
            let _ = evaluate(&tree.path("A.fsproj"), "Debug", &SdkVersion::release(8, 0, 0));
        }
    }
}

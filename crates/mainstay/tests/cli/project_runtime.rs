//! What a project's code finds when a session runs it: ASP.NET Core, native libraries of packages, its own files, its compiler's options.

use crate::support;
use crate::support::World;

/// Files of a project `App`.
fn project(files: &[(&str, &str)]) -> Option<World> {
    built("App.fsproj", files)
}

/// A session of a project or solution, which is built of these files.
fn built(project: &str, files: &[(&str, &str)]) -> Option<World> {
    if !support::dotnet().join("shared/Microsoft.AspNetCore.App").is_dir() {
        eprintln!("the SDK under test has no ASP.NET Core: nothing is tested");
        return None;
    }
    let world = World::new();
    for (name, text) in files {
        let path = world.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    for arguments in [&["session", "new", "--project", project][..], &["session", "rebuild"]] {
        let done = world.run(arguments);
        assert_eq!(done.code, 0, "{done:?}");
    }
    Some(world)
}

fn value(world: &World, code: &str) -> String {
    let evaluated = world.eval(code);
    assert_eq!(evaluated["success"], true, "{code}: {evaluated}");
    evaluated["value"].as_str().unwrap().to_owned()
}

#[test]
fn a_web_project_serves_requests_from_a_session_and_reads_its_settings() {
    let Some(world) = project(&[
        (
            "App.fsproj",
            r#"<Project Sdk="Microsoft.NET.Sdk.Web">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="App.fs" /></ItemGroup>
</Project>"#,
        ),
        ("appsettings.json", r#"{ "Greeting": "hello" }"#),
        (
            "App.fs",
            r#"module App
open System
open Microsoft.AspNetCore.Builder
let greeting () = IO.File.ReadAllText(IO.Path.Combine(AppContext.BaseDirectory, "appsettings.json"))
let start () =
    let app = WebApplication.CreateBuilder(WebApplicationOptions(Args = [| "--urls"; "http://127.0.0.1:0" |])).Build()
    app.MapGet("/", Func<string>(fun () -> "from the project")) |> ignore
    app.StartAsync().Wait()
    app
[<EntryPoint>]
let main _ = (start ()).StopAsync().Wait(); 0
"#,
        ),
    ]) else {
        return;
    };
    assert!(value(&world, "App.greeting ()").contains("hello"));
    let code = "let app = App.start ()
let page = (new System.Net.Http.HttpClient()).GetStringAsync(Seq.head app.Urls).Result
app.StopAsync().Wait()";
    value(&world, &format!("{code}\n()").replace("\n()", "\npage.Length"));
    assert_eq!(value(&world, "page"), "\"from the project\"");
}

#[test]
fn native_libraries_of_packages_are_found_and_options_obeyed() {
    let Some(world) = project(&[
        (
            "App.fsproj",
            r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net10.0</TargetFramework>
    <Nullable>enable</Nullable>
    <DefineConstants>$(DefineConstants);SHOP</DefineConstants>
    <NoWarn>$(NoWarn);25</NoWarn>
  </PropertyGroup>
  <ItemGroup>
    <Compile Include="App.fs" />
    <PackageReference Include="Microsoft.Data.Sqlite" Version="10.0.14" />
  </ItemGroup>
</Project>"#,
        ),
        (
            "App.fs",
            r#"module App
open Microsoft.Data.Sqlite
let version () =
    use connection = new SqliteConnection("Data Source=:memory:")
    connection.Open()
    use command = connection.CreateCommand()
    command.CommandText <- "select sqlite_version()"
    command.ExecuteScalar() |> string
"#,
        ),
    ]) else {
        return;
    };
    assert!(value(&world, "App.version ()").starts_with("\"3."));
    assert_eq!(value(&world, "#if SHOP\n1\n#else\n2\n#endif"), "1");
    let incomplete = world.eval("let f x = match x with 1 -> 2");
    assert_eq!(incomplete["diagnostics"].as_array().map_or(0, Vec::len), 0, "{incomplete}");
    let nullness = world.eval("let s: string = null");
    assert!(nullness["diagnostics"].to_string().contains("FS3261"), "{nullness}");
}

#[test]
fn a_solution_with_central_package_versions_and_a_csharp_project_is_its_sessions_own() {
    const CSHARP: &str = r#"namespace Shop.Pricing;
public record Price(decimal Amount, string? Currency)
{
    public string Json() => Newtonsoft.Json.JsonConvert.SerializeObject(this);
}
"#;
    let Some(world) = built(
        "Shop.slnx",
        &[
            (
                "Directory.Build.props",
                "<Project><PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup></Project>",
            ),
            (
                "Directory.Packages.props",
                r#"<Project>
  <PropertyGroup><ManagePackageVersionsCentrally>true</ManagePackageVersionsCentrally></PropertyGroup>
  <ItemGroup><PackageVersion Include="Newtonsoft.Json" Version="13.0.3" /></ItemGroup>
</Project>"#,
            ),
            (
                "pricing/Pricing.csproj",
                r#"<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <Nullable>enable</Nullable>
    <DefineConstants>$(DefineConstants);PRICING</DefineConstants>
  </PropertyGroup>
  <ItemGroup><PackageReference Include="Newtonsoft.Json" /></ItemGroup>
</Project>"#,
            ),
            ("pricing/Price.cs", CSHARP),
            (
                "app/App.fsproj",
                r#"<Project Sdk="Microsoft.NET.Sdk">
  <ItemGroup>
    <Compile Include="App.fs" />
    <ProjectReference Include="../pricing/Pricing.csproj" />
  </ItemGroup>
</Project>"#,
            ),
            (
                "app/App.fs",
                "namespace Shop\nopen Shop.Pricing\nmodule App =\n    let basket = [ Price(1m, \"EUR\"); Price(2m, \"EUR\") ]\n",
            ),
            (
                "Shop.slnx",
                r#"<Solution>
  <Folder Name="/src/">
    <Project Path="pricing/Pricing.csproj" />
    <Project Path="app/App.fsproj" />
  </Folder>
</Solution>"#,
            ),
        ],
    ) else {
        return;
    };
    assert_eq!(value(&world, "App.basket.[1].Json()"), r#""{"Amount":2.0,"Currency":"EUR"}""#);
    assert_eq!(value(&world, "int (Shop.Pricing.Price(3m, null).Amount)"), "3");
    // What the C# compiler is told is none of F#'s.
    assert_eq!(value(&world, "#if PRICING\n1\n#else\n2\n#endif"), "2");
    let plain = world.eval("let s: string = null");
    assert_eq!(plain["diagnostics"].as_array().map_or(0, Vec::len), 0, "{plain}");

    std::fs::write(world.work().join("pricing/Price.cs"), CSHARP.replace("Json()", "AsJson()")).unwrap();
    let rebuilt = world.run(["session", "rebuild"]);
    assert_eq!(rebuilt.code, 0, "{rebuilt:?}");
    assert!(value(&world, "App.basket.[0].AsJson()").contains("Amount"));
    std::fs::write(world.work().join("pricing/Price.cs"), CSHARP.replace("this);", "this)")).unwrap();
    let failed = world.run(["session", "rebuild"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("CS1002") && failed.stderr.contains("Price.cs"), "{failed:?}");
}

#[test]
fn a_language_version_that_the_sdk_does_not_know_costs_the_build_and_not_the_session() {
    let world = World::new();
    let project = "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>net10.0</TargetFramework>\
                   <LangVersion>99.0</LangVersion></PropertyGroup><ItemGroup><Compile Include=\"App.fs\" /></ItemGroup></Project>";
    std::fs::write(world.work().join("App.fsproj"), project).unwrap();
    std::fs::write(world.work().join("App.fs"), "module App\n").unwrap();
    assert_eq!(value(&world, "1 + 1"), "2");
    let shown = world.run(["session", "show"]).stdout;
    assert!(shown.contains("its `LangVersion` 99.0 is none of this SDK's F#"), "{shown}");
}

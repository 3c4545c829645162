//! The .NET tool, from a folder as its source: SDK 10, without the network.

use std::path::PathBuf;

use crate::support::{Newcomer, PLATFORM, VERSION, packages, provided, skip};

/// A user with the SDK and folders of packages of their own; nothing where there is no SDK that knows such tools.
fn user() -> Option<(Newcomer, PathBuf)> {
    let sdk = provided("MAINSTAY_TEST_DOTNET")?;
    let user = Newcomer::new();
    let user = user.with_fsharp(&sdk);
    let cli = user.folder("dotnet");
    let user = user.with("DOTNET_CLI_HOME", &cli).with("NUGET_PACKAGES", cli.join("packages"));
    let user = user.with("DOTNET_CLI_TELEMETRY_OPTOUT", "1").with("DOTNET_NOLOGO", "1");
    let version = user.run(sdk.join("dotnet"), ["--version"]);
    let major: u32 = version.split('.').next().unwrap().parse().unwrap();
    if major < 10 {
        skip(&format!("SDK {} knows no tools without .NET code", version.trim()));
        return None;
    }
    Some((user, sdk.join("dotnet")))
}

#[test]
fn the_tool_is_installed_from_a_folder_and_removed() {
    let (Some(packages), Some((user, dotnet))) = (packages(), user()) else { return };
    let tools = user.folder("tools");
    let change = |what: &[&str]| {
        let mut command = user.command(&dotnet);
        crate::support::succeed(
            command.args(["tool"]).args(what).arg("mainstay").arg("--tool-path").arg(&tools),
        )
    };
    change(&["install", "--source", packages.to_str().unwrap()]);
    let started = user.try_out(&tools.join("mainstay"), "fsharp", "val it: int = 42\n");
    assert_eq!(started, tools.join("mainstay"), "the link, which leads to the next version too");
    change(&["uninstall"]);
    assert_eq!(user.files("tools"), [""; 0]);
    assert!(
        user.files("home/.mainstay").contains(&"store/mainstay.db".to_owned()),
        "what is the user's stays"
    );
}

#[test]
fn dnx_runs_the_tool_without_installing_it() {
    let (Some(packages), Some((user, dotnet))) = (packages(), user()) else { return };
    let dnx = |arguments: &[&str]| {
        let mut command = user.command(&dotnet);
        command.args(["dnx", "mainstay", "--yes", "--source"]).arg(&packages).arg("--");
        crate::support::succeed(command.args(arguments))
    };
    assert_eq!(dnx(&["--version"]), format!("mainstay {VERSION}\n"));
    assert_eq!(dnx(&["eval", "6 * 7"]), "val it: int = 42\n");
    dnx(&["stop"]);
    let downloaded = user.files("dotnet/packages");
    let program = format!("tools/any/{}/mainstay", PLATFORM.rid);
    assert!(downloaded.iter().any(|file| file.ends_with(&program)), "{downloaded:?}");
}

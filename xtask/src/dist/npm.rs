//! The npm packages: one that users install, and one for each platform, of which npm takes the right one by `os` and `cpu`. npx
//! starts the only command of a package, so it need not have the name of the package.
//!
//! Nothing runs when they are installed: scripts of packages are switched off in many places.

use std::io;

use serde_json::{Map, Value, json};

use super::archive::Files;
use super::facts::{Facts, Package, Program};
use super::names::NPM;
use super::platform::Platform;

/// Starts the program of the platform's package.
const LAUNCHER: &str = include_str!("templates/launcher.js");

/// Returns the package that users install.
pub(crate) fn launcher(facts: &Facts, programs: &[Program]) -> io::Result<Package> {
    let of_platforms: Map<_, _> = programs
        .iter()
        .map(|program| (platform_name(program.platform), facts.version.clone().into()))
        .collect();
    let mut manifest = manifest(facts, NPM);
    let script = format!("bin/{}.js", facts.name);
    manifest["bin"] = json!({ &facts.name: script });
    manifest["engines"] = json!({ "node": ">=18" });
    manifest["optionalDependencies"] = of_platforms.into();
    let mut files = Files::default();
    files.add_program(script, LAUNCHER.replace("@SCOPE@", &format!("@{NPM}")).into_bytes());
    package(facts, NPM, &manifest, files)
}

/// Returns the package of a platform.
pub(crate) fn for_platform(facts: &Facts, program: &Program) -> io::Result<Package> {
    let platform = program.platform;
    let mut manifest = manifest(facts, &platform_name(platform));
    manifest["os"] = json!([platform.npm_os]);
    manifest["cpu"] = json!([platform.npm_cpu]);
    if platform.has_glibc() {
        manifest["libc"] = json!(["glibc"]);
    }
    // Yarn would keep the package as an archive, in which no program can be started.
    manifest["preferUnplugged"] = json!(true);
    let mut files = Files::default();
    files.add_program(format!("bin/{}", platform.executable(&facts.name)), &program.bytes[..]);
    files.add("sbom.cdx.json", program.sbom.as_bytes());
    package(facts, &format!("{NPM}-{}", suffix(platform)), &manifest, files)
}

fn package<'a>(facts: &'a Facts, name: &str, manifest: &Value, mut files: Files<'a>) -> io::Result<Package> {
    files.add_text("package.json", format!("{manifest:#}\n"));
    files.add_text("README.md", facts.readme());
    facts.add_licences(&mut files, "");
    let bytes = files.tar_gz("package/", facts.style)?;
    Ok(Package { name: format!("{name}-{}.tgz", facts.version), bytes })
}

fn manifest(facts: &Facts, name: &str) -> Value {
    let mut manifest = json!({
        "name": name,
        "version": facts.version,
        "description": facts.description,
        "license": facts.licence,
        "author": facts.maintainer,
    });
    if let Some(homepage) = &facts.homepage {
        manifest["homepage"] = json!(homepage);
    }
    if let Some(repository) = &facts.repository {
        manifest["repository"] = json!({ "type": "git", "url": repository });
    }
    manifest
}

/// The packages of platforms are in a scope, so that one reserved name is enough. The launcher forms their names in the same way.
fn platform_name(platform: &Platform) -> String {
    format!("@{NPM}/{}", suffix(platform))
}

fn suffix(platform: &Platform) -> String {
    format!("{}-{}", platform.npm_os, platform.npm_cpu)
}

#[cfg(test)]
mod tests {
    use super::super::facts::{sample, sample_program, sample_without_addresses};
    use super::*;
    use std::io::Read;

    fn manifest_in(package: &Package) -> Value {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&package.bytes[..]));
        let mut entries = archive.entries().unwrap().map(Result::unwrap);
        let mut entry = entries.find(|entry| entry.path_bytes().ends_with(b"package.json")).unwrap();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_package_of_users_may_have_that_of_each_platform() {
        let programs = ["aarch64-apple-darwin", "x86_64-unknown-linux-gnu"].map(sample_program);
        let package = launcher(&sample(), &programs).unwrap();
        assert_eq!(package.name, "mainstay-sessions-1.2.3.tgz");
        let manifest = manifest_in(&package);
        let expected =
            json!({ "@mainstay-sessions/darwin-arm64": "1.2.3", "@mainstay-sessions/linux-x64": "1.2.3" });
        assert_eq!(manifest["optionalDependencies"], expected);
        assert_eq!(manifest["scripts"], Value::Null, "nothing runs when it is installed");
    }

    #[test]
    fn the_package_of_a_platform_says_which_it_is() {
        let package = for_platform(&sample(), &sample_program("x86_64-unknown-linux-gnu")).unwrap();
        assert_eq!(package.name, "mainstay-sessions-linux-x64-1.2.3.tgz");
        let manifest = manifest_in(&package);
        let told = ["name", "os", "cpu", "libc"].map(|key| manifest[key].clone());
        assert_eq!(
            told,
            [json!("@mainstay-sessions/linux-x64"), json!(["linux"]), json!(["x64"]), json!(["glibc"])]
        );
    }

    #[test]
    fn an_address_that_is_not_set_is_left_out() {
        let manifest = manifest_in(&launcher(&sample_without_addresses(), &[]).unwrap());
        assert_eq!((&manifest["homepage"], &manifest["repository"]), (&Value::Null, &Value::Null));
        assert_eq!(manifest_in(&launcher(&sample(), &[]).unwrap())["homepage"], "https://mainstay.example");
    }
}

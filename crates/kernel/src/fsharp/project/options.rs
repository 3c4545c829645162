//! The compiler options of a project that its session takes over, so that code at the prompt is compiled as the project's is. F#
//! interactive ends over an option that it does not know, so what is not of the SDK's own F# is left out.

use crate::fsharp::version::SdkVersion;

/// What a project says of its compilation, as msbuild's properties have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CompilationProperties {
    pub(super) nullable: String,
    pub(super) language: String,
    pub(super) no_warn: String,
    pub(super) warn_on: String,
    pub(super) other_flags: String,
}

/// Flags of `OtherFlags` that F# interactive knows, and ends over no value of. Others concern the assembly that a build makes.
/// Each with the first SDK that has it.
const TAKEN: [(&str, u32); 7] = [
    ("--define:", 0),
    ("--nowarn:", 0),
    ("--warnon:", 0),
    ("--warnaserror", 0),
    ("--checknulls", CHECKS_NULLS),
    ("--checked", 0),
    ("--strict-indentation", 8),
];
const CHECKS_NULLS: u32 = 9;

const LANGUAGE: &str = "--langversion:";
/// What names a version of the language without a number.
const NAMED_LANGUAGES: [&str; 4] = ["default", "latest", "latestmajor", "preview"];

/// The symbols that are defined for a project's conditional code: as a property of it, and by flags of its compiler.
pub(super) fn symbols<'a>(defines: &[String], flags: impl Iterator<Item = &'a str>) -> Vec<String> {
    let of_flag = |flag: &'a str| flag.strip_prefix("--define:").or_else(|| flag.strip_prefix("-d:"));
    defines.iter().cloned().chain(flags.filter_map(of_flag).map(str::to_owned)).collect()
}

impl CompilationProperties {
    /// The options of F# interactive on this runtime that come of it, with what is defined for conditional code.
    pub(super) fn arguments(&self, defines: &[String], runtime: &SdkVersion) -> Vec<String> {
        let mut arguments: Vec<String> = defines.iter().map(|name| format!("--define:{name}")).collect();
        if self.nullable.eq_ignore_ascii_case("enable") && runtime.major() >= CHECKS_NULLS {
            arguments.push("--checknulls+".to_owned());
        }
        let languages = self.languages().filter(|language| is_known(language, runtime));
        arguments.extend(languages.map(|language| format!("{LANGUAGE}{language}")));
        let codes = |list: &str| -> Vec<String> {
            list.split([',', ';', ' ']).filter(|code| !code.is_empty()).map(str::to_owned).collect()
        };
        arguments.extend(codes(&self.no_warn).into_iter().map(|code| format!("--nowarn:{code}")));
        arguments.extend(codes(&self.warn_on).into_iter().map(|code| format!("--warnon:{code}")));
        let is_taken = |flag: &&str| {
            TAKEN.iter().any(|(known, since)| flag.starts_with(known) && runtime.major() >= *since)
        };
        arguments.extend(self.other_flags.split_whitespace().filter(is_taken).map(str::to_owned));
        arguments
    }

    /// The version of the language that it asks for and the F# of this runtime does not know.
    pub(super) fn unknown_language(&self, runtime: &SdkVersion) -> Option<&str> {
        self.languages().find(|language| !is_known(language, runtime))
    }

    fn languages(&self) -> impl Iterator<Item = &str> {
        let property = Some(&*self.language).filter(|language| !language.is_empty());
        property
            .into_iter()
            .chain(self.other_flags.split_whitespace().filter_map(|flag| flag.strip_prefix(LANGUAGE)))
    }
}

/// Whether the F# of this runtime knows a version of the language: all up to its own, which has the runtime's number, and the next,
/// of which it has a preview.
fn is_known(language: &str, runtime: &SdkVersion) -> bool {
    let is_named = NAMED_LANGUAGES.iter().any(|name| language.eq_ignore_ascii_case(name));
    let (major, minor) = language.split_once('.').unwrap_or((language, "0"));
    let is_number =
        minor.parse::<u32>().is_ok() && major.parse().is_ok_and(|major: u32| major <= runtime.major() + 1);
    is_named || is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_project_says_of_its_compilation_is_said_to_the_session() {
        let said = CompilationProperties {
            nullable: "enable".into(),
            language: "9.0".into(),
            no_warn: "FS0025;3370".into(),
            warn_on: "3390".into(),
            other_flags: "--warnaserror:25 --debug:full --keyfile:x".into(),
        };
        let expected = "--define:TRACE --checknulls+ --langversion:9.0 --nowarn:FS0025 --nowarn:3370 \
                        --warnon:3390 --warnaserror:25";
        let runtime = SdkVersion::release(10, 0, 1);
        assert_eq!(said.arguments(&["TRACE".into()], &runtime).join(" "), expected);
        assert_eq!(CompilationProperties::default().arguments(&[], &runtime), Vec::<String>::new());
    }

    #[test]
    fn symbols_are_those_of_the_property_and_of_flags() {
        let flags = "--define:A --nowarn:25 -d:B --defined".split(' ');
        assert_eq!(symbols(&["TRACE".into()], flags), ["TRACE", "A", "B"]);
    }

    #[test]
    fn what_the_sdks_own_fsharp_does_not_know_is_left_out() {
        let said = |language: &str, other_flags: &str| CompilationProperties {
            nullable: "enable".into(),
            language: language.into(),
            other_flags: other_flags.into(),
            ..CompilationProperties::default()
        };
        let on = |said: &CompilationProperties, major| {
            let runtime = SdkVersion::release(major, 0, 0);
            (said.arguments(&[], &runtime).join(" "), said.unknown_language(&runtime).map(str::to_owned))
        };
        let newer = said("11.0", "--strict-indentation+ --checknulls");
        let all = "--checknulls+ --langversion:11.0 --checknulls --strict-indentation+";
        let (arguments, unknown) = on(&newer, 10);
        assert_eq!(arguments.split(' ').collect::<std::collections::BTreeSet<_>>(), all.split(' ').collect());
        assert_eq!(unknown, None);
        assert_eq!(on(&newer, 8), ("--strict-indentation+".to_owned(), Some("11.0".to_owned())));
        assert_eq!(on(&newer, 3), (String::new(), Some("11.0".to_owned())));
        assert_eq!(on(&said("4.7", ""), 3), ("--langversion:4.7".to_owned(), None));
        assert_eq!(on(&said("latestMajor", ""), 8), ("--langversion:latestMajor".to_owned(), None));
        assert_eq!(on(&said("", "--langversion:14.0"), 8), (String::new(), Some("14.0".to_owned())));
        assert_eq!(on(&said("C#", ""), 8), (String::new(), Some("C#".to_owned())));
    }
}

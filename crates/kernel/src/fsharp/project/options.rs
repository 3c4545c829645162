//! The compiler options of a project that its session takes over, so that code at the prompt is compiled as the project's is.

/// What a project says of its compilation, as msbuild's properties have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) nullable: String,
    pub(super) language: String,
    pub(super) no_warn: String,
    pub(super) warn_on: String,
    pub(super) other_flags: String,
}

/// Flags of `OtherFlags` that F# interactive knows, and ends over no value of. Others concern the assembly that a build makes.
const TAKEN: [&str; 8] = [
    "--define:",
    "--nowarn:",
    "--warnon:",
    "--warnaserror",
    "--langversion:",
    "--checknulls",
    "--checked",
    "--strict-indentation",
];

impl Said {
    /// The options of F# interactive that come of it, with what is defined for conditional code.
    pub(super) fn arguments(&self, defines: &[String]) -> Vec<String> {
        let mut arguments: Vec<String> = defines.iter().map(|name| format!("--define:{name}")).collect();
        if self.nullable.eq_ignore_ascii_case("enable") {
            arguments.push("--checknulls+".to_owned());
        }
        if !self.language.is_empty() {
            arguments.push(format!("--langversion:{}", self.language));
        }
        let codes = |list: &str| -> Vec<String> {
            list.split([',', ';', ' ']).filter(|code| !code.is_empty()).map(str::to_owned).collect()
        };
        arguments.extend(codes(&self.no_warn).into_iter().map(|code| format!("--nowarn:{code}")));
        arguments.extend(codes(&self.warn_on).into_iter().map(|code| format!("--warnon:{code}")));
        let flags = self.other_flags.split_whitespace();
        let taken = flags.filter(|flag| TAKEN.iter().any(|known| flag.starts_with(known)));
        arguments.extend(taken.map(str::to_owned));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_project_says_of_its_compilation_is_said_to_the_session() {
        let said = Said {
            nullable: "enable".into(),
            language: "9.0".into(),
            no_warn: "FS0025;3370".into(),
            warn_on: "3390".into(),
            other_flags: "--warnaserror:25 --debug:full --keyfile:x".into(),
        };
        let expected = "--define:TRACE --checknulls+ --langversion:9.0 --nowarn:FS0025 --nowarn:3370 \
                        --warnon:3390 --warnaserror:25";
        assert_eq!(said.arguments(&["TRACE".into()]).join(" "), expected);
        assert_eq!(Said::default().arguments(&[]), Vec::<String>::new());
    }
}

//! The options of the F# compiler that a session may be given. All others are refused: those of F# interactive itself belong to the worker, those
//! that write files make no sense at a prompt, and one that the compiler does not know ends the process.

use mainstay_model::Error;

/// How an option is written.
enum Form {
    /// A switch: `--checked`, `--checked+` or `--checked-`.
    Switch,
    /// `--define:X`, where what is behind the colon is fit.
    Value(fn(&str) -> bool),
    /// A switch that may also have a value behind a colon.
    SwitchOrValue(fn(&str) -> bool),
}

/// The options that are taken, each as it is told of.
const TAKEN: [(&str, &str, Form); 12] = [
    ("--define", "--define:NAME", Form::Value(is_name)),
    ("-d", "-d:NAME", Form::Value(is_name)),
    ("--nowarn", "--nowarn:CODES", Form::Value(are_codes)),
    ("--warnon", "--warnon:CODES", Form::Value(are_codes)),
    ("--warn", "--warn:LEVEL", Form::Value(is_level)),
    ("--warnaserror", "--warnaserror[+|-|:CODES]", Form::SwitchOrValue(are_codes)),
    ("--langversion", "--langversion:VERSION", Form::Value(is_version)),
    ("--checknulls", "--checknulls[+|-]", Form::Switch),
    ("--checked", "--checked[+|-]", Form::Switch),
    ("--strict-indentation", "--strict-indentation[+|-]", Form::Switch),
    ("--optimize", "--optimize[+|-]", Form::Switch),
    ("--debug", "--debug[+|-]", Form::Switch),
];

/// Refuses options that a session cannot be given.
///
/// # Errors
/// [`Error::InvalidArgument`], which lists those that it can.
pub fn check_options(options: &[String]) -> Result<(), Error> {
    let Some(refused) = options.iter().find(|option| !is_taken(option)) else { return Ok(()) };
    let taken: Vec<&str> = TAKEN.iter().map(|(_, told, _)| *told).collect();
    Err(Error::InvalidArgument {
        argument: "fsiArgs".to_owned(),
        reason: format!("`{refused}` cannot be given to a session; these can: {}", taken.join(", ")),
    })
}

fn is_taken(option: &str) -> bool {
    let (name, value) = match option.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    let is_switch = |known: &str| ["", "+", "-"].iter().any(|end| name.strip_prefix(known) == Some(end));
    TAKEN.iter().any(|(known, _, form)| match (form, value) {
        (Form::Switch | Form::SwitchOrValue(_), None) => is_switch(known),
        (Form::Value(fits), Some(value)) => name == *known && fits(value),
        (Form::SwitchOrValue(fits), Some(value)) => is_switch(known) && fits(value),
        (Form::Switch, Some(_)) | (Form::Value(_), None) => false,
    })
}

fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|c| c.is_alphanumeric() || c == '_')
}

fn are_codes(text: &str) -> bool {
    let is_code = |code: &str| {
        let number = code.strip_prefix("FS").unwrap_or(code);
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.split([',', ';']).all(is_code)
}

fn is_level(text: &str) -> bool {
    matches!(text, "0" | "1" | "2" | "3" | "4" | "5")
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(text, "default" | "latest" | "latestmajor" | "preview") || text.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(options: &str) -> Option<String> {
        let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
        check_options(&options).err().map(|error| error.to_string())
    }

    #[test]
    fn options_that_say_how_code_is_compiled_are_taken() {
        for options in [
            "--define:X -d:Y_2 --nowarn:25 --nowarn:FS0040;3370 --warnon:3390 --warn:5",
            "--langversion:preview --langversion:9.0 --checknulls --checknulls+ --checked-",
            "--warnaserror --warnaserror+ --warnaserror+:25 --warnaserror:25,40 --optimize- --strict-indentation+",
        ] {
            assert_eq!(refused(options), None, "{options}");
        }
    }

    #[test]
    fn all_others_are_refused_with_what_is_taken() {
        for option in [
            "--exec",
            "--use:a.fsx",
            "--gui-",
            "--readline",
            "--quiet",
            "-o:a.dll",
            "--out:a.dll",
            "--load:a.fsx",
            "--define:",
            "--define",
            "--nowarn:all",
            "--langversion:/x",
            "--warn:9",
            "--checked:1",
            "a.fsx",
            "--help",
        ] {
            let said = refused(option).unwrap_or_default();
            assert!(said.contains(&format!("`{option}` cannot be given")), "{option}: {said}");
            assert!(said.contains("--define:NAME, -d:NAME, --nowarn:CODES"), "{said}");
        }
    }
}

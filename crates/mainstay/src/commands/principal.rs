//! `mainstay principal`: who else may come in, with a token of their own.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use mainstay_gateway::tokens::TokenHash;
use mainstay_home::Home;
use mainstay_home::config::{Config, PrincipalConfig};
use mainstay_model::{Error, NamePattern, Principal};
use mainstay_terminal::{Paint, Tone, printable};
use serde::Serialize;

/// Lists principals, and makes tokens for new ones.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay principal list\n  mainstay principal new ci --drive 'build-*' --see '*'\n\nA principal sees and drives the sessions that it creates, and those that its patterns name; `*` stands for any run of\ncharacters. Whoever shows the token with MAINSTAY_TOKEN, or as a bearer token, is that principal. Code in a session\nruns as you in any case: principals keep clients apart, they do not fence code in."
)]
pub(super) struct PrincipalArgs {
    #[command(subcommand)]
    command: PrincipalCommand,
}

#[derive(Debug, Subcommand)]
enum PrincipalCommand {
    /// List the principals in the configuration
    #[command(after_help = "Examples:\n  mainstay principal list\n  mainstay principal list --json")]
    List {
        /// Print the principals as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a token, and the lines for the configuration
    #[command(
        after_help = "Examples:\n  mainstay principal new ci --drive 'build-*' --see '*'\n  mainstay principal new ci --json | jq -r .token"
    )]
    New {
        /// What the principal is called
        #[arg(value_parser = |text: &str| Principal::new(text))]
        name: Principal,

        /// Sessions it may see, by their names; may be given again
        #[arg(long, value_name = "PATTERN")]
        see: Vec<NamePattern>,

        /// Sessions it may drive, and see; may be given again
        #[arg(long, value_name = "PATTERN")]
        drive: Vec<NamePattern>,

        /// Print the principal as JSON
        #[arg(long)]
        json: bool,
    },
}

/// A principal that was made up.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewPrincipal {
    principal: Principal,
    token: String,
    token_sha256: TokenHash,
    config: String,
}

impl PrincipalArgs {
    pub(super) fn run(self, home: &Home) -> Result<ExitCode, Error> {
        match self.command {
            PrincipalCommand::List { json } => list(home, json)?,
            PrincipalCommand::New { name, see, drive, json } => new(home, name, see, drive, json)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(home: &Home, json: bool) -> Result<(), Error> {
    let principals = Config::load(home)?.principals;
    if json {
        return super::print_json(&principals);
    }
    let (paint, local) = (Paint::stdout(), Principal::local());
    println!("{}  sees and drives every session, and the daemon", paint.tone(Tone::Name, local.as_str()));
    for (name, PrincipalConfig { see, drive, admin, .. }) in &principals {
        if *admin {
            println!(
                "{}  sees and drives every session, and the daemon",
                paint.tone(Tone::Name, name.as_str())
            );
            continue;
        }
        let names = |patterns: &[NamePattern]| {
            let names: Vec<_> = patterns.iter().map(NamePattern::as_str).collect();
            if names.is_empty() { String::new() } else { format!(" and {}", printable(&names.join(", "))) }
        };
        let name = paint.tone(Tone::Name, name.as_str());
        println!("{name}  drives its own{}; sees these{}", names(drive), names(see));
    }
    Ok(())
}

fn new(
    home: &Home,
    principal: Principal,
    see: Vec<NamePattern>,
    drive: Vec<NamePattern>,
    json: bool,
) -> Result<(), Error> {
    if principal == Principal::local() {
        return Err(Error::InvalidArgument {
            argument: "name".to_owned(),
            reason: "`local` is the user the daemon runs as, whose token is there already".to_owned(),
        });
    }
    if Config::load(home)?.principals.contains_key(&principal) {
        return Err(Error::InvalidArgument {
            argument: "name".to_owned(),
            reason: format!("`{principal}` is in the configuration already; give it a new token by hand"),
        });
    }
    let token = mainstay_home::new_token();
    let token_sha256 = TokenHash::of(&token);
    let config = config_lines(&principal, &token_sha256, &see, &drive);
    if json {
        return super::print_json(&NewPrincipal { principal, token, token_sha256, config });
    }
    println!("Add this to {}, and start the daemon anew:\n", home.config_file().display());
    println!("{config}");
    println!("Its token, which is shown only now:\n\n{token}");
    Ok(())
}

/// The principal as the configuration has it.
fn config_lines(
    principal: &Principal,
    token: &TokenHash,
    see: &[NamePattern],
    drive: &[NamePattern],
) -> String {
    let list = |patterns: &[NamePattern]| {
        let quoted: Vec<_> = patterns.iter().map(|pattern| toml_text(pattern.as_str())).collect();
        format!("[{}]", quoted.join(", "))
    };
    format!(
        "[principals.{}]\ntoken-sha256 = \"{}\"\nsee = {}\ndrive = {}\n",
        toml_text(principal.as_str()),
        String::from(token.clone()),
        list(see),
        list(drive),
    )
}

/// A text as TOML has it; its basic strings are written as JSON's are.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_the_configuration_reads() {
        let (name, hash) = (Principal::new("ci").unwrap(), TokenHash::of("abc"));
        let patterns = vec!["build-*".parse().unwrap(), "a \"b\"".parse().unwrap()];
        let lines = config_lines(&name, &hash, &[], &patterns);
        insta::assert_snapshot!(lines, @r#"
        [principals."ci"]
        token-sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        see = []
        drive = ["build-*", "a \"b\""]
        "#);
        let config: Config = toml::from_str(&lines).unwrap();
        let expected =
            PrincipalConfig { token_sha256: Some(hash), drive: patterns, ..PrincipalConfig::default() };
        assert_eq!(config.principals.into_iter().collect::<Vec<_>>(), [(name, expected)]);
    }
}

//! The commands that pages and help texts show are commands that the program takes.

use clap::Parser as _;
use clap::error::ErrorKind;

use super::pages::all_pages;
use crate::commands::Cli;

#[test]
fn every_command_in_a_page_is_one_that_the_program_takes() {
    let (mut checked, mut refused) = (0, Vec::new());
    for (name, text) in all_pages() {
        for command in shell_lines(&text).flat_map(commands) {
            checked += 1;
            if let Err(error) = Cli::try_parse_from(&command)
                && !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
            {
                refused.push(format!("{name}: {}: {}", command.join(" "), first_line(&error)));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(checked > 100, "only {checked} commands were found");
}

fn first_line(error: &clap::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// What is typed in the blocks of a page that show a shell.
fn shell_lines(page: &str) -> impl Iterator<Item = &str> {
    let mut language = None;
    page.lines().map(str::trim_start).filter_map(move |line| match (line.strip_prefix("```"), language) {
        (Some(opened), _) => {
            language = language.is_none().then_some(opened);
            None
        }
        (None, Some("console")) => line.strip_prefix("$ "),
        (None, Some("sh")) => Some(line.trim_start_matches("$ ")),
        (None, _) => None,
    })
}

/// The commands of this program in a line of a shell.
fn commands(line: &str) -> Vec<Vec<String>> {
    let commands = split(line).into_iter().map(|words| {
        let is_assignment = |word: &String| word.contains('=') && !word.starts_with('-');
        words.into_iter().skip_while(is_assignment).collect::<Vec<_>>()
    });
    commands.filter(|words| words.first().is_some_and(|word| word == "mainstay")).collect()
}

/// The commands of a line with their words, as a shell parts them.
fn split(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut word, mut quote) = (vec![Vec::new()], None::<String>, None);
    for character in line.chars().chain([' ']) {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ' | '|' | ';' | '&' | '<' | '>' | '#') if character != '#' || word.is_none() => {
                commands.last_mut().unwrap().extend(word.take());
                match character {
                    ' ' => {}
                    '#' | '<' | '>' => break,
                    _ => commands.push(Vec::new()),
                }
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    commands
}

#[test]
fn a_line_is_parted_as_a_shell_parts_it() {
    let line = "echo Ada | mainstay eval 'let a = 1 | 2' --json > out # not this";
    assert_eq!(commands(line), [["mainstay", "eval", "let a = 1 | 2", "--json"]]);
    assert_eq!(commands("dotnet build"), Vec::<Vec<String>>::new());
    assert_eq!(commands("MAINSTAY_HOME=b mainstay stop; mainstay -d").len(), 2);
}

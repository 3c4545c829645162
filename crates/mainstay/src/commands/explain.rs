//! `mainstay explain`: what an error code means, and what to do, or what a rule of `mainstay review` suggests.

use std::process::ExitCode;

use clap::Args;
use mainstay_embedded::{error_page, review_rules};
use mainstay_model::{Error, ErrorCode};

/// Explains an error code, or a rule of `review`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay explain not_offered\n  mainstay explain FSR001")]
pub(super) struct Explain {
    /// The code, as errors show it in brackets and suggestions before their words; without it, all are listed
    code: Option<String>,
}

impl Explain {
    pub(super) fn run(self) -> Result<ExitCode, Error> {
        let Some(code) = self.code else {
            ErrorCode::ALL.iter().for_each(|code| println!("{code}"));
            review_rules().for_each(|(rule, _)| println!("{rule}"));
            return Ok(ExitCode::SUCCESS);
        };
        let rule = review_rules().find(|(rule, _)| rule.eq_ignore_ascii_case(&code));
        if let Some((_, section)) = rule {
            println!("# {}", section.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        let page = error_page(&code).ok_or_else(|| Error::InvalidArgument {
            argument: "code".to_owned(),
            reason: format!("there is no error and no rule `{code}`; `mainstay explain` lists all"),
        })?;
        print!("{page}");
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_page_that_says_what_happened_and_what_to_do() {
        for code in ErrorCode::ALL {
            let page = error_page(code.0).unwrap_or_else(|| panic!("docs/errors/{code}.md is missing"));
            assert!(page.starts_with(&format!("# {code}\n")), "{code}");
            assert!(page.contains("\n## What happened\n") && page.contains("\n## What to do\n"), "{code}");
        }
    }
}

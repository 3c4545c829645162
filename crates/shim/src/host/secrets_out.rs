//! Secrets out of what a shim leaves in a file. A secret may stand in two pieces of output of which neither has it whole.
//!
//! Pure.

use mainstay_model::secret::Secrets;
use mainstay_model::{JobId, LastWords, OutputStream, RunnerNotice};

/// The notices of a job that was given secrets, as they may lie in a file. Output that follows upon output is joined before secrets are
/// looked for; its place is that of the first piece, so that none of the notices is missing. Where the secrets are not known any more,
/// nothing is left that code wrote.
pub(super) fn secrets_out(notices: Vec<RunnerNotice>, masks: Option<&Secrets>) -> Vec<RunnerNotice> {
    let Some(masks) = masks else { return notices.into_iter().map(without_texts).collect() };
    let mut out: Vec<RunnerNotice> = Vec::with_capacity(notices.len());
    // The first of the pieces of output that are joined just now.
    let mut first: Option<usize> = None;
    for notice in notices {
        match (notice, first.and_then(|at| out.get_mut(at))) {
            (
                RunnerNotice::Output { job, stream, text },
                Some(RunnerNotice::Output { job: of, stream: on, text: joined }),
            ) if job == *of && stream == *on => {
                joined.push_str(&text);
                out.push(RunnerNotice::Output { job, stream, text: String::new() });
            }
            (notice, _) => {
                first = matches!(notice, RunnerNotice::Output { .. }).then_some(out.len());
                out.push(notice);
            }
        }
    }
    out.iter_mut().for_each(|notice| match notice {
        RunnerNotice::Output { text, .. } => masks.mask(text),
        RunnerNotice::Exited { last_words: Some(LastWords { reason: Some(reason), .. }), .. } => {
            masks.mask(reason);
        }
        _ => {}
    });
    out.into_iter().map(without_comms).collect()
}

fn left_out(job: Option<JobId>) -> RunnerNotice {
    let text = "[left out, since a secret had been typed]\n".to_owned();
    RunnerNotice::Output { job, stream: OutputStream::Stdout, text }
}

/// What widgets say is not looked into.
fn without_comms(notice: RunnerNotice) -> RunnerNotice {
    match notice {
        RunnerNotice::Comm { job, .. } => left_out(job),
        notice => notice,
    }
}

fn without_texts(notice: RunnerNotice) -> RunnerNotice {
    match notice {
        RunnerNotice::Output { job, .. } | RunnerNotice::Display { job, .. } => left_out(job),
        RunnerNotice::Exited { exit, last_words } => {
            let last_words = last_words.map(|words| LastWords { reason: None, ..words });
            RunnerNotice::Exited { exit, last_words }
        }
        notice => without_comms(notice),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn output(text: &str) -> RunnerNotice {
        RunnerNotice::Output { job: None, stream: OutputStream::Stdout, text: text.to_owned() }
    }

    #[test]
    fn a_secret_that_stands_in_two_pieces_of_output_is_taken_out_and_no_notice_is_missing() {
        let mut masks = Secrets::default();
        masks.add(&json!("hunter22"));
        let told = secrets_out(vec![output("it is hun"), output("ter22\n"), output("end\n")], Some(&masks));
        assert_eq!(told, [output("it is ***\nend\n"), output(""), output("")]);
        let told = secrets_out(vec![output("it is hun"), output("ter22\n")], None);
        assert_eq!(told, [left_out(None), left_out(None)]);
    }
}

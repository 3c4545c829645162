//! What pi's extensions want of people.

use mainstay_model::RunnerNotice;

use super::{Output, Translation};
use crate::pi::dialog::{OpenDialog, cancelled};
use crate::pi::operation_checks::{self, Check};
use crate::pi::rpc::ExtensionRequest;

impl Translation {
    pub(super) fn extension(&mut self, request: ExtensionRequest) {
        match request.method.as_str() {
            "input" if operation_checks::is_check(&request) => self.check(&request),
            "select" | "confirm" | "input" | "editor" => self.dialog(&request),
            "notify" => {
                let level = request.notify_type.as_deref().unwrap_or("info");
                self.told(level, request.message);
            }
            // What a terminal would show beside the conversation.
            _ => {}
        }
    }

    /// Its tools are about to do something. Where nothing bounds the job, they hear so at once.
    pub(super) fn check(&mut self, request: &ExtensionRequest) {
        if self.hold(request) {
            return;
        }
        let line = match &self.job {
            Some(job) if job.is_bounded => None,
            None if self.was_bounded => Some(operation_checks::without_job(request)),
            Some(_) | None => Some(operation_checks::unbounded(request)),
        };
        if let Some(line) = line {
            return self.out.push_back(Output::Send(line));
        }
        let Some(job) = self.job() else { return };
        self.out.push_back(match Check::of(request) {
            Ok(Check { id: check, operation }) => {
                self.checks.insert(check);
                Output::Tell(RunnerNotice::Checks { job, check, operation })
            }
            Err(line) => Output::Send(line),
        });
    }

    fn dialog(&mut self, request: &ExtensionRequest) {
        match (OpenDialog::of(request, self.timeouts.dialog_ms), self.job()) {
            (Some(OpenDialog { ask, dialog, question, timeout_ms }), Some(job)) => {
                self.dialogs.insert(ask, dialog);
                let timeout_ms = Some(timeout_ms);
                self.out.push_back(Output::Tell(RunnerNotice::Asks { job, ask, question, timeout_ms }));
            }
            (opened, _) => {
                self.out.push_back(Output::Send(cancelled(&request.id)));
                let asked = opened.map_or_else(|| request.title.clone(), |opened| opened.question.prompt);
                self.told("warning", format!("an extension asked while nothing was to be done: {asked}"));
            }
        }
    }
}

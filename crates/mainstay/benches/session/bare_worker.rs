//! A worker without a daemon.

use std::path::Path;

use mainstay_kernel::fsharp::{Search, prepare};
use mainstay_kernel::worker;
use mainstay_model::{JobId, RunnerNotice};
use mainstay_os::process::Launch;
use mainstay_runner::{StartedRunner, Submission, Upcoming};

use crate::Failure;

/// A worker without a daemon.
pub(crate) struct Bare {
    pub(crate) started: StartedRunner,
    _sockets: tempfile::TempDir,
}

impl Bare {
    pub(crate) async fn start(home: &Path, folder: &Path) -> Result<Self, Failure> {
        let program = prepare(&Search::from_env(home), mainstay_embedded::kernel_file, &|_| {}).await?;
        let sockets = tempfile::tempdir()?;
        let launch = Launch {
            program: program.program,
            arguments: program.arguments,
            environment: program.environment,
        };
        let started =
            worker::launch(&launch, mainstay_kernel::StartupContext::in_folder(folder), None, sockets.path())
                .await?;
        Ok(Self { started, _sockets: sockets })
    }

    pub(crate) async fn eval(&mut self, code: &str) -> Result<(), Failure> {
        self.run(JobId::from_uuid(uuid::Uuid::now_v7()), code).await
    }

    /// Runs cells as a replay does, each a job of its own.
    pub(crate) async fn replay(&mut self, cells: &[String]) -> Result<(), Failure> {
        let upcoming: Vec<_> = cells
            .iter()
            .map(|code| Upcoming {
                job: JobId::from_uuid(uuid::Uuid::now_v7()),
                code: code.clone(),
                file: None,
            })
            .collect();
        if upcoming.len() > 1 {
            self.started.runner.kernel().ok_or("it is no kernel")?.expect(upcoming.clone()).await;
        }
        for Upcoming { job, code, .. } in upcoming {
            self.run(job, &code).await?;
        }
        Ok(())
    }

    pub(crate) async fn run(&mut self, job: JobId, code: &str) -> Result<(), Failure> {
        let kernel = self.started.runner.kernel().ok_or("it is no kernel")?;
        kernel
            .run(Submission {
                job,
                code: code.to_owned(),
                file: None,
                command_line: None,
                is_withheld: false,
            })
            .await;
        while let Some(notice) = self.started.notices.recv().await {
            if let RunnerNotice::Finished { .. } = notice {
                return Ok(());
            }
        }
        Err("the worker ended".into())
    }
}

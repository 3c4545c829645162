//! Answers those who build projects, on a socket in the folder of the daemon's, which is the user's alone.

use std::path::PathBuf;
use std::sync::Arc;

use mainstay_home::Home;
use mainstay_home::config::FsharpConfig;
use mainstay_shim::Activity;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::keeper::Keeper;
use super::{Answer, Question, SOCKET, WarmCompilerTerms};

/// Keeps compilers warm, and answers who asks them, until this is dropped.
pub(crate) async fn serve(home: Home, config: FsharpConfig, sockets: PathBuf, activity: Activity) {
    let Some(terms) = WarmCompilerTerms::of(&config) else { return };
    let listener = match UnixListener::bind(sockets.join(SOCKET)) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(%error, "no compiler is kept warm: its socket cannot be made");
            return;
        }
    };
    let keeper = Arc::new(Keeper::new(&home, config, &sockets, terms, activity));
    let mut tasks = JoinSet::new();
    tasks.spawn({
        let keeper = Arc::clone(&keeper);
        async move { keeper.run().await }
    });
    while let Ok((stream, _)) = listener.accept().await {
        let keeper = Arc::clone(&keeper);
        tasks.spawn(async move {
            if let Err(error) = answer(stream, &keeper).await {
                tracing::debug!(%error, "who asked the warm compiler is gone");
            }
        });
        while tasks.try_join_next().is_some() {}
    }
}

async fn answer(stream: UnixStream, keeper: &Keeper) -> std::io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut questions = BufReader::new(reading).lines();
    let Some(line) = questions.next_line().await? else { return Ok(()) };
    let question = serde_json::from_str::<Question>(&line)?;
    let (steps_in, mut steps) = mpsc::unbounded_channel();
    let say = move |step| {
        steps_in.send(step).ok();
    };
    let answered = async {
        match question {
            Question::Recompile(project) => match keeper.recompile(&project, &say).await {
                Ok(built) => Answer::Recompiled(Box::new(built)),
                Err(reason) => Answer::Unready(reason),
            },
            Question::Resolve(project) => match keeper.resolved(&project).await {
                Some(resolved) => Answer::Resolved(Box::new(resolved)),
                None => Answer::Unready("it is not known".to_owned()),
            },
            Question::Built(project) => {
                keeper.want(project);
                Answer::Noted
            }
            Question::Loaded(project) => {
                keeper.want_unless_ready(project);
                Answer::Noted
            }
        }
    };
    tokio::pin!(answered);
    let last = loop {
        tokio::select! {
            biased;
            Some(step) = steps.recv() => write(&mut writing, &Answer::Says(step)).await?,
            last = &mut answered => break last,
            // Whoever asked is gone, and with it what it asked for.
            _ = questions.next_line() => return Ok(()),
        }
    };
    write(&mut writing, &last).await
}

async fn write(writing: &mut (impl AsyncWriteExt + Unpin), answer: &Answer) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    writing.write_all(&line).await
}

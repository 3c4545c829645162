//! A store that an older version wrote is read as it was, and goes on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use mainstay_log::{
    Directory, Epoch, EventLog, ObjectHash, Objects, SessionFilter, SqliteLog, SqliteOptions, StoredOutcome,
};
use mainstay_model::decide::Answer;
use mainstay_model::{Seq, Version};
use support::version1::{Version1, id};
use support::{Line, answer, output, samples};

mod support;

#[tokio::test]
async fn a_store_of_version_1_comes_with_all_that_is_in_it() {
    let home = tempfile::tempdir().unwrap();
    let old = Version1::create(&home.path().join("mainstay.db"));
    let mut lines = [3, 1, 2].map(Line::new);
    let mut events = [const { Vec::new() }; 3];
    let mut answers = Vec::new();
    for (line, events) in lines.iter_mut().zip(&mut events) {
        events.extend(old.append(&line.create()));
    }
    for turn in 0..40 {
        let line = &mut lines[turn % 3];
        let mut append = line.append(vec![output(format!("turn {turn}")), output("")]);
        append.outcomes.push(answer(&format!("turn-{turn}"), line.last_seq()));
        answers.extend(append.outcomes.clone());
        events[turn % 3].extend(old.append(&append));
    }
    let mut append = lines[1].append(samples::bodies());
    for (event, metadata) in append.events.iter_mut().zip(samples::metadata().into_iter().cycle()) {
        event.metadata = metadata;
    }
    events[1].extend(old.append(&append));
    old.0.execute("UPDATE session SET epoch = 3 WHERE id = ?1", [id(&append)]).unwrap();
    let object = ObjectHash::of(&[1, 2, 3]);
    old.insert("INSERT INTO object VALUES (?1, 3, x'010203')", [object.as_str()]);
    drop(old);

    let log = SqliteLog::open(home.path(), &SqliteOptions::default()).unwrap();
    for (line, events) in lines.iter().zip(&events) {
        assert_eq!(log.events(line.id, Seq::ZERO, usize::MAX).await.as_ref(), Ok(events));
        assert_eq!(log.events(line.id, Seq(5), 3).await.unwrap(), events[5..8]);
        assert_eq!(log.session(line.id).await.unwrap(), line.session);
        let name = &line.session.as_ref().unwrap().name;
        assert!(log.resolve(name).await.unwrap().contains(&line.id));
    }
    assert_eq!(log.sessions(SessionFilter::default()).await.unwrap().len(), 3);
    for Answer { principal, command, fingerprint, outcome, key: _ } in answers {
        let stored = StoredOutcome { fingerprint, outcome, version: Version::ZERO, session: None };
        assert_eq!(log.outcome(&principal, &command).await, Ok(Some(stored)));
    }
    assert_eq!(log.object(&object).await, Ok(vec![1, 2, 3]));

    assert_eq!(log.claim(lines[1].id).await, Ok(Epoch(4)));
    lines[1].epoch = Epoch(4);
    for (line, events) in lines.iter_mut().zip(&mut events) {
        let last = events.last().unwrap().position;
        let answered = log.append(line.append(vec![output("and on")])).await.unwrap();
        assert!(answered[0].position > last);
        events.extend(answered);
        assert_eq!(log.events(line.id, Seq::ZERO, usize::MAX).await.as_ref(), Ok(&*events));
        assert_eq!(log.session(line.id).await.unwrap(), line.session);
    }
}

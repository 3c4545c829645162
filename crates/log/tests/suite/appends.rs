//! Appending: what is there afterwards, and what is refused.

use futures::future::join_all;
use mainstay_log::{Append, AppendError, Epoch, KeyScope, Refusal, StoredOutcome};
use mainstay_model::decide::Answer;
use mainstay_model::{
    Error, EventBody, IdempotencyKey, Outcome, Principal, Seq, Session, Timestamp, Version,
};

use super::{Store, assert_same, begun, events};
use crate::support::{
    Line, answer, command_id, created, fingerprint, new_event, output, samples, session_id, warm_up,
};

pub async fn what_was_answered_is_what_is_read_back(store: &dyn Store) {
    let log = store.open().await;
    let mut line = Line::new(1);
    let mut answered = log.append(line.create()).await.unwrap();
    let mut append = line.append(vec![warm_up(), output("a \"quoted\" \u{0} ü 𝄞\n")]);
    append.outcomes.push(answer("first", Seq(2)));
    answered.extend(log.append(append).await.unwrap());
    assert_eq!(events(&*log, &line).await, answered);
    assert_eq!(log.session(line.id).await.unwrap(), line.session);
    drop(log);

    let log = store.open().await;
    assert_eq!(events(&*log, &line).await, answered);
    assert_same(&*log, &line).await;
    let stored = StoredOutcome {
        fingerprint: fingerprint("first"),
        outcome: answer("first", Seq(2)).outcome,
        version: Version::ZERO,
        session: Some(line.id),
    };
    assert_eq!(log.outcome(&Principal::local(), &command_id("first")).await, Ok(Some(stored)));
    assert_eq!(log.outcome(&Principal::local(), &command_id("second")).await, Ok(None));
}

pub async fn a_refusal_that_no_session_has_is_stored_once(store: &dyn Store) {
    let log = store.open().await;
    let refusal = Answer {
        outcome: Outcome::Failed { error: Error::SessionNotFound { reference: "x".to_owned() } },
        ..answer("refused", Seq(1))
    };
    log.store_refusal(refusal.clone()).await.unwrap();
    let command = command_id("refused");
    let again = log.store_refusal(refusal.clone()).await;
    assert_eq!(again, Err(Error::CommandConflict { command: command.clone() }));
    drop(log);

    let log = store.open().await;
    let stored = StoredOutcome {
        fingerprint: refusal.fingerprint,
        outcome: refusal.outcome,
        version: Version::ZERO,
        session: None,
    };
    assert_eq!(log.outcome(&refusal.principal, &command).await, Ok(Some(stored)));
    let mut line = begun(&*log, 1, 0).await;
    let mut append = line.append(vec![warm_up()]);
    append.outcomes.push(answer("refused", Seq(2)));
    assert_eq!(log.append(append).await.map_err(Error::from), Err(Error::CommandConflict { command }));
}

pub async fn every_kind_of_event_and_outcome_comes_back_as_it_was(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    let bodies = samples::bodies().into_iter().chain([EventBody::SessionDeleted]).collect();
    let mut append = line.append(bodies);
    for (event, metadata) in append.events.iter_mut().zip(samples::metadata().into_iter().cycle()) {
        event.metadata = metadata;
    }
    append.projection = samples::session(&append.projection);
    append.outcomes = samples::answers();
    let answered = log.append(append.clone()).await.unwrap();
    assert_eq!(events(&*log, &line).await[1..], answered);
    let bodies: Vec<_> = answered.into_iter().map(|event| (event.metadata, event.body)).collect();
    assert_eq!(
        bodies,
        append.events.into_iter().map(|event| (event.metadata, event.body)).collect::<Vec<_>>()
    );
    let version = append.version;
    assert_eq!(log.session(line.id).await, Ok(Some(append.projection)));
    for answer in append.outcomes {
        let stored = StoredOutcome {
            fingerprint: answer.fingerprint,
            outcome: answer.outcome,
            version,
            session: Some(line.id),
        };
        assert_eq!(log.outcome(&answer.principal, &answer.command).await, Ok(Some(stored)));
    }
}

pub async fn moments_are_cut_to_the_microsecond_everywhere(store: &dyn Store) {
    let log = store.open().await;
    for (number, nanosecond) in [(1, 1_763_000_000_123_456_789), (2, -1_763_000_000_123_456_789)] {
        let at = Timestamp::from_nanosecond(nanosecond).unwrap();
        let mut line = Line { at, ..Line::new(number) };
        let mut answered = log.append(line.create()).await.unwrap();
        answered.extend(log.append(line.append(samples::busy())).await.unwrap());
        let stored = events(&*log, &line).await;
        assert_eq!(stored, answered);
        assert_eq!(stored[0].at.as_microsecond(), at.as_microsecond());
        assert_eq!(log.session(line.id).await.unwrap(), Session::fold(&stored));
        assert!(Session::fold(&stored).unwrap().running().is_some());
    }
}

pub async fn another_seq_or_epoch_is_refused_and_leaves_nothing(store: &dyn Store) {
    let log = store.open().await;
    let line = begun(&*log, 1, 1).await;
    let next = line.peek(vec![output("again")]);
    let fenced = AppendError::Fenced { newest: Epoch::FIRST };
    let late = AppendError::Refused(Refusal::OutOfSequence { next: Seq(3) });
    let seqs = [2, 4, 1, 0, u64::MAX].map(|first| (first, 1, &late));
    let epochs = [0, 2, u64::MAX].map(|epoch| (3, epoch, &fenced));
    for (first, epoch, expected) in seqs.into_iter().chain(epochs) {
        let mut wrong = Append { first: Seq(first), epoch: Epoch(epoch), ..next.clone() };
        wrong.outcomes.push(answer("refused", Seq(first)));
        let failed = log.append(wrong).await.unwrap_err();
        assert_eq!(failed.error, *expected, "seq {first}, epoch {epoch}");
        assert_eq!(failed.append.outcomes.len(), 1, "it comes back whole");
        assert_eq!(Error::from(failed), Error::SessionOwned);
    }
    assert_same(&*log, &line).await;
    assert_eq!(log.outcome(&Principal::local(), &command_id("refused")).await, Ok(None));
}

pub async fn an_append_whose_answer_was_lost_is_done_once(store: &dyn Store) {
    let log = store.open().await;
    let mut line = Line::new(1);
    let creation = line.create();
    let mut accepted = line.append(vec![output("0.1"), warm_up()]);
    accepted.outcomes.push(answer("first", Seq(2)));
    let behind = line.append((0..2_000).map(|number| output(number.to_string())).collect());
    let outcome_alone = Append { outcomes: vec![answer("second", Seq(2))], ..line.append(Vec::new()) };
    let sent = [creation, accepted, behind, outcome_alone];
    let mut answers = Vec::new();
    for append in &sent {
        answers.push(log.append(append.clone()).await.unwrap());
    }
    let twice = join_all(sent.iter().map(|append| log.append(append.clone()))).await;
    assert_eq!(twice.into_iter().map(Result::unwrap).collect::<Vec<_>>(), answers);
    assert_same(&*log, &line).await;

    // What differs in anything is another append.
    let accepted = &sent[1];
    let mut other = accepted.clone();
    other.events[1] = new_event(output("another"));
    let mut later = accepted.clone();
    later.events[0].at = Timestamp::from_second(1).unwrap();
    let unanswered = Append { outcomes: vec![answer("third", Seq(2))], ..accepted.clone() };
    let shorter = Append { events: accepted.events[..1].to_vec(), version: Version(9), ..accepted.clone() };
    let longer =
        Append { events: [accepted.events.clone(), accepted.events.clone()].concat(), ..accepted.clone() };
    let nothing = Append { events: Vec::new(), outcomes: Vec::new(), ..accepted.clone() };
    for different in [other, later, unanswered, shorter, longer, nothing] {
        let refused = log.append(different).await.unwrap_err().error;
        assert!(matches!(refused, AppendError::Refused(Refusal::OutOfSequence { .. })), "{refused:?}");
    }
    let newest = log.claim(line.id).await.unwrap();
    let fenced = log.append(accepted.clone()).await.unwrap_err().error;
    assert_eq!(fenced, AppendError::Fenced { newest }, "another owner may have gone on from it");
    assert_same(&*log, &line).await;
}

pub async fn the_deletion_of_a_session_whose_answer_was_lost_is_done_once(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 1).await;
    let mut deletion = line.append(vec![EventBody::SessionDeleted]);
    deletion.outcomes.push(answer("delete", Seq(3)));
    let answered = log.append(deletion.clone()).await.unwrap();
    assert_eq!(log.append(deletion).await.unwrap(), answered);
}

pub async fn a_session_is_created_once(store: &dyn Store) {
    let log = store.open().await;
    let line = begun(&*log, 1, 0).await;
    let again = Line::new(1).append(vec![created("again", "/elsewhere")]);
    assert_eq!(log.append(again.clone()).await.map_err(Error::from), Err(Error::SessionOwned));
    log.claim(line.id).await.unwrap();
    assert_eq!(log.append(again).await.map_err(Error::from), Err(Error::SessionOwned));
    assert_same(&*log, &line).await;
}

pub async fn a_session_that_is_not_there_takes_no_events(store: &dyn Store) {
    let log = store.open().await;
    let creation = Line::new(1).create();
    let not_found = Error::SessionNotFound { reference: creation.session.to_string() };
    for wrong in [
        Append { events: vec![new_event(output("no creation"))], ..creation.clone() },
        Append { events: vec![], ..creation.clone() },
        Append { first: Seq(2), ..creation.clone() },
        Append { epoch: Epoch(2), ..creation.clone() },
    ] {
        assert_eq!(log.append(wrong).await.map_err(Error::from), Err(not_found.clone()));
    }
    assert_eq!(log.claim(creation.session).await.map_err(Error::from), Err(not_found));
    assert_eq!(log.events(creation.session, Seq::ZERO, 10).await, Ok(Vec::new()));
    assert_eq!(log.session(creation.session).await, Ok(None));
}

pub async fn an_outcome_is_found_by_its_key_of_the_same_principal_and_session(store: &dyn Store) {
    let log = store.open().await;
    let (mut one, mut other) = (begun(&*log, 1, 0).await, begun(&*log, 2, 0).await);
    let key = IdempotencyKey::new("once").unwrap();
    let keyed = |command: &str| Answer { key: Some(key.clone()), ..answer(command, Seq(2)) };
    for (line, command) in [(&mut one, "first"), (&mut other, "second")] {
        let mut append = line.append(vec![output("x")]);
        append.outcomes = vec![keyed(command), answer(&format!("{command}-plain"), Seq(2))];
        log.append(append).await.unwrap();
    }
    let found = async |principal: &Principal, session, key: &IdempotencyKey| {
        let stored = log.outcome_of_key(principal, KeyScope::Session(session), key).await.unwrap();
        stored.map(|stored| stored.fingerprint)
    };
    let local = Principal::local();
    assert_eq!(found(&local, one.id, &key).await, Some(fingerprint("first")));
    assert_eq!(found(&local, other.id, &key).await, Some(fingerprint("second")));
    assert_eq!(found(&Principal::new("ada").unwrap(), one.id, &key).await, None);
    assert_eq!(found(&local, session_id(9), &key).await, None);
    assert_eq!(found(&local, one.id, &IdempotencyKey::new("twice").unwrap()).await, None);

    let mut again = one.peek(vec![output("y")]);
    again.outcomes.push(keyed("third"));
    let taken = Err(Error::KeyConflict { key: key.clone() });
    assert_eq!(log.append(again).await.map_err(Error::from), taken, "a key has one outcome");
    assert_eq!(log.outcome(&local, &command_id("third")).await, Ok(None));
}

pub async fn a_key_of_a_creation_counts_for_creations_only(store: &dyn Store) {
    let log = store.open().await;
    let key = IdempotencyKey::new("once").unwrap();
    let keyed = |command: &str, seq| Answer { key: Some(key.clone()), ..answer(command, seq) };
    let mut line = Line::new(1);
    let mut creation = line.create();
    creation.outcomes.push(keyed("creation", Seq(1)));
    log.append(creation).await.unwrap();
    let mut append = line.append(vec![output("x")]);
    append.outcomes.push(keyed("in-it", Seq(2)));
    log.append(append).await.unwrap();

    let found = async |scope| {
        let stored = log.outcome_of_key(&Principal::local(), scope, &key).await.unwrap();
        stored.map(|stored| (stored.fingerprint, stored.session))
    };
    assert_eq!(found(KeyScope::Creations).await, Some((fingerprint("creation"), Some(line.id))));
    assert_eq!(found(KeyScope::Session(line.id)).await, Some((fingerprint("in-it"), Some(line.id))));

    let mut again = Line::new(2).create();
    again.outcomes.push(keyed("another", Seq(1)));
    let taken = Err(Error::KeyConflict { key: key.clone() });
    assert_eq!(log.append(again).await.map_err(Error::from), taken, "a key has one outcome");
    assert_eq!(log.session(session_id(2)).await, Ok(None));
}

pub async fn an_outcome_is_never_overwritten_and_its_append_fails_whole(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    let mut append = line.append(vec![output("first")]);
    append.outcomes.push(answer("command", Seq(2)));
    log.append(append).await.unwrap();

    let mut again = line.peek(vec![output("again"), EventBody::SessionRenamed { name: "again".to_owned() }]);
    again.outcomes = vec![answer("new", Seq(3)), answer("command", Seq(4))];
    let conflict = Error::CommandConflict { command: command_id("command") };
    assert_eq!(log.append(again).await.map_err(Error::from), Err(conflict.clone()));
    let mut other = Line::new(2).create();
    other.outcomes.push(answer("command", Seq(1)));
    assert_eq!(log.append(other).await.map_err(Error::from), Err(conflict));

    assert_same(&*log, &line).await;
    assert_eq!(log.session(session_id(2)).await, Ok(None));
    assert_eq!(log.outcome(&Principal::local(), &command_id("new")).await, Ok(None));
    let stored = log.outcome(&Principal::local(), &command_id("command")).await.unwrap().unwrap();
    assert_eq!(stored.outcome, answer("command", Seq(2)).outcome);
}

pub async fn each_principal_has_command_ids_of_its_own(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    let principals = ["local", "ann"].map(|name| Principal::new(name).unwrap());
    for (seq, principal) in (2..).zip(&principals) {
        let mut append = line.append(vec![output("more")]);
        append.outcomes.push(Answer { principal: principal.clone(), ..answer("one", Seq(seq)) });
        log.append(append).await.unwrap();
    }
    for (seq, principal) in (2..).zip(&principals) {
        let stored = log.outcome(principal, &command_id("one")).await.unwrap().unwrap();
        assert_eq!(stored.outcome, answer("one", Seq(seq)).outcome);
    }
}

pub async fn outcomes_may_come_without_events(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    let mut append = line.append(vec![]);
    append.outcomes.push(answer("nothing-to-do", Seq(1)));
    assert_eq!(log.append(append).await.unwrap(), Vec::new());
    assert!(log.outcome(&Principal::local(), &command_id("nothing-to-do")).await.unwrap().is_some());
    assert_same(&*log, &line).await;
}

pub async fn a_refused_append_leaves_those_beside_it(store: &dyn Store) {
    let log = store.open().await;
    let mut lines: Vec<_> = (0..50).map(Line::new).collect();
    let creations: Vec<_> = lines.iter_mut().map(|line| log.append(line.create())).collect();
    let mut queued = Vec::new();
    for (number, line) in lines.iter_mut().enumerate() {
        let mut refused = line.peek(vec![output("refused")]);
        match number % 3 {
            0 => refused.first = refused.first.next(),
            1 => refused.epoch = Epoch(2),
            _ => refused.outcomes = vec![answer("same", Seq(2)), answer("same", Seq(2))],
        }
        queued.push((false, log.append(refused)));
        queued.push((true, log.append(line.append(vec![output("taken"), warm_up()]))));
    }
    assert!(join_all(creations).await.iter().all(Result::is_ok));
    for (taken, append) in queued {
        assert_eq!(append.await.is_ok(), taken);
    }
    for line in &lines {
        assert_same(&*log, line).await;
    }
}

pub async fn appends_keep_the_order_of_their_calls(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    let mut queued: Vec<_> =
        (0..300).map(|number| log.append(line.append(vec![output(number.to_string())]))).collect();
    queued.reverse();
    assert!(join_all(queued).await.iter().all(Result::is_ok));
    let texts: Vec<_> = events(&*log, &line).await.into_iter().skip(1).map(|event| event.body).collect();
    assert_eq!(texts, (0..300).map(|number| output(number.to_string())).collect::<Vec<_>>());
    assert_same(&*log, &line).await;
}

pub async fn what_nobody_waits_for_is_done_all_the_same(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    for number in 0..100 {
        drop(log.append(line.append(vec![output(number.to_string())])));
    }
    drop(log);
    assert_same(&*store.open().await, &line).await;
}

pub async fn only_the_newest_owner_appends(store: &dyn Store) {
    let log = store.open().await;
    let mut old = begun(&*log, 1, 0).await;
    let queued_before = log.append(old.append(vec![output("before")]));
    assert_eq!(log.claim(old.id).await, Ok(Epoch(2)));
    assert!(queued_before.await.is_ok());
    let mut new = Line { epoch: Epoch(2), ..old.clone() };
    assert_eq!(
        log.append(old.peek(vec![output("too late")])).await.map_err(Error::from),
        Err(Error::SessionOwned)
    );
    log.append(new.append(vec![output("in time")])).await.unwrap();
    drop(log);

    let log = store.open().await;
    assert_eq!(
        log.append(old.peek(vec![output("too late")])).await.map_err(Error::from),
        Err(Error::SessionOwned)
    );
    assert_eq!(log.claim(old.id).await, Ok(Epoch(3)));
    assert_same(&*log, &new).await;
}

pub async fn positions_grow_over_all_sessions(store: &dyn Store) {
    let log = store.open().await;
    let mut lines = [begun(&*log, 1, 3).await, begun(&*log, 2, 3).await];
    let mut last = 0;
    for line in &lines {
        last = last.max(events(&*log, line).await.last().unwrap().position.0);
    }
    drop(log);
    let log = store.open().await;
    for turn in 0..10 {
        let line = &mut lines[turn % 2];
        let refused = Append { epoch: Epoch(9), ..line.peek(vec![output("refused")]) };
        assert!(log.append(refused).await.is_err());
        for event in log.append(line.append(vec![output("one"), output("two")])).await.unwrap() {
            assert!(event.position.0 > last);
            last = event.position.0;
        }
    }
}

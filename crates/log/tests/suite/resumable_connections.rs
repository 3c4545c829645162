//! Connections that clients may resume.

use mainstay_log::ResumableConnection;
use mainstay_model::{Principal, Timestamp};
use serde_json::json;

use super::Store;

fn connection(id: &str, principal: &str, opened: i64) -> ResumableConnection {
    let moment = |microsecond| Timestamp::from_microsecond(microsecond).unwrap();
    ResumableConnection {
        id: id.to_owned(),
        principal: Principal::new(principal).unwrap(),
        protocol: "some".to_owned(),
        opened_at: moment(opened),
        expires_at: moment(opened + 1000),
        state: json!({ "seq": opened, "text": "é\u{0}" }),
    }
}

pub async fn a_connection_is_there_again_as_it_was_stored_last(store: &dyn Store) {
    let log = store.open().await;
    let first = connection("one", "ada", 1);
    log.store_connection(first.clone()).await.unwrap();
    let changed = ResumableConnection { state: json!({ "seq": 7 }), ..first };
    log.store_connection(changed.clone()).await.unwrap();
    drop(log);
    let log = store.open().await;
    assert_eq!(log.connection("one").await, Ok(Some(changed)));
    assert_eq!(log.connection("two").await, Ok(None));
}

pub async fn connections_are_each_principals_own_and_come_newest_first(store: &dyn Store) {
    let log = store.open().await;
    let of_other_protocol =
        ResumableConnection { protocol: "other".to_owned(), ..connection("four", "ada", 4) };
    let (one, two, hers) =
        (connection("one", "ada", 1), connection("two", "ada", 2), connection("three", "bea", 3));
    for stored in [&one, &two, &hers, &of_other_protocol] {
        log.store_connection(stored.clone()).await.unwrap();
    }
    let ada = Principal::new("ada").unwrap();
    assert_eq!(log.connections(&ada, "some").await, Ok(vec![two, one]));
    assert_eq!(log.connections(&ada, "nothing").await, Ok(Vec::new()));
}

pub async fn connections_that_have_expired_are_removed(store: &dyn Store) {
    let log = store.open().await;
    let (old, new) = (connection("old", "ada", 1), connection("new", "ada", 2));
    for stored in [&old, &new] {
        log.store_connection(stored.clone()).await.unwrap();
    }
    assert_eq!(log.remove_expired_connections(new.expires_at).await, Ok(1));
    assert_eq!(log.connection("old").await, Ok(None));
    assert_eq!(log.connection("new").await, Ok(Some(new)));
}

//! Artifacts: content that clients store for each other, for a time.

use mainstay_log::{Artifact, NewArtifact};
use mainstay_model::store::Collection;
use mainstay_model::{Error, ObjectHash, Principal, Timestamp};

use super::Store;

/// More than is kept in a row.
const LARGE: usize = 100_000;

/// How many bytes the artifacts of a principal may have together.
const LIMIT: u64 = 200_000;

fn new(id: &str, principal: &str, expires: i64) -> NewArtifact {
    let moment = |microsecond| Timestamp::from_microsecond(microsecond).unwrap();
    NewArtifact {
        id: id.to_owned(),
        principal: Principal::new(principal).unwrap(),
        media_type: "text/plain".to_owned(),
        sha256: "00".to_owned(),
        created_at: moment(1),
        expires_at: moment(expires),
    }
}

/// Removes what no row says is there.
async fn sweep(log: &dyn mainstay_log::Log) {
    let mut from = Some(Collection::default());
    while let Some(step) = from {
        from = log.collect(step).await.unwrap().1;
    }
}

pub async fn an_artifact_and_its_content_are_there_again(store: &dyn Store) {
    let log = store.open().await;
    for (id, bytes) in [("small", b"text".to_vec()), ("large", vec![7; LARGE])] {
        let stored = log.put_artifact(new(id, "ada", 10), bytes.clone(), LIMIT).await.unwrap();
        let (object, size) = (ObjectHash::of(&bytes), bytes.len() as u64);
        assert_eq!(stored, Artifact { stored: new(id, "ada", 10), object, size });
    }
    drop(log);
    let log = store.open().await;
    sweep(&*log).await;
    let large = log.artifact("large").await.unwrap().unwrap();
    assert_eq!(log.object(&large.object).await, Ok(vec![7; LARGE]));
    assert_eq!(log.artifact("other").await, Ok(None));
}

pub async fn an_artifact_that_is_there_stays_as_it_is(store: &dyn Store) {
    let log = store.open().await;
    let first = log.put_artifact(new("one", "ada", 10), b"first".to_vec(), LIMIT).await.unwrap();
    let second = log.put_artifact(new("one", "bea", 20), b"second".to_vec(), LIMIT).await.unwrap();
    assert_eq!(second, first);
    let hash = ObjectHash::of(b"second");
    assert_eq!(log.object(&hash).await, Err(Error::ObjectNotFound { hash: hash.to_string() }));
}

pub async fn content_goes_with_the_last_artifact_that_has_it(store: &dyn Store) {
    let log = store.open().await;
    for bytes in [b"same".to_vec(), vec![9; LARGE]] {
        let one = log.put_artifact(new("one", "ada", 10), bytes.clone(), LIMIT).await.unwrap();
        log.put_artifact(new("two", "bea", 20), bytes.clone(), LIMIT).await.unwrap();
        assert_eq!(log.release_artifact("one").await, Ok(true));
        assert_eq!(log.release_artifact("one").await, Ok(false));
        sweep(&*log).await;
        assert_eq!(log.object(&one.object).await, Ok(bytes));
        // It expires at 20, and is there until then.
        let at = |microsecond| Timestamp::from_microsecond(microsecond).unwrap();
        assert_eq!(log.remove_expired_artifacts(at(20)).await, Ok(0));
        assert_eq!(log.remove_expired_artifacts(at(21)).await, Ok(1));
        sweep(&*log).await;
        let gone = log.object(&one.object).await;
        assert_eq!(gone, Err(Error::ObjectNotFound { hash: one.object.to_string() }));
    }
}

pub async fn artifacts_of_a_principal_are_bounded_together(store: &dyn Store) {
    let log = store.open().await;
    let put = async |id: &str, principal: &str, bytes: usize| {
        log.put_artifact(new(id, principal, 10), vec![1; bytes], LIMIT).await.map(drop)
    };
    assert_eq!(put("one", "ada", 150_000).await, Ok(()));
    let full = Err(Error::ArtifactsTooLarge { stored: 150_000, limit: LIMIT });
    assert_eq!(put("two", "ada", 50_001).await, full);
    assert_eq!(log.artifact("two").await, Ok(None));
    assert_eq!(put("two", "ada", 50_000).await, Ok(()));
    assert_eq!(put("three", "bea", 150_000).await, Ok(()));
    // Whoever comes at once has no more room.
    let (one, other) = tokio::join!(put("four", "cleo", 150_000), put("five", "cleo", 150_000));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
}

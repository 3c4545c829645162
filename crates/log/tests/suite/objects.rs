//! Objects are stored by their hash.

use mainstay_log::ObjectHash;
use mainstay_model::Error;

use super::Store;

const SIZES: [usize; 6] = [0, 1, 1000, 64 * 1024, 64 * 1024 + 1, 3_000_000];

pub async fn bytes_come_back_by_their_hash(store: &dyn Store) {
    let log = store.open().await;
    for size in SIZES {
        assert_eq!(log.put_object(bytes(size)).await, Ok(ObjectHash::of(&bytes(size))));
    }
    drop(log);
    let log = store.open().await;
    for size in SIZES {
        assert!(log.object(&ObjectHash::of(&bytes(size))).await.unwrap() == bytes(size), "{size} bytes");
    }
}

pub async fn the_same_bytes_are_stored_once(store: &dyn Store) {
    let log = store.open().await;
    for size in SIZES {
        let (first, again) = tokio::join!(log.put_object(bytes(size)), log.put_object(bytes(size)));
        assert_eq!(first, again);
        assert_eq!(log.put_object(bytes(size)).await, first);
        assert!(log.object(&first.unwrap()).await.unwrap() == bytes(size), "{size} bytes");
    }
}

pub async fn a_hash_of_nothing_stored_is_not_found(store: &dyn Store) {
    let log = store.open().await;
    let hash = ObjectHash::of(b"nobody stored this");
    assert_eq!(log.object(&hash).await, Err(Error::ObjectNotFound { hash: hash.to_string() }));
}

fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index * 31 % 251) as u8).collect()
}

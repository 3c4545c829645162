//! Issuers that are asked: which is told of a token, and who waits for an answer.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use mainstay_gateway::identities::Identities;
use mainstay_gateway::introspection::Introspection;
use mainstay_gateway::issuers::{Issuers, KnownIssuer};
use mainstay_gateway::jwt::{Issuer, JwtRefusal};
use mainstay_gateway::key_cache::KeyCache;
use mainstay_gateway::outbound::Address;
use mainstay_gateway::peer_network::PeerNetwork;
use mainstay_gateway::tokens::TokenHash;
use mainstay_test_support::test_issuer::issuer;

use super::*;
use crate::oauth::{Served, at, key, of, outbound, serve};

/// An issuer of this name that is asked about tokens, and what it serves.
async fn asked(name: &str) -> (KnownIssuer, Arc<Served>) {
    let served = Arc::new(Served::default());
    let address = Address::parse(&format!("{}/introspect", serve(&served).await)).unwrap();
    let introspection = Introspection::new(address, outbound(), "a client", "a:secret");
    let own = format!("https://{name}.test");
    let known = Issuer { name: name.to_owned(), issuer: own, ..issuer(Vec::new()) };
    (KnownIssuer { introspection, ..known.into() }, served)
}

fn network(last: u8) -> PeerNetwork {
    IpAddr::from([192, 0, 2, last]).into()
}

#[tokio::test]
async fn an_issuer_is_told_only_of_tokens_that_name_it() {
    let ((one, first), (two, second)) = (asked("one").await, asked("two").await);
    let identities = Identities::new(["one:ada", "two:ada"].map(|name| (name.parse().unwrap(), ada())), []);
    let issuers = Issuers::new([one, two], identities);
    let questions = || [&first, &second].map(|served| served.tokens_asked.load(Ordering::SeqCst));
    let admit = async |shown: &str| issuers.admit(shown, network(1), at(0)).await.map(|_| ());
    for served in [&first, &second] {
        served.say_good("good", 1_000);
    }
    for unnamed in ["good", "three:good", "ONE:good"] {
        assert_eq!(admit(unnamed).await, Err(JwtRefusal::Unnamed), "{unnamed}");
    }
    assert_eq!(questions(), [0, 0]);
    assert_eq!((admit("two:good").await, questions()), (Ok(()), [0, 1]));
    assert_eq!((admit("one:other").await, questions()), (Err(JwtRefusal::Inactive), [1, 1]));
    // A signed token says itself whose it is.
    let signed = signed_token("ada", &[], 1_000_000 + 1_000);
    for shown in [signed.clone(), format!("one:{signed}")] {
        assert_eq!(admit(&shown).await, Err(JwtRefusal::UnknownIssuer));
    }
    assert_eq!(questions(), [1, 1]);
}

#[tokio::test]
async fn the_only_issuer_that_is_asked_need_not_be_named() {
    let (known, served) = asked("test").await;
    let issuers = of(known);
    served.say_good("good", 1_000);
    for shown in ["good", "test:good"] {
        assert!(issuers.admit(shown, network(1), at(0)).await.is_ok(), "{shown}");
    }
    assert_eq!(served.tokens_asked.load(Ordering::SeqCst), 1, "it is the same token");
}

#[tokio::test]
async fn no_issuer_is_told_a_secret_of_the_daemon() {
    let (known, served) = asked("test").await;
    let tokens = Tokens::new("secret", [(TokenHash::of("hers"), ada())]).with_issuers(of(known));
    for own in ["secret", "hers", "test:secret", "test:hers"] {
        assert_eq!(tokens.admit_issued(own, network(1), at(0)).await, None, "{own}");
    }
    assert_eq!(served.tokens_asked.load(Ordering::SeqCst), 0);
    assert_eq!(tokens.admit_issued("other", network(1), at(0)).await, None);
    assert_eq!(served.tokens_asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn strangers_that_show_wrong_tokens_make_no_client_with_a_good_one_wait() {
    let (known, served) = asked("test").await;
    let issuers = Arc::new(of(known));
    for good in ["good", "new"] {
        served.say_good(good, 1_000);
    }
    let admit = async |token: &str, second| issuers.admit(token, network(1), at(second)).await.is_ok();
    assert!(admit("good", 0).await);
    let stranger = |token: String, from: u8| {
        let issuers = Arc::clone(&issuers);
        tokio::spawn(async move { issuers.admit(&token, network(from), at(0)).await.is_ok() })
    };
    // One peer with many tokens, and the same token many times.
    let mut strangers: Vec<_> = (0..20).map(|number| stranger(format!("slow{}", number / 2), 2)).collect();
    served.are_unanswered(2).await;
    assert!(admit("good", 30).await, "what was answered counts");
    assert!(admit("good", 60).await, "it is asked about again");
    assert!(admit("new", 0).await, "another peer is in nobody's way");
    // Many peers: they take all places of clients that are new.
    strangers.extend((3..13).map(|from| stranger(format!("slow-of-{from}"), from)));
    served.are_unanswered(8).await;
    assert!(admit("good", 120).await);
    assert!(strangers.iter().all(|stranger| !stranger.is_finished()), "they wait all the time");
    assert_eq!(*served.unanswered.borrow(), 8);
    served.answers.cancel();
    for stranger in strangers {
        assert!(!stranger.await.unwrap());
    }
    let distinct = 10 + 10;
    assert_eq!(*served.unanswered.borrow(), distinct, "about each token once");
}

#[tokio::test]
async fn a_token_is_refused_for_a_while_about_which_its_issuer_says_nothing() {
    let (listener, port) = listening().await;
    let address = Address::parse(&format!("http://127.0.0.1:{port}/introspect")).unwrap();
    let introspection = Introspection::new(address, outbound(), "a client", "a:secret");
    let issuers = of(KnownIssuer { introspection, ..issuer(Vec::new()).into() });
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    for (second, questions) in [(0, 1), (4, 1), (5, 2)] {
        assert!(issuers.admit("opaque", network(1), at(second)).await.is_err());
        assert_eq!(asked.load(Ordering::SeqCst), questions, "at {second}");
    }
}

#[tokio::test]
async fn a_token_of_a_known_key_does_not_wait_for_one_of_an_unknown_key() {
    let served = Arc::new(Served::default());
    let address = Address::parse(&format!("{}/keys", serve(&served).await)).unwrap();
    let published = Some(KeyCache::new(address, outbound()));
    let issuers = Arc::new(of(KnownIssuer { published, ..issuer(Vec::new()).into() }));
    let ((known, published), (unknown, _)) = (key("a"), key("b"));
    *served.keys.lock().unwrap() = vec![published];
    let until = 1_000_000 + 10_000;
    assert!(issuers.admit(&known(until), network(1), at(0)).await.is_ok());
    served.keys_are_slow.store(true, Ordering::SeqCst);
    let (wrong, asking) = (unknown(until), Arc::clone(&issuers));
    let stranger = tokio::spawn(async move { asking.admit(&wrong, network(2), at(60)).await.is_ok() });
    served.are_unanswered(1).await;
    assert!(issuers.admit(&known(until), network(1), at(60)).await.is_ok());
    assert!(!stranger.is_finished(), "its key is still being asked for");
    served.answers.cancel();
    assert!(!stranger.await.unwrap());
}

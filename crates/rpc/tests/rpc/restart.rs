//! A daemon that begins anew as its clients still ask it.

use mainstay_model::{Error, Seq};
use mainstay_protocol::operations::{Follow, GetLink, Listen};

use crate::support::Home;

/// How many answers are waited for that come at once.
const ROUND_TRIPS: usize = 20;

#[tokio::test]
async fn who_asks_while_the_daemon_lets_its_runners_go_is_not_refused_but_left_to_the_next() {
    let (home, _script) = Home::new().await;
    home.daemon.engine.let_go().await;
    let refused = async {
        let follow = home.client.call(Follow::session(home.talk.clone(), Seq(0)));
        let listen = home.client.call(Listen { session: home.talk.clone() });
        let answered: Error = tokio::select! {
            Err(error) = follow => error,
            Err(error) = listen => error,
        };
        answered
    };
    let others = async {
        for _ in 0..ROUND_TRIPS {
            home.client.call(GetLink { session: None }).await.unwrap();
        }
    };
    tokio::select! {
        biased;
        error = refused => panic!("{error}"),
        () = others => {}
    }
}

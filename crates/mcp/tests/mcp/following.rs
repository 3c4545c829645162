//! Following resources: who subscribed hears of changes, and of nothing else.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::ServiceError;
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::json;
use tokio::time::timeout;

use crate::support::{Agent, Home, Listener};

#[expect(deprecated, reason = "clients of the older protocols say it")]
pub(crate) async fn subscribe(agent: &Agent, uri: &str) -> Result<(), ServiceError> {
    agent.service.subscribe(rmcp::model::SubscribeRequestParams::new(uri)).await
}

#[expect(deprecated, reason = "clients of the older protocols say it")]
async fn unsubscribe(agent: &Agent, uri: &str) {
    agent.service.unsubscribe(rmcp::model::UnsubscribeRequestParams::new(uri)).await.unwrap();
}

/// Waits until it heard so many words of each of these.
pub(crate) async fn hears(agent: &Agent, wanted: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let mut changed = agent.service.service().changed.subscribe();
    let all = changed.wait_for(|heard| {
        wanted.iter().all(|(uri, count)| heard.get(*uri).copied().unwrap_or_default() >= *count)
    });
    timeout(Duration::from_secs(10), all).await.expect("words of changes").unwrap().clone()
}

#[tokio::test]
async fn who_subscribed_hears_of_changes_until_it_lets_go() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let session = agent.send("1 + 1").await.session();
    let transcript = format!("mainstay://session/{session}/transcript");
    let events = format!("mainstay://session/{session}/events");
    subscribe(&agent, &transcript).await.unwrap();
    subscribe(&agent, &events).await.unwrap();
    agent.send("let x = 3").await;
    hears(&agent, &[(&transcript, 1), (&events, 1)]).await;

    unsubscribe(&agent, &transcript).await;
    let before = hears(&agent, &[]).await;
    agent.send("let y = 3").await;
    let after = hears(&agent, &[(&events, before[&events] + 1)]).await;
    assert_eq!(after[&transcript], before[&transcript]);
}

#[tokio::test]
async fn many_changes_in_a_short_time_are_told_once() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let session = agent.send("1 + 1").await.session();
    let transcript = format!("mainstay://session/{session}/transcript");
    subscribe(&agent, &transcript).await.unwrap();
    let begun = Instant::now();
    for _ in 0..20 {
        agent.send("1 + 1").await;
    }
    // The first is told at once, the last not after the pause.
    let heard = hears(&agent, &[(&transcript, 2)]).await[&transcript];
    let most = usize::try_from(begun.elapsed().as_millis() / 250).unwrap() + 1;
    assert!(heard <= most, "{heard} words, {most} at most");
}

#[tokio::test]
async fn what_is_not_there_or_not_ones_own_cannot_be_followed() {
    let home = Home::new().await;
    let (agent, ada) = (home.agent().await, home.agent_of("ada").await);
    let session = agent.send("1 + 1").await.session();
    for uri in ["mainstay://nothing".to_owned(), format!("mainstay://session/{session}/events")] {
        let refused = subscribe(&ada, &uri).await;
        assert!(
            matches!(&refused, Err(ServiceError::McpError(error)) if error.code.0 == -32002),
            "{refused:?}"
        );
    }
    for number in 0..64 {
        subscribe(&agent, &format!("mainstay://session/{session}/cell/{number}")).await.unwrap();
    }
    assert!(subscribe(&agent, "mainstay://sessions").await.is_err(), "there is a most");
    unsubscribe(&agent, &format!("mainstay://session/{session}/cell/1")).await;
    subscribe(&agent, "mainstay://sessions").await.unwrap();
}

#[tokio::test]
async fn who_listed_resources_hears_when_sessions_come() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.service.list_all_resources().await.unwrap();
    agent.call("create_session", json!({ "name": "new" })).await;
    hears(&agent, &[("", 1)]).await;
}

#[tokio::test]
async fn the_newest_protocol_listens_to_what_it_asked_for() {
    let home = Home::new().await;
    let (stream, served) = home.stream(Some(home.folder("work")));
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let agent = Agent { service: Listener::default().serve_with_lifecycle(stream, lifecycle).await.unwrap() };
    let session = agent.send("1 + 1").await.session();
    let transcript = format!("mainstay://session/{session}/transcript");
    let filter = SubscriptionFilter::builder()
        .resources_list_changed()
        .resource_subscriptions(vec![transcript.clone(), "mainstay://nothing".to_owned()])
        .build();
    let mut listening = agent.service.listen(filter).await.unwrap();
    assert_eq!(listening.acknowledged().resource_subscriptions, Some(vec![transcript.clone()]));
    assert_eq!(listening.acknowledged().resources_list_changed, Some(true));
    agent.send("let x = 3").await;
    match timeout(Duration::from_secs(10), listening.next()).await.unwrap().unwrap().unwrap() {
        ServerNotification::ResourceUpdatedNotification(updated) => {
            assert_eq!(updated.params.uri, transcript)
        }
        other => panic!("{other:?}"),
    }
    agent.call("create_session", json!({ "name": "new" })).await;
    match timeout(Duration::from_secs(10), listening.next()).await.unwrap().unwrap().unwrap() {
        ServerNotification::ResourceListChangedNotification(_) => {}
        other => panic!("{other:?}"),
    }
    // One that listens does not hold up the end of its connection.
    agent.service.cancel().await.unwrap();
    timeout(Duration::from_secs(10), served).await.unwrap().unwrap();
}

//! What a client that wants to follow events means: one session from a seq on, or all from a position on.

use mainstay_engine::{Client, ClientSubscription, Cursor, FollowedWarmUp};
use mainstay_model::Error;

use mainstay_protocol::operations::{Follow, Subscribed};

/// Begins to follow the events, and how far one session is whenever it is given its definitions back.
pub(super) async fn follow(
    client: &Client,
    wanted: Follow,
) -> Result<(Subscribed, ClientSubscription, Option<FollowedWarmUp>), Error> {
    let Follow { session, after, after_position, filter } = wanted;
    let (session, cursor) = match (session, after, after_position) {
        (Some(reference), after, None) => {
            let session = client.resolve(&reference).await?;
            (Some(session), Cursor::Session { session, after: after.unwrap_or_default() })
        }
        (None, None, after) => (None, Cursor::Log { after: after.unwrap_or_default() }),
        (Some(_), _, Some(_)) => {
            return Err(unfit("afterPosition", "the cursor of one session is `after`, a seq of it"));
        }
        (None, Some(_), _) => {
            return Err(unfit(
                "after",
                "a seq counts in one `session`; the cursor of all is `afterPosition`",
            ));
        }
    };
    let events = client.follow(cursor, filter).await?;
    let warm_up = match session {
        Some(session) => Some(client.follow_warm_up(session).await?),
        None => None,
    };
    Ok((Subscribed { session }, events, warm_up))
}

fn unfit(argument: &str, reason: &str) -> Error {
    Error::InvalidArgument { argument: argument.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use mainstay_engine::Engine;
    use mainstay_log::{SqliteLog, SqliteOptions};
    use mainstay_model::{Access, Limits};
    use serde_json::{Value, json};

    async fn refusal(client: &Client, wanted: Value) -> String {
        match follow(client, serde_json::from_value(wanted).unwrap()).await {
            Ok(_) => panic!("not refused"),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn a_cursor_is_of_one_session_or_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(folder.path(), &SqliteOptions::default()).unwrap();
        let engine = Engine::open(Arc::new(log), Vec::new(), Limits::default()).await.unwrap();
        let client = engine.attach(Access::local(), "test");
        let session = "01890a5d-ac96-774b-bcce-b302099a8057";
        insta::assert_snapshot!(refusal(&client, json!({ "after": 3 })).await, @"after is not valid: a seq counts in one `session`; the cursor of all is `afterPosition`");
        insta::assert_snapshot!(refusal(&client, json!({ "session": session, "afterPosition": 3 })).await, @"afterPosition is not valid: the cursor of one session is `after`, a seq of it");
        insta::assert_snapshot!(refusal(&client, json!({ "session": session, "after": 3 })).await, @"no session answers to `01890a5d-ac96-774b-bcce-b302099a8057`");
        let wanted = json!({ "afterPosition": 3, "kinds": ["evalFailed"], "source": "worker" });
        let (subscribed, subscription, _) =
            follow(&client, serde_json::from_value(wanted).unwrap()).await.ok().unwrap();
        assert_eq!(subscribed, Subscribed { session: None });
        assert_eq!(subscription.cursor(), Cursor::Log { after: mainstay_model::Position(3) });
    }
}

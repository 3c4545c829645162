//! `rpc.discover`: what the daemon says of its own methods.

use mainstay_protocol::operations::{self, Discover};

use crate::support::Home;

#[tokio::test]
async fn the_daemon_answers_with_the_document_of_all_its_methods() {
    let (home, _script) = Home::new().await;
    let document = home.client.call(Discover {}).await.unwrap();
    assert_eq!(document["openrpc"], "1.3.2");
    assert_eq!(document["methods"].as_array().unwrap().len(), operations::all().count());
}

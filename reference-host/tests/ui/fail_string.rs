//! The name of a function is not the function.

use agentix_reference_host::RuntimeClient;

async fn call(client: &RuntimeClient) {
    let _ = client.remote("app::run").await;
}

fn main() {
    let _ = call;
}

//! An argument that is not given.

use agentix_reference_host::RuntimeClient;

agentix_protocol::remote! {
    fn add(a: i64, b: i64) -> i64 = "app::add";
}

async fn call(client: &RuntimeClient) {
    let _ = client.remote(add { a: 1 }).await;
}

fn main() {
    let _ = call;
}

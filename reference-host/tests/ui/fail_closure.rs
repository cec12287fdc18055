//! A closure has no name by which a worker could find it.

use agentix_reference_host::RuntimeClient;

async fn call(client: &RuntimeClient) {
    let _ = client.remote(|input: String| input.to_uppercase()).await;
}

fn main() {
    let _ = call;
}

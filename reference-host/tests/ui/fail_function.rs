//! A plain function was not declared with `remote!`.

use agentix_reference_host::RuntimeClient;

fn run(input: String) -> String {
    input
}

async fn call(client: &RuntimeClient) {
    let _ = client.remote(run).await;
}

fn main() {
    let _ = call;
}

//! An argument of another type.

use agentix_reference_host::RuntimeClient;

agentix_protocol::remote! {
    fn run(input: String) -> String = "app::run";
}

async fn call(client: &RuntimeClient) {
    let _ = client.remote(run { input: 5 }).await;
}

fn main() {
    let _ = call;
}

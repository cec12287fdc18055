//! A result that is taken for another type.

use agentix_reference_host::{CallError, RuntimeClient};

agentix_protocol::remote! {
    fn run(input: String) -> String = "app::run";
}

async fn call(client: &RuntimeClient) -> Result<u32, CallError> {
    client.remote(run { input: String::new() }).await
}

fn main() {
    let _ = call;
}

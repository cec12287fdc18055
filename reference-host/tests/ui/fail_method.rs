//! A method belongs to a value that stays here.

use agentix_reference_host::RuntimeClient;

struct Tools;

impl Tools {
    fn run(&self, input: String) -> String {
        input
    }
}

async fn call(client: &RuntimeClient) {
    let _ = client.remote(Tools::run).await;
}

fn main() {
    let tools = Tools;
    tools.run(String::new());
    let _ = call;
}

//! A target that can be none.

agentix_protocol::remote! {
    fn run(input: String) -> String = "app.run";
}

fn main() {}

# The same steps as .ci/run, one by one. Without `just`: bash .ci/run STEP...

# Everything that CI runs.
default:
    bash .ci/run

# One or more steps, such as `just step clippy test`.
step *STEPS:
    bash .ci/run {{ STEPS }}

fmt:
    cargo fmt --all

test:
    cargo test --workspace

# The conformance suite against the built-in implementations.
conformance *ARGS:
    cargo run --release -p agentix-conformance -- {{ ARGS }}

# Update golden snapshots after looking at the difference.
snapshots:
    INSTA_UPDATE=always cargo test -p agentix-protocol --test snapshots

# Fuzz one target for so many seconds; needs cargo-fuzz and a nightly toolchain.
fuzz TARGET="unpickle" SECONDS="60":
    bash fuzz/run {{ TARGET }} {{ SECONDS }}

# How fast the unpickler is and what its values take, beside CPython; needs python3, and numpy for one payload.
bench-unpickle *PAYLOADS:
    cargo bench -p agentix-protocol --bench unpickle --bench unpickle_memory -- {{ PAYLOADS }}

#!/usr/bin/env bash
# Every pairing of the Rust programs with the independent peers: interop.sh BIN_DIR PYTHON
# BIN_DIR holds agentix-host, agentix-runtime and agentix-worker; PYTHON has what requirements.txt names.
set -uo pipefail
[ $# -eq 2 ] || { echo "usage: interop.sh BIN_DIR PYTHON" >&2; exit 2; }
bin=$(cd "$1" && pwd) || exit 2
python=$2
cd "$(dirname "$0")" || exit 2
functions=$(cd ../../../reference-worker/python && pwd)
export PYTHONDONTWRITEBYTECODE=1 AGENTIX_PATH=$functions
# What functions.md asks of Python workers alone, and a traceback, which a worker in Rust does not give.
not_in_rust=(--skip traceback --skip refused_value)
failed=()

pairing() {
    echo "--- $1"
    shift
    timeout 600 "$@" || failed+=("$*")
}

pairing "Python host, Python runtime" \
    "$python" host.py --skip worker_dies -- "$python" runtime.py --path "$functions"
pairing "Python host, Python runtime, our Python worker" \
    "$python" host.py -- "$python" runtime.py --worker "$python $functions/agentix_worker.py"
pairing "Python host, Python runtime, Rust worker" \
    "$python" host.py "${not_in_rust[@]}" -- "$python" runtime.py --worker "$bin/agentix-worker"
pairing "Python host, Rust runtime, our Python worker" \
    "$python" host.py -- "$bin/agentix-runtime" serve --python "$python" --path "$functions"
pairing "Python host, Rust runtime, Rust worker" \
    "$python" host.py "${not_in_rust[@]}" -- "$bin/agentix-runtime" serve --worker "$bin/agentix-worker"
pairing "Rust host, Python runtime" \
    "$python" rust_host.py "$bin/agentix-host" -- "$python" runtime.py --path "$functions"
for command in ${failed[@]+"${failed[@]}"}; do
    echo "failed: $command"
done
[ ${#failed[@]} -eq 0 ]

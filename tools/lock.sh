#!/usr/bin/env bash
# Resolves pyproject.toml into the lock files, for every platform and Python at once, with hashes and without naming a
# registry (docs/decisions/0001). run: what the README's commands need; dev: that at the same versions, and what tests,
# benchmarks, linters and documentation need; bench: what the README's commands need and the solvers that Poise is measured
# against, on its own, since placo wants an older pin and NumPy than the others have.
# `tools/lock.sh --upgrade` takes the newest of everything.
set -euo pipefail
cd "$(dirname "$0")/.."

resolve() {
  local name=$1
  shift
  uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
    --custom-compile-command "make lock" --extra c3d --extra data --extra video --extra library --extra studio --extra plots --group build \
    --output-file "requirements/$name.lock" "${upgrade[@]}" "$@"
}

upgrade=()
if [ "${1:-}" = --upgrade ]; then upgrade=(--upgrade); fi
resolve run
resolve dev --constraint requirements/run.lock --extra cluster --extra fbx --extra usd --extra lsl --extra notebook --extra agents --extra onnx --group test --group lint --group docs
resolve bench --extra bench
uv pip compile requirements/audit.in --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --custom-compile-command "make lock" --output-file requirements/audit.lock "${upgrade[@]}"

#!/usr/bin/env bash
# Resolves pyproject.toml into the lock files, for every platform and Python at once, with hashes and without naming a
# registry (docs/decisions/0001). run: what the README's commands need; dev: and what tests, linters and documentation need;
# bench: and the other solvers that Poise is measured against. Each keeps to the versions of the one before it.
# `tools/lock.sh --upgrade` takes the newest of everything.
set -euo pipefail
cd "$(dirname "$0")/.."

resolve() {
  local name=$1
  shift
  uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
    --custom-compile-command "make lock" --extra c3d --extra data --extra video --group build \
    --output-file "requirements/$name.lock" "${upgrade[@]}" "$@"
}

upgrade=()
if [ "${1:-}" = --upgrade ]; then upgrade=(--upgrade); fi
resolve run
resolve dev --constraint requirements/run.lock --group test --group lint --group docs
resolve bench --constraint requirements/dev.lock --group test --group bench

#!/usr/bin/env bash
# Makes the virtual environment .venv and installs what the lock files it is given pin, and Poise itself, editable.
# Uses uv where it is there, else venv and pip; both refuse a package whose hash is not the locked one.
#
#   tools/setup.sh requirements/run.lock        PYTHON=python3.12 chooses the interpreter, VENV=folder another place
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}

say() { printf '\033[1m%s\033[0m\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

have_uv() { uv --version >/dev/null 2>&1; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

interpreter() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if new_enough "$candidate"; then echo "$candidate"; return; fi
  done
  fail "Poise needs Python 3.11 or newer; found none as ${PYTHON:-python3}. Name one with: make setup PYTHON=/path/to/python3.12"
}

make_environment() {
  local python
  new_enough "$venv/bin/python" && return
  python=$(interpreter)
  say "Making $venv with $("$python" --version)"
  if have_uv; then
    uv venv --quiet --clear --python "$python" "$venv"
  else
    "$python" -m venv --clear "$venv" || fail "python -m venv failed (on Debian: apt-get install python3-venv), and uv is not there either"
  fi
}

install() {
  if have_uv; then
    uv pip install --quiet --compile-bytecode --python "$venv/bin/python" "$@"
  else
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  fi
}

make_environment
for lock in "$@"; do
  say "Installing what $lock pins"
  install --require-hashes -r "$lock"
done
install --no-deps --no-build-isolation --editable .

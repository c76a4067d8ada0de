#!/usr/bin/env bash
# Installs a wheel with the studio into a new environment without Node, poses a body, and opens the studio's page.
#
#   tools/try_wheel.sh dist/poise-0.2.0-py3-none-any.whl        PYTHON=python3.13 chooses the interpreter
set -euo pipefail
wheel=$(realpath "$1")
most_megabytes=12  # 7.6 of them are the networks that find people, 2.2 the universal prior

say() { printf '\033[1m%s\033[0m\n' "$*"; }
fail() { printf 'try_wheel: %s\n' "$*" >&2; exit 1; }

size=$(($(stat -c %s "$wheel" 2>/dev/null || stat -f %z "$wheel") / 1000000))
[ "$size" -lt "$most_megabytes" ] || fail "the wheel has $size MB; at most $most_megabytes are allowed"
folder=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

say "Installing $(basename "$wheel") ($size MB)"
"${PYTHON:-python3}" -m venv environment
environment/bin/pip install --quiet --disable-pip-version-check "$wheel[studio]"
say "$(environment/bin/poise --version), $(du -sm environment | cut -f1) MB installed"
environment/bin/poise pose --handle right_hand=0.3,1.5,0.5 --output pose.png
[ -s pose.png ] || fail "no picture was written"

say "Opening the studio"
start=$(date +%s)
environment/bin/poise studio --no-open --port 0 > address &
server=$!
until grep -q http address; do
  kill -0 "$server" 2>/dev/null || fail "the studio ended by itself"
  sleep 0.2
done
environment/bin/python - "$(grep -o 'http[^ ]*' address)" <<'PYTHON'
import re, sys, urllib.request

address = sys.argv[1]
page = urllib.request.urlopen(address, timeout=30).read().decode()
for script in re.findall(r'src="\.?/?([^"]+\.js)"', page):
    urllib.request.urlopen(address.split("?")[0] + script, timeout=30)
assert "<script" in page, "the page has no script"
PYTHON
say "The page answers $(($(date +%s) - start)) s after the start"

#!/usr/bin/env bash
# Installs a wheel with the studio into a new environment, without Node, poses a body, and uses the studio in Chromium.
#
#   tools/try_wheel.sh dist/poise-0.2.0-py3-none-any.whl [EXTRAS]     PYTHON=python3.13 chooses the interpreter
#
# EXTRAS are installed after the studio was tried, such as c3d,video,usd. A wheel with ready kernels must compile nothing
# for its first pose, and spend at most five seconds of processor time on it.
set -euo pipefail
wheel=$(realpath "$1")
extras=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
most_megabytes=14   # 5.3 of them are the motion prior, 3.8 ready kernels, 2.2 the universal prior
most_installed=435  # MB of Poise with the studio and all that it needs, without pip: 345 are llvmlite, SciPy and NumPy
most_compiled=60    # MB that use adds: bytecode of the modules in use, and the kernels, all of them 30

say() { printf '\033[1m%s\033[0m\n' "$*"; }
fail() { printf 'try_wheel: %s\n' "$*" >&2; exit 1; }
megabytes() { du -sm "$1" | cut -f1; }

size=$(($(stat -c %s "$wheel" 2>/dev/null || stat -f %z "$wheel") / 1000000))
[ "$size" -lt "$most_megabytes" ] || fail "the wheel has $size MB; at most $most_megabytes are allowed"
folder=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
export HOME="$folder" POISE_CACHE="$folder/cache"

# Bytecode of the modules in use is written when they are first imported; pip would also write that of all test suites.
say "Installing $(basename "$wheel") ($size MB) with $("${PYTHON:-python3}" --version)"
"${PYTHON:-python3}" -m venv --without-pip environment
install() { "${PYTHON:-python3}" -m pip --python environment/bin/python --quiet --disable-pip-version-check install --no-compile --find-links "$(dirname "$wheel")" "$1"; }
install "$wheel[studio]"
installed=$(megabytes environment)
[ "$installed" -lt "$most_installed" ] || fail "the environment has $installed MB; at most $most_installed are allowed"

if [[ $wheel != *-none-any.whl ]]; then
  environment/bin/python - <<'PYTHON'
import time

import poise
from poise.compiled import kernels_compiled

poise.pose({"right_hand": (0.3, 1.5, 0.5), "left_foot": (0.1, 0.1, 0.2)}).save("first.png")
spent, compiled = time.process_time(), kernels_compiled()
assert compiled == 0, f"the first pose compiled {compiled} kernels; the wheel should have brought them"
assert spent < 5.0, f"the first pose took {spent:.1f} s of processor time; at most 5 are allowed"
print(f"The first pose took {spent:.1f} s of processor time")
PYTHON
fi

say "Opening the studio of $(environment/bin/poise --version)"
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
say "The page is there after $(($(date +%s) - start)) s"
"$root/.venv/bin/python" "$root/tools/use_studio.py" "$(grep -o 'http[^ ]*' address)"
say "A hand was dragged in Chromium after $(($(date +%s) - start)) s"
kill "$server"

environment/bin/poise pose --handle right_hand=0.3,1.5,0.5 --output pose.png
[ -s pose.png ] || fail "no picture was written"
compiled=$(($(megabytes environment) - installed))
[ "$compiled" -lt "$most_compiled" ] || fail "use added $compiled MB; at most $most_compiled are allowed"
say "$installed MB installed, $compiled MB compiled"

if [ -n "$extras" ]; then
  install "$wheel[$extras]"
  environment/bin/poise doctor
  say "$(megabytes environment) MB with $extras"
fi

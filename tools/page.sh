#!/usr/bin/env bash
# Builds the studio's page into src/poise/studio/web/dist. Without Node 20 it says so and leaves everything else working.
set -euo pipefail
cd "$(dirname "$0")/../src/poise/studio/web"
needed=20

say() { printf '\033[1m%s\033[0m\n' "$*"; }
without() { printf 'page: %s; all of Poise but the studio works without it\n' "$*" >&2; exit 0; }

version=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/') || true
[ -n "${version:-}" ] || without "Node is not installed, so the studio's page is not built (nodejs.org, or your package manager)"
[ "$version" -ge "$needed" ] || without "the studio's page needs Node $needed or newer to be built; this is Node $version"
command -v npm >/dev/null || without "npm is not installed beside Node, so the studio's page is not built"

if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  say "Installing what the studio's page is built with"
  npm ci --silent --no-audit --no-fund || without "npm could not install what the studio's page is built with (is the network there?)"
fi
say "Building the studio's page"
npm run --silent build -- --logLevel warn

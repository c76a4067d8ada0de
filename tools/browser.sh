#!/usr/bin/env bash
# Makes sure that there is a Chromium for the tests of the studio's page; where it cannot be installed, they say so and skip.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  echo "Installing Chromium for the tests of the studio's page"
  apt-get update -qq || true
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null || true
fi
command -v chromium >/dev/null || echo "browser: Chromium is not installed (on Debian: apt-get install chromium); its tests are skipped" >&2

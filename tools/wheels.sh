#!/usr/bin/env bash
# Builds wheels into dist/: one for every machine, and one for this kind of machine and this version of Python that brings
# the kernels of a first pose and of a first drag in the studio ready (docs/decisions/0020-ready-kernels.md). The networks
# that find people are a third wheel, which the extra `video` asks for.
#
#   tools/wheels.sh     PYTHON=python3.13 chooses the interpreter; NUMBA_CPU_NAME=generic on machines that are not x86-64
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export POISE_PEOPLE_APART=1

build() { (cd "$root/${1:-}" && "$root/.venv/bin/python" -m hatchling build --target wheel --directory "$root/dist"); }
first_pose() {
  environment/bin/python -c "from poise.apps.warm_up import FIRST_POSE, warm_up; warm_up(FIRST_POSE)"
  environment/bin/poise pose --handle right_hand=0.3,1.5,0.5 --handle left_foot=0.1,0.1,0.2 --output pose.png
}

build
build people
"$python" -m venv --without-pip "$folder/environment"
"$python" -m pip --python "$folder/environment/bin/python" --quiet --disable-pip-version-check install "$root"/dist/poise-[0-9]*-none-any.whl
cd "$folder"
first_pose > /dev/null
POISE_KERNELS=$(environment/bin/python -c "import poise; print(poise.__path__[0].removesuffix('/poise'))")
export POISE_KERNELS

# Compiling leaves the kernels that others contain too. Only those that are read the next time are needed.
NUMBA_DEBUG_CACHE=1 first_pose | sed -n "s/^\[cache\] data loaded from '\(.*\)'$/\1/p" | sort -u > needed
find "$POISE_KERNELS/poise" -name '*.nbc' | sort | comm -23 - needed | xargs rm
find "$POISE_KERNELS/poise" -name '*.nbi' | while read -r index; do
  compgen -G "${index%.nbi}.*.nbc" > /dev/null || rm "$index"
done
build

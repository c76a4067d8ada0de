# Poise: everything a newcomer, a developer and CI need. `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BIN := .venv/bin
PAGE := src/poise/studio/web
ARCHIVE = $(or $(POISE_MOCAP),../shared/mocap)/cmu-all-30hz.npz.xz
export PYTHON
unexport PYTHONDONTWRITEBYTECODE  # the tests start many processes; none should compile every module again

.PHONY: help setup run demo test test-slow test-all check fuzz fuzz-briefly soak kills clients check-bounds bench speed learning learning-torch docs architecture docs-pictures results photos tasks characters universal motion audit sbom nightly mutants release addon lock clean format lint types layers examples gltf-validator page page-types browser studio-pictures studio-tasks studio-latency

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.compiled page ## make .venv, install the locked dependencies, compile the kernels, build the studio's page

run: setup ## open the studio in the browser
	$(BIN)/poise studio

demo: .venv/.run ## pose a body by a few handles, five times on one picture, and make a motion as BVH, GLB and PNG, in out/
	$(BIN)/poise demo --output out

PARALLEL := -n auto --dist worksteal  # one process per core; a module's tests stay together until one process has none left

test: .venv/.dev gltf-validator page ## run the fast tests, in parallel
	$(BIN)/pytest $(PARALLEL) -m "not slow"

test-slow: .venv/.dev gltf-validator page ## run the tests that `make test` leaves out
	$(BIN)/pytest $(PARALLEL) -m slow

test-all: test test-slow ## run every test

# The browser takes longest: it comes first, so that with -j2 all else is done beside it.
check: browser lint types layers page-types examples docs fuzz-briefly ## format, lint, types, layers, examples, documentation, the page

format: .venv/.dev ## format the code and mend what can be mended
	$(BIN)/ruff format
	$(BIN)/python tools/wrap_markdown.py *.md docs/*.md docs/*/*.md docs/*/*/*.md
	$(BIN)/ruff check --fix

lint: .venv/.dev ## check format and lint
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: .venv/.dev ## check types
	$(BIN)/mypy

layers: .venv/.dev ## check that every layer imports only from those below it
	$(BIN)/lint-imports

page-types: page ## check types and format of the studio's page
	@$(or $(wildcard $(BIN)/python),$(or $(PYTHON),python3)) tools/page.py types format-check

browser: .venv/.dev page ## use the studio's page in Chromium
	@tools/browser.sh
	$(BIN)/pytest tests/studio/browser || $(BIN)/pytest tests/studio/browser --last-failed  # what fails is tried once more, alone

examples: .venv/.dev ## run every example
	@for example in examples/[0-9]*.py; do echo "$$example"; MPLBACKEND=Agg $(BIN)/python -W error "$$example"; done

architecture: .venv/.dev ## draw the rooms and their imports in docs/architecture.md again
	$(BIN)/python docs/make_architecture.py

docs: .venv/.dev ## build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

DRAWN_ELSEWHERE := docs/make_architecture.py docs/make_studio_picture.py docs/make_task_pictures.py  # have targets of their own
PICTURES := $(filter-out $(DRAWN_ELSEWHERE),$(wildcard docs/make_*.py))

docs-pictures: .venv/.dev ## draw the documentation's pictures again: make docs-pictures PICTURES=docs/make_style_pictures.py
	@for script in $(PICTURES); do echo "$$script"; $(BIN)/python "$$script"; done

results: .venv/.dev ## measure again what docs/results shows, and write its tables: make results PAGES=handles (topology takes hours)
	$(BIN)/python tools/results.py $(QUICK) $(PAGES)

photos: .venv/.dev page ## pose the people of ten real photographs, which pip fetches, on one page to look at (out/photos)
	$(BIN)/python tools/photos.py

tasks: .venv/.dev ## pose twelve everyday tasks with every prior, on one page to look at
	$(BIN)/python docs/make_task_pictures.py

studio-pictures: .venv/.dev page ## take the pictures of the studio again, from the real page
	@tools/browser.sh
	$(BIN)/python docs/make_studio_picture.py

characters: .venv/.dev ## carry motions onto every character of a folder, check and draw them: make characters FOLDER=... MOTIONS="..."
	$(BIN)/python tools/characters.py $(FOLDER) --motions $(MOTIONS) --output out/characters.png

studio-tasks: .venv/.dev ## pose nine everyday tasks and a walk with the studio's defaults, on one page to look at
	$(BIN)/python tools/studio_tasks.py --output out/studio-tasks.png
	$(BIN)/python tools/studio_tasks.py --motion --output out/studio-tasks-motion.png

studio-latency: .venv/.dev page ## measure in the real page how long the pointer waits for its frame, under every model
	@tools/browser.sh
	$(BIN)/python tools/pointer_latency.py

FUZZERS := fuzz_formats fuzz_contradictions fuzz_references fuzz_names fuzz_models fuzz_solves fuzz_scripts fuzz_libraries \
           fuzz_stores fuzz_studio fuzz_api
SECONDS_EACH := 600
CASES := 1000000000
SEED := 1

fuzz: .venv/.dev page ## feed damaged input of all kinds to Poise, from where the last run ended: make fuzz SECONDS_EACH=3600
	@for fuzzer in $(FUZZERS); do echo "$$fuzzer"; \
	$(BIN)/python fuzz/$$fuzzer.py --count $(CASES) --seconds $(SECONDS_EACH) --seed $(SEED) --resume; done
	@$(BIN)/python fuzz/running.py

fuzz-briefly: .venv/.dev page ## the first cases of each fuzzer, the same ones every time
	@for brief in formats:2000 contradictions:600 references:100 names:300 models:1000 solves:1000 scripts:1000 \
	libraries:60 stores:60 studio:1000 api:2000; do \
	echo "$$brief"; $(BIN)/python fuzz/fuzz_$${brief%:*}.py --count $${brief#*:}; done

soak: .venv/.dev page ## two hours of random edits in the studio, with a chart of its memory, descriptors and answers
	$(BIN)/python fuzz/soak.py

kills: .venv/.dev page ## kill commands and the studio at random moments, and look at what is left
	$(BIN)/python fuzz/kills.py

clients: .venv/.dev page ## fifty pages that drag at once for ten minutes, then again beside one that solves 36,000 frames
	$(BIN)/python -m benchmarks.studio_load

check-bounds: .venv/.dev ## run the tests of models and solvers with the compiled code's indices checked
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=out/bounds $(BIN)/pytest tests/priors tests/solvers tests/skeleton

bench: .venv/.dev page ## measure, as ratios within one run
	$(BIN)/python -m benchmarks

speed: .venv-bench/.speed ## compare solvers with their peers, in an environment of its own
	.venv-bench/bin/poise evaluate speed --json out/speed.json --plots out/speed

learning: .venv-bench/.speed ## compare learning styles and motion models with GPy, in the same environment
	.venv-bench/bin/python -m benchmarks style_learning motion_learning

learning-torch: .venv-bench/.torch ## compare learning motion models with GPy and GPyTorch, which brings PyTorch
	.venv-bench/bin/python -m benchmarks motion_learning

universal: .venv-bench/.torch .venv/.run ## train the universal prior again, from cmu-all-30hz.npz.xz under POISE_MOCAP (hours on a CPU)
	.venv-bench/bin/python tools/universal/train.py --data $(ARCHIVE) --out out/universal
	$(BIN)/python tools/universal/calibrate.py --data $(ARCHIVE) --weights out/universal/universal.safetensors
	.venv-bench/bin/python tools/universal/modes.py --data $(ARCHIVE) --weights out/universal/universal.safetensors --out out/universal

motion: .venv-bench/.torch .venv/.run ## train the motion prior, from cmu-all-30hz.npz.xz under POISE_MOCAP (minutes on a GPU, a night on a CPU)
	.venv-bench/bin/python tools/motion/train.py --data $(ARCHIVE) --out out/motion
	$(BIN)/python tools/motion/ship.py out/motion/motion.npz src/poise/priors/motion/motion.safetensors
	$(BIN)/python tools/motion/calibrate.py src/poise/priors/motion/motion.safetensors --data $(ARCHIVE)

audit: .venv-audit/.made page ## look for known weaknesses of the packages that are locked, for Python and for the page
	for lock in run dev; do .venv-audit/bin/pip-audit -r requirements/$$lock.lock --require-hashes --disable-pip --progress-spinner off; done
	npm audit --prefix $(PAGE) --omit=dev

sbom: .venv-audit/.made ## list what an installation consists of, as CycloneDX in dist/poise.cdx.json
	mkdir -p dist && .venv-audit/bin/cyclonedx-py requirements requirements/run.lock --pyproject pyproject.toml --output-reproducible -o dist/poise.cdx.json

nightly: test-all browser audit ## what is too slow for every change: all tests, the browser, known weaknesses, mutants, hours of fuzzing
	$(MAKE) mutants SEED=$$(date +%j)
	$(MAKE) fuzz SEED=$$(date +%j)

MUTANTS := 40

mutants: .venv/.dev page ## change operators of Poise at random, and count what the tests notice: make mutants MUTANTS=100 SEED=7
	$(BIN)/python tools/mutants.py --count $(MUTANTS) --seed $(SEED)

EXTRAS := c3d,fbx,usd,lsl,plots,data,video,library,cluster,notebook
PYTHONS := $(or $(PYTHON),python3)

release: .venv/.dev page ## build the source archive and the wheels, page included, and try them: make release PYTHONS="python3.11 python3.13"
	@test -e $(PAGE)/dist/index.html || { echo "release: the studio's page is not built (see above); a wheel without it is not a release" >&2; exit 1; }
	rm -rf dist && $(BIN)/python -m hatchling build --target sdist
	@tools/browser.sh
	for python in $(PYTHONS); do PYTHON=$$python tools/wheels.sh; done
	for python in $(PYTHONS); do PYTHON=$$python tools/try_wheel.sh dist/poise-[0-9]*-none-any.whl "$(EXTRAS)"; \
	PYTHON=$$python tools/try_wheel.sh dist/poise-[0-9]*-cp$$($$python -c "import sys; print(*sys.version_info[:2], sep='')")-*.whl; done
	$(MAKE) addon sbom

addon: .venv/.dev ## pack the add-on for Blender into dist/poise-blender.zip
	rm -rf blender/poise_blender/__pycache__ && mkdir -p dist && $(BIN)/python -c "import shutil; shutil.make_archive('dist/poise-blender', 'zip', 'blender/poise_blender')"

lock: ## resolve the dependencies again (needs uv)
	tools/lock.sh

clean: ## remove everything that was made, the virtual environment too
	rm -rf .venv .venv-bench .venv-audit .node out site dist build tests/tools/node_modules $(PAGE)/node_modules $(PAGE)/dist
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

# Stamps: an environment is made again only when its lock or pyproject.toml changed.
.venv/.run: requirements/run.lock pyproject.toml tools/setup.sh
	tools/setup.sh requirements/run.lock
	@touch $@

.venv/.compiled: .venv/.run
	$(BIN)/poise warm-up
	@touch $@

.venv/.dev: requirements/dev.lock .venv/.compiled
	tools/setup.sh requirements/dev.lock
	@touch $@

.venv-bench/.speed: requirements/bench.lock pyproject.toml tools/setup.sh
	VENV=.venv-bench tools/setup.sh requirements/bench.lock
	@touch $@

.venv-audit/.made: requirements/audit.lock
	$(firstword $(PYTHONS)) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/audit.lock
	@touch $@

# By pip, which takes PyTorch from wherever this machine has it, built for the processor alone or not.
.venv-bench/.torch: .venv-bench/.speed requirements/torch.txt
	$(or $(PYTHON),python3) -m pip --python .venv-bench/bin/python install --quiet --disable-pip-version-check -r requirements/torch.txt
	@touch $@

# The studio's page is built again when its sources change; Node comes from PyPI where the machine has none.
page: $(PAGE)/dist/index.html ## build the studio's page

$(PAGE)/dist/index.html: $(shell find $(PAGE)/src $(PAGE)/public -type f) $(wildcard $(PAGE)/*.json $(PAGE)/*.ts $(PAGE)/*.html) tools/page.py
	@$(or $(wildcard $(BIN)/python),$(or $(PYTHON),python3)) tools/page.py

# The Khronos glTF validator; without npm the tests that need it say so and skip.
gltf-validator: $(patsubst %/package-lock.json,%/node_modules,$(wildcard tests/tools/package-lock.json))

tests/tools/node_modules: tests/tools/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix tests/tools --silent --no-audit --no-fund && touch $@; \
	else echo "npm is not installed: the tests that need the glTF validator are skipped"; fi

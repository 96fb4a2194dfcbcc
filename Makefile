# Simul. `make up` sets up what is missing and trains; Ctrl-C stops it cleanly. Works with GNU make 3.81 and newer.
# Arguments of the commands behind a target: make up ARGS="--set workers.count=2"

PY := .venv/bin/python
ARGS ?=
PYTHON ?=
CONFIG ?= configs/pokemon.yaml
HOURS ?= 8

.DEFAULT_GOAL := help
.PHONY: help up setup test test-long test-races test-faults test-chaos soak lint loadtest learn-check bench-pokemon bench-acceleration bench-serving bench-before bench-cuda bench-peers bench-sb3 bench-strength bench-tables bench-networks bench-ofc bench-search bench-scale bench-watched-game docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

up: setup ## learn Pokémon battles (CONFIG=configs/cartpole.yaml for another game)
	@.venv/bin/simul up --from-make $(CONFIG) $(ARGS)

setup: ## .venv and the simulator; does nothing when nothing changed
	@PYTHON="$(PYTHON)" GOALS="$(MAKECMDGOALS)" sh launch/setup/setup.sh

test: setup ## the tests, 5 to 8 minutes on two idle cores
	@$(PY) -m tests.support.npm_packages
	@$(PY) -m pytest -m "not slow" -n auto $(ARGS)

test-long: setup ## all tests, with the full counts
	@$(PY) -m tests.support.npm_packages
	$(PY) -m pytest $(ARGS)

test-races: setup ## each test file with processes again and again on busy cores: what ever failed (hours; goes on where it stopped)
	@$(PY) -m tests.support.npm_packages
	@$(PY) -m tests.support.races $(ARGS)

test-faults: setup ## small faults, drawn by seed, in the code: which of them the tests find (an hour; ARGS="--draw 7", then without)
	@$(PY) -m tests.support.seeded_faults $(ARGS)

test-chaos: setup ## random signals to the processes of real runs, whose books must balance (40 minutes; ARGS="chaos --kills 20")
	$(PY) -m tests.support.random_kills $(ARGS)

soak: setup ## a run of hours whose memory, descriptors, threads and disk must not grow (HOURS=8 CONFIG=...)
	$(PY) -m benchmarks.soak --hours $(HOURS) $(ARGS) $(CONFIG)

lint: setup ## style, types, import contracts, names in comments
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports
	$(PY) .ci/backticks.py

learn-check: setup ## tasks with known answers are learned, through all processes (half an hour)
	$(PY) -m benchmarks.learn_check $(ARGS)

loadtest: setup ## how many actions a second at which latency, under 2 minutes (ARGS="--help")
	@.venv/bin/simul loadtest $(ARGS)

bench-pokemon: setup ## what each layer costs, from the simulator alone to all of `make up`
	$(PY) -m benchmarks pokemon $(ARGS)

bench-acceleration: setup ## the stock simulator beside the accelerated one, generation by generation (6 minutes)
	$(PY) -m benchmarks acceleration $(ARGS)

bench-serving: setup ## the inference server beside the bare forward: found against promised
	$(PY) -m benchmarks serving $(ARGS)

bench-before: setup ## this tree beside an older one, in alternating pairs (BEFORE=REVISION; 8 minutes; ARGS="--cell pokemon --seconds 30 --itself")
	$(PY) -m benchmarks before $(BEFORE) $(ARGS)

bench-cuda: setup ## the inference server on a GPU, with captured graphs and without, and the engine alone
	$(PY) -m benchmarks cuda $(ARGS)

bench-peers: setup .venv-peers/.stamp ## beside mosec, TorchRL's inference server, and policies that run in the clients (10 minutes)
	$(PY) -m benchmarks peers $(ARGS)

bench-sb3: setup .venv-sb3/.stamp ## beside Stable-Baselines3: return and steps a second (hours; ARGS="--task CartPole-v1 --seeds 1")
	.venv-sb3/bin/python -m benchmarks sb3 $(ARGS)

bench-strength: setup ## how strong a policy becomes from random weights: tables whose finished rows are kept (hours; ARGS="--table shipped --show")
	$(PY) -m benchmarks strength $(ARGS)

bench-tables: setup ## legal moves, hands and boards of Blokus and OFC, and the start of their workers (5 minutes; ARGS=--markdown)
	$(PY) -m benchmarks tables $(ARGS)

bench-watched-game: setup ## what a game that is watched costs its run (2 minutes; ARGS=ofc)
	$(PY) -m benchmarks watched-game $(ARGS)

bench-networks: setup ## size, forward and update time of each network, as ratios (a quarter of an hour)
	$(PY) -m benchmarks networks $(ARGS)

bench-ofc: setup .venv-sb3/.stamp ## Open Face Chinese beside MaskablePPO: decisions learned from a second (15 minutes)
	.venv-sb3/bin/python -m benchmarks ofc $(ARGS)

bench-search: setup ## Blokus searched one game at a time, with a network a worker, and by the server (7 minutes)
	$(PY) -m benchmarks search $(ARGS)

bench-scale: setup ## service times of real servers, the model of them held against 1 and 2, and a fleet of 1 to 64 simulated (half an hour; ARGS="--step simulate")
	$(PY) -m benchmarks scale $(ARGS)

.venv-sb3/.stamp: benchmarks/sb3/requirements.txt constraints.txt pyproject.toml | setup
	rm -rf .venv-sb3
	$(PY) -m venv .venv-sb3
	.venv-sb3/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt \
		-r benchmarks/sb3/requirements.txt -e .
	touch $@

.venv-peers/.stamp: benchmarks/peers/requirements.txt constraints.txt | setup
	rm -rf .venv-peers
	$(PY) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt \
		-r benchmarks/peers/requirements.txt
	touch $@

docs: setup .venv-docs/.stamp ## the documentation as a site, in site/; broken links fail
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict $(ARGS)
	@echo "site/index.html"

# What the extra [docs] names, without Simul itself: the API pages are read from the sources.
.venv-docs/.stamp: pyproject.toml constraints.txt | setup
	rm -rf .venv-docs
	$(PY) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --disable-pip-version-check -q -c constraints.txt \
		$$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	touch $@

# Tests start hundreds of processes: modules are compiled once, also where the environment says that none is kept.
test test-long test-races test-faults: export PYTHONDONTWRITEBYTECODE :=

# Their runs send no notices to the person who starts them.
test test-long test-races test-chaos learn-check bench-pokemon bench-serving bench-sb3 bench-ofc bench-search bench-scale: export SIMUL_NOTIFY :=

clean: ## remove .venv, the simulator's packages and caches; runs/ stays
	rm -rf .venv .venv-peers .venv-sb3 .venv-docs site env_worker/games/pokemon/node/node_modules *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Everything from a fresh checkout: needs Python >= 3.11, make, and Go >= 1.23 or a `temporal` program.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup dev temporal demo demo-people test test-long tables mutants guards cases corpus conformance check serve worker standin bench large bursts prompts showcase real oracle sensitivity scores compose-test operate-test release mcp-kills screenshots recording watch docs examples

# a uv from PATH, else one of our own in .uv
UV := $(or $(shell command -v uv 2>/dev/null),.uv/bin/uv)
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
VENV := .venv/bin/python
# Without compiled modules a Worker takes seconds longer to start, and so to take over from a killed one.
export PYTHONDONTWRITEBYTECODE :=
# Two markers: what is needed to run, and on top of it what tests and checks need.
READY := .venv/.ready
DEV := .venv/.ready-dev

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) temporal ## Install what is needed to run into .venv, and get the temporal program

dev: $(DEV) temporal ## Install what tests and checks need, too

demo: $(READY) ## Start a server, a worker and a run on bundled data; follow it and print the answer
	@$(VENV) -m temporal_supervisor.console.demo

demo-people: $(READY) ## The same with a team that asks people: decide in a second terminal (docs/people.md)
	@SUPERVISOR_TEAMS_DIR=examples/teams $(VENV) -m temporal_supervisor.console.demo --team purchasing \
	    --plan examples/teams/purchasing/plan.json \
	    --goal "From which supplier do we order office lamps, by our policy, and why?"

# Most tests wait for processes and timers: five at a time keep two cores busy.
test: dev ## Run the tests, without those that take long
	$(VENV) -m pytest -n 5 --dist loadfile --no-loadscope-reorder

test-long: dev ## Run the tests that take long
	$(VENV) -m pytest -n 4 --dist load -m long

tables: dev ## Read COUNT tables of known values in many conventions: no number may differ
	TABLES_COUNT=$(or $(COUNT),10000) .venv/bin/python -m pytest tests/activity/files/test_generated_tables.py -q -n 2 -m "long or not long" --timeout 7200

mutants: $(DEV) ## Change the rules in small ways, and see that their unit tests notice
	@nice $(VENV) -m tests.mutants $(MODULES)

guards: dev ## Take each guard of the reviews away, and see that its case turns red: ONLY="reports-fit-in-sum orphans-end"
	@nice $(VENV) -m tests.guards $(ONLY)

cases: dev ## Play generated runs with faults: COUNT of them, from FIRST on; what fails is kept in the folder KEEP
	@$(VENV) -m tests.machine $(or $(COUNT),500) $(or $(FIRST),1) $(if $(KEEP),--keep $(KEEP))

corpus: dev ## Run the security corpus alone
	$(VENV) -m pytest tests/corpus

mcp-kills: dev ## Play a job of STEPS (10) calls of a writing MCP server, with kill -9 of the Worker in each (4 minutes)
	MCP_NOTES=$$(($(or $(STEPS),10) + 1)) $(VENV) -m pytest --timeout 1800 tests/recovery/test_mcp_writes.py -k note

conformance: $(READY) ## Run scenarios of the MCP conformance suite (npm): those of docs/mcp.md and docs/mcp-servers.md, or SCENARIOS
	@tests/conformance/run.sh $(SCENARIOS)

check: $(DEV) ## Check format, lint, types and the lock
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .
	$(VENV) -m mypy
	$(UV) lock --check

serve: $(READY) ## Run the embedded Temporal server with its Web UI until Ctrl-C
	@$(VENV) starter.py serve

worker: $(READY) ## Run a Worker process
	@$(VENV) worker_main.py

standin: $(READY) ## Run the stand-in model on port 8234
	@$(VENV) -m temporal_supervisor.standin --port 8234

bench: dev ## Run the benchmarks
	@$(VENV) -m benchmarks

large: dev ## Run the largest sizes, with kill -9 in the middle
	@$(VENV) -m benchmarks.large

bursts: dev ## Play bursts of wide files, hostile schemas and SQL beside an honest run: ONLY=schemas for one of them
	@$(VENV) -m tests.bursts $(ONLY)

examples: dev ## Play the examples of docs/examples with a scripted model, and write their pages
	@$(VENV) -m tests.shown

prompts: dev ## Write docs/prompts.md: what the default team sends for the demo's goal
	@$(VENV) -m benchmarks.prompts

real: dev ## Play questions with a real model that runs on this machine (hours): ONLY="questions d1 kill", URL of a served one
	@nice $(VENV) -m tests.real $(if $(ONLY),--only $(ONLY)) $(if $(URL),--url $(URL))

oracle: dev ## Play question sets by their true answers, then with planted faults: SETS=../shared/evals, FAULTS in each set, ONLY="tatqa wtq"
	@nice $(VENV) -m tests.oracle $(or $(SETS),tests/oracle/sets) $(ONLY) $(if $(FAULTS),--faults $(FAULTS)) \
	    --json benchmarks/scores/oracle.json

sensitivity: dev ## Play 20 changes for the worse, and as many repetitions: which --no-worse-than calls worse (20 minutes)
	@nice $(VENV) -m tests.sensitivity

scores: dev ## Write docs/scores.md from the results that are kept in benchmarks/scores
	@$(VENV) -m benchmarks.scores

screenshots: dev ## Take the pictures of the page in docs/images (needs Chromium); ALL=FOLDER: each light, dark, on a phone
	@$(VENV) -m tests.console.screenshots $(ALL)

recording: dev ## Record a run whose Worker is killed, as docs/images/page-recording.png (needs Chromium)
	@$(VENV) -m tests.console.recording

watch: dev ## Measure the page of runs with 1,000 subtasks, and 50 readers at once (needs Chromium; minutes)
	@$(VENV) -m tests.console.watching

showcase: dev ## Record runs of the bundled goals with the configured model in docs/showcase (says first what it costs at most)
	@$(VENV) -m benchmarks.showcase

docs: | uv ## Build the documents as a site in site/, and check its links (mkdocs; OPEN=1 serves it on port 8000)
	@NO_MKDOCS_2_WARNING=1 $(UV) run --quiet --isolated --only-group docs mkdocs $(if $(OPEN),serve,build --strict --quiet)
	@$(if $(OPEN),,echo "site/index.html")

release: | uv ## Build wheel, source package, SBOM and licences in dist/, and try both packages in empty environments
	@deploy/release.sh "$(abspath $(UV))"

compose-test: dev ## Run docker-compose.yml for real, and kill and cut off its services (docker, or podman as root)
	@$(VENV) -m tests.compose

operate-test: dev ## Run encryption on PostgreSQL and a bucket, and the dashboard on a collector and Prometheus
	@tests/operate/programs.sh .cache/operate
	$(VENV) -m pytest tests/recovery/test_encryption.py tests/recovery/test_dashboard.py

temporal: $(READY)
	@$(VENV) -m temporal_supervisor.runtime.server.temporal_binary >/dev/null

# An existing .venv keeps its Python; a new one gets the one found above.
SYNC = $(UV) sync --locked --quiet --compile-bytecode $(if $(wildcard $(VENV)),,--python "$(PYTHON)")
$(READY): pyproject.toml uv.lock | uv
	@echo "installing into .venv: some seconds, once" >&2
	@$(SYNC) --no-dev --inexact
	@touch $@

$(DEV): pyproject.toml uv.lock | uv
	@$(SYNC)
	@touch $@ $(READY)

.PHONY: uv
uv: | python
	@[ -x "$(UV)" ] || { $(PYTHON) -m venv .uv && \
		.uv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r deploy/uv.txt; }

.PHONY: python
python:
	@[ -n "$(PYTHON)" ] || { echo "no Python >= 3.11 found: install one, or run make PYTHON=/path/to/python3" >&2; exit 1; }

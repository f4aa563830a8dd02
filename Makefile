# `make help` lists what can be done here. Needs a Python 3.11 to 3.13 with venv, and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A stamp is written when its installation is complete, so a broken one is done again.
RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

CODE := app bench examples migrations tests
FAST := not slow
SLOW := slow

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help serve demo test test-slow check fix bench openapi clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# `exec` leaves no shell in between, so a signal to make or from the terminal reaches the service.
serve: $(RUNTIME) ## Install what is missing, migrate the database and serve until told to stop
	@exec $(BIN)/letta-lineage serve

demo: $(RUNTIME) ## Replay an experiment tree and print what each node sees
	@exec $(BIN)/python -m examples.demo

test: $(DEV) ## Run the fast suites (PYTEST_ARGS="-k scope" narrows them)
	$(BIN)/pytest -m "$(FAST)" $(PYTEST_ARGS)

test-slow: $(DEV) ## Run the slow suites: long random runs, kill -9, fuzzing, deployment
	$(BIN)/pytest -m "$(SLOW)" --timeout 1200 $(PYTEST_ARGS)

check: $(DEV) ## Check format, lint, types and import arrows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports

fix: $(DEV) ## Repair what the format and lint checks can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV) ## Measure the service against a plain endpoint (BENCH_ARGS="--quick")
	$(BIN)/python -m bench $(BENCH_ARGS)

openapi: $(RUNTIME) ## Write openapi/openapi.json anew from the routes
	@mkdir -p openapi
	$(BIN)/letta-lineage openapi > openapi/openapi.json.new
	mv openapi/openapi.json.new openapi/openapi.json

clean: ## Remove the environment and the caches; data stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# The project itself is installed as a link to this folder: an edit needs no new installation.
$(RUNTIME): requirements.lock pyproject.toml $(BIN)/pip
	@echo "Installing what the service needs into $(VENV) (once, about a minute)"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# The tests' packages come on top of the service's, in the same versions: both stamps stay true.
$(DEV): requirements-dev.lock $(RUNTIME)
	@echo "Installing what the tests need into $(VENV) (once, about a minute)"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

# pip is the last thing that venv lays down: where it is missing, the environment was cut short.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "$(PYTHON) is not a Python 3.11 to 3.13. Name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# `make help` lists what can be done here. Needs a Python 3.11 to 3.13 with venv, and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A stamp is written when its installation is complete, so a broken one is done again.
RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

CODE := app bench examples letta migrations scripts tests
FAST := not slow and not letta
SLOW := slow and not letta

# The Letta of `make letta`: an address of its own for each folder.
LETTA_DIR ?= .letta
LETTA_PORT ?= 8283
LOCAL_LETTA = LETTA_DIR="$(LETTA_DIR)" LETTA_PORT="$(LETTA_PORT)" PYTHONPATH=letta $(PYTHON) -m local

define check-python
@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
  { echo "$(PYTHON) is not a Python 3.11 to 3.13. Name one: make PYTHON=python3.12 ..." >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
  { echo "$(PYTHON) has no venv. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help serve demo test test-slow test-letta letta letta-stop letta-clean check fix bench openapi clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# `exec` leaves no shell in between, so a signal to make or from the terminal reaches the service.
serve: $(RUNTIME) ## Install what is missing, migrate the database and serve until told to stop
	@exec $(BIN)/letta-lineage serve

demo: $(RUNTIME) ## Replay an experiment tree and print what each node sees
	@exec $(BIN)/python -m examples.demo

test: $(DEV) ## Run the fast suites (PYTEST_ARGS="-k scope" narrows them)
	$(BIN)/pytest -m "$(FAST)" $(PYTEST_ARGS)

test-slow: $(DEV) ## Run the slow suites: long random runs, kill -9, fuzzing, deployment
	$(BIN)/pytest -m "$(SLOW)" --timeout 1200 $(PYTEST_ARGS)

# A Letta that was there already, or that LETTA_BASE_URL names, is left as it is.
test-letta: $(DEV) ## Run the suites that need a real Letta, against LETTA_BASE_URL or `make letta`
	@$(LOCAL_LETTA) lend $(BIN)/pytest -m letta --timeout 600 $(PYTEST_ARGS)

letta: ## Bring up a real Letta on LETTA_PORT; all of it lies in LETTA_DIR
	$(check-python)
	@$(LOCAL_LETTA) up

letta-stop: ## Stop what `make letta` started; its data stays
	@$(LOCAL_LETTA) down

letta-clean: ## Stop the local Letta and remove LETTA_DIR
	@$(LOCAL_LETTA) remove

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
	$(check-python)
	@$(PYTHON) -m venv $(VENV)

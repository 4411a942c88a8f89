# Everything a newcomer needs: `make run` and `make test` set themselves up with git, make and Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# The stamp holds the directory it was made in: a copied or moved checkout installs itself anew.
STAMP := $(VENV)/.installed
# Goes to pytest as it is, for example: make test PYTEST_ARGS="-k rewind -x"
PYTEST_ARGS ?=
# Processes that run tests side by side; 0 for none, to see prints as they come.
WORKERS ?= auto
COVERAGE := build/coverage/coverage.json

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The checks print in a fixed order, also under `make -j`.
.NOTPARALLEL:

ifneq "$(shell cat $(STAMP) 2>/dev/null)" "$(shell pwd -P)"
.PHONY: $(STAMP)
endif

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf 'make %-12s %s\n' "$$name" "$$text"; done

.PHONY: run
run: $(STAMP) ## Show what Playhead does, on a throw-away store
	@$(PY) -m playhead.cli.demo $(ARGS)

.PHONY: test
test: MARKS := -m 'not slow'
test: lint types _pytest ## Run every check and all tests that are not slow

.PHONY: test-all
test-all: lint types _pytest ## Run every check and all tests, the slow ones too

.PHONY: lint
lint: $(STAMP) ## Check style, formatting and the direction of imports
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -c 'import sys; from importlinter.cli import lint_imports_command as run; sys.exit(run())' --no-logo

.PHONY: types
types: $(STAMP) ## Check types, strictly
	@$(PY) -m mypy --strict

.PHONY: format
format: $(STAMP) ## Format the code and mend what the linter can mend
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

.PHONY: bench
bench: $(STAMP) ## Run the benchmarks
	@$(PY) -m benchmarks $(ARGS)

.PHONY: constraints
constraints: ## Pin the newest versions that pyproject.toml allows
	@$(PYTHON) tools/python_check.py
	@rm -rf build/constraints && mkdir -p build/constraints
	@$(PYTHON) -m venv build/constraints/venv
	@build/constraints/venv/bin/python -m pip install --quiet '.[cli,openai,pydantic-ai,zstd,dev]'
	@sed -n '/^#/p' constraints.txt > build/constraints/new.txt
	@build/constraints/venv/bin/python -m pip freeze --exclude playhead --exclude setuptools >> build/constraints/new.txt
	@mv build/constraints/new.txt constraints.txt
	@rm -rf build/constraints
	@printf 'constraints.txt is up to date; the next make installs it.\n'

.PHONY: clean
clean: ## Remove caches and build output; the virtual environment stays
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find playhead tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.PHONY: _pytest
_pytest: $(STAMP)
	@mkdir -p build/coverage && rm -f $(COVERAGE)
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} \
		$(PY) -m pytest -q -n $(WORKERS) --dist worksteal $(MARKS) --cov --cov-report= --cov-report=json $(PYTEST_ARGS)
ifeq "$(PYTEST_ARGS)" ""
	@$(PY) tools/coverage_gate.py $(COVERAGE) playhead/model playhead/views playhead/stores
endif

# An environment that was interrupted half-way, or whose Python is gone or too old, is made anew.
# The build backend comes first, pinned like all else: installing the project then needs no environment of its own.
$(STAMP): pyproject.toml constraints.txt
	@$(PY) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		$(PYTHON) tools/python_check.py && \
		printf 'Making %s with %s.\n' '$(VENV)' '$(PYTHON)' && \
		$(PYTHON) -m venv --clear $(VENV); }
	@printf 'Installing the pinned packages into %s.\n' '$(VENV)'
	@$(PY) -m pip install --quiet -c constraints.txt hatchling editables
	@$(PY) -m pip install --quiet -c constraints.txt --no-build-isolation -e '.[cli,openai,pydantic-ai,zstd,dev]'
	@pwd -P > $@

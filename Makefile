# Needs Python 3.11 or newer, git and make; everything else is installed into virtual environments in this folder.
#
## make try     install into .venv-try, index this project's own docs, ask them a question
## make test    every check: lint, types, tests (what .ci/run calls)
## make lint    style, formatting, import borders
## make types   static types of source, tests and benchmarks
## make docs    check the documentation against the code
## make smoke   build the package, install it alone, use it
## make bench   measure quality and speed, store the result in benchmarks/results
## make lock    resolve the dependencies anew (make lock LOCK_FLAGS=--upgrade for newer ones)
## make clean   remove what these commands made, except .venv

DEV := .venv
TRY := .venv-try
LOCK := .venv-lock
LOCK_FLAGS :=

# Tried by running them: a name on PATH can be a shim for a version that is not there.
PYTHON = $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$name" -c 'import sys, ensurepip, sqlite3, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$name" && break; done)
NO_PYTHON = scree needs Python 3.11 or newer with its venv and sqlite3 modules (on Debian and Ubuntu: python3-venv), \
	and found none; if yours has another name, say make PYTHON=/path/to/python
VENV = $(or $(PYTHON),$(error $(NO_PYTHON))) -m venv
PIP = -m pip --quiet --quiet --no-input --disable-pip-version-check
COMPILE = $(LOCK)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-annotate --no-header $(LOCK_FLAGS)

.PHONY: help try test lint types docs smoke bench lock clean

help:
	@sed -n 's/^## //p' Makefile

try: $(TRY)/installed
	@$(TRY)/bin/scree reindex --root .
	@printf '\n$$ scree search "which files are never indexed?"\n\n'
	@$(TRY)/bin/scree search --root . -k 1 "which files are never indexed?"
	@printf '\nTo opt a repository of yours in, run this in its folder:\n\n    "%s" init\n\n' "$(CURDIR)/$(TRY)/bin/scree"

test: lint types
	$(DEV)/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile

lint: $(DEV)/installed
	$(DEV)/bin/ruff check
	$(DEV)/bin/ruff format --check
	$(DEV)/bin/lint-imports --no-logo

types: $(DEV)/installed
	$(DEV)/bin/mypy

docs: $(DEV)/installed
	$(DEV)/bin/python -m pytest tests/test_documentation.py

smoke: $(DEV)/installed
	.ci/smoke $(DEV)/bin/python

bench: $(DEV)/installed
	$(DEV)/bin/python -m benchmarks

lock: $(LOCK)/bin/uv
	$(COMPILE) --output-file requirements/runtime.lock pyproject.toml
	$(COMPILE) --output-file requirements/dev.lock --constraints requirements/runtime.lock --group dev pyproject.toml

clean:
	rm -rf $(TRY) $(LOCK) .scree .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEV)/bin/python $(TRY)/bin/python $(LOCK)/bin/python:
	@$(VENV) $(@D)/..

$(DEV)/installed: requirements/dev.lock pyproject.toml | $(DEV)/bin/python
	@echo "Installing the development tools into $(DEV) ..."
	@$(DEV)/bin/python $(PIP) install --require-hashes --requirement requirements/dev.lock
	@$(DEV)/bin/python $(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(TRY)/installed: requirements/runtime.lock pyproject.toml $(shell find src -type f ! -name '*.pyc') | $(TRY)/bin/python
	@echo "Installing scree into $(TRY) ..."
	@$(TRY)/bin/python $(PIP) install --require-hashes --requirement requirements/runtime.lock
	@$(TRY)/bin/python $(PIP) install --no-deps --force-reinstall .
	@touch $@

$(LOCK)/bin/uv: | $(LOCK)/bin/python
	@$(LOCK)/bin/python $(PIP) install uv

# `make demo` and `make test` do all set-up on a machine that has Python 3.11 or newer, make and
# a package index. The virtual environment lives in .venv; a stamp file in it says that a set of
# extras is installed, and a change of pyproject.toml makes the stamp old.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
WORKERS ?= 2

# What `make test` runs: the examples in the docstrings, and all tests but those that need PyTorch,
# MuJoCo's kernels or a browser, which have targets of their own. `make test TESTS=tests/laws` runs less; ARGS go to pytest.
TESTS ?= src/ecliptic tests
PYTEST_TEST = -m pytest -n $(WORKERS) --doctest-modules -p tests.support.strict_jax \
    --ignore=tests/mjx --ignore=tests/site --ignore=tests/torch $(COVER) $(ARGS) $(TESTS)

# COVERAGE=1 counts the lines and branches that ran, and fails below the limit in pyproject.toml.
ifdef COVERAGE
COVER := --cov --cov-report=term-missing:skip-covered
endif

# One row a virtual environment: Python-JAX. `newest` is whatever the package index offers.
MATRIX := 3.11-0.9.0 3.11-0.10.2 3.12-0.11.2 3.13-0.9.0 3.13-0.10.2 3.13-newest

.PHONY: help
help:  ## Say what there is.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

# ------------------------------------------------------------------------------ for everybody

.PHONY: demo
demo: $(STAMPS)/demo  ## Train a network on handwritten digits, from nothing.
	$(BIN)/python examples/digits.py

.PHONY: test
test: $(STAMPS)/test  ## Run the examples in the docstrings, and all tests.
	$(BIN)/python $(PYTEST_TEST)

# ---------------------------------------------------------------------------- for contributors

.PHONY: test-mjx
test-mjx: $(STAMPS)/mjx  ## Run simulations of MJX with its warp kernels, on a CPU.
	$(BIN)/python -m pytest -p tests.support.strict_jax $(ARGS) tests/mjx

.PHONY: test-torch
test-torch: $(STAMPS)/torch  ## Compare layers with those of PyTorch.
	$(BIN)/python -m pytest -p tests.support.strict_jax $(ARGS) tests/torch

.PHONY: conformance
conformance: $(STAMPS)/test  ## Print how far Ecliptic is Equinox: names, programs, tests of others.
	$(BIN)/python -m conformance.report

.PHONY: doctest
doctest: $(STAMPS)/test  ## Run the examples in the docstrings alone.
	$(BIN)/python -m pytest --doctest-modules -p tests.support.strict_jax $(ARGS) src/ecliptic

.PHONY: lint
lint: $(STAMPS)/lint  ## Check style, complexity and form with ruff.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: format
format: $(STAMPS)/lint  ## Let ruff repair what it can.
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: layers
layers: $(STAMPS)/lint  ## Check that packages import lower layers only.
	$(BIN)/lint-imports

.PHONY: types
types: $(STAMPS)/lint $(STAMPS)/test  ## Check the types of src with pyright.
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

.PHONY: docs-check
docs-check: $(STAMPS)/test  ## Run the code in the documents, follow their links.
	$(BIN)/python -m pytest tests/meta/test_documents.py

.PHONY: docs
docs: $(STAMPS)/docs  ## Build the site in out/docs: runs the gallery, warnings are errors.
	$(BIN)/python -m sphinx -W --keep-going -b html -d out/doctrees $(ARGS) docs out/docs

.PHONY: docs-test
docs-test: docs  ## Look at the site in a browser (chromium of the distribution, or CHROMIUM=path).
	$(BIN)/python -m pytest tests/site

.PHONY: surface
surface: $(STAMPS)/test  ## Write the public names and signatures down anew.
	$(BIN)/python -m tests.support.surface

.PHONY: reference
reference: $(STAMPS)/test  ## Write the reference pages anew from the docstrings.
	$(BIN)/python -m tests.support.reference

.PHONY: bench
bench: $(STAMPS)/bench  ## Print the table of ratios, fail when a budget is passed.
	$(BIN)/python -m bench $(ARGS)

.PHONY: test-matrix
test-matrix: $(addprefix matrix-,$(MATRIX))  ## Run the tests under several versions of Python and JAX.

.PHONY: clean
clean:  ## Remove everything that make has made.
	rm -rf $(VENV) .venvs .cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf .coverage .coverage.* build dist out demo_output docs/gallery docs/pictures docs/reference

# ------------------------------------------------------------------------------------- set-up

# A candidate counts only if it runs, is new enough, and can make a virtual environment: a
# version manager leaves commands on the path that do not run, a distribution leaves out ensurepip.
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

$(STAMPS)/venv:
	@candidates="$${PYTHON:-python3 python3.13 python3.12 python3.11}"; chosen=; \
	for candidate in $$candidates; do \
	    if "$$candidate" -c '$(USABLE)' 2>/dev/null; then chosen="$$candidate"; break; fi; \
	done; \
	if [ -z "$$chosen" ]; then \
	    echo "make: none of these is a Python 3.11 or newer with venv and ensurepip:" >&2; \
	    for candidate in $$candidates; do \
	        echo "  $$candidate: $$("$$candidate" --version 2>/dev/null || echo 'does not run')" >&2; \
	    done; \
	    echo "Install one (for Debian: python3-venv too), or name it: make test PYTHON=/path/to/python" >&2; \
	    exit 1; \
	fi; \
	echo "Making $(VENV) with $$chosen, $$("$$chosen" --version)"; \
	"$$chosen" -m venv --clear $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/test $(STAMPS)/lint $(STAMPS)/demo $(STAMPS)/bench $(STAMPS)/docs $(STAMPS)/mjx $(STAMPS)/torch: pyproject.toml | $(STAMPS)/venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(@F)]'
	@touch $@

matrix-%:
	@python="$(firstword $(subst -, ,$*))"; jax="$(lastword $(subst -, ,$*))"; env=".venvs/$*"; \
	chosen=; \
	for candidate in "python$$python" "$$HOME"/.pyenv/versions/"$$python".*/bin/python; do \
	    if "$$candidate" -c '$(USABLE)' 2>/dev/null; then chosen="$$candidate"; break; fi; \
	done; \
	if [ -z "$$chosen" ]; then echo "make: no Python $$python for $@" >&2; exit 1; fi; \
	if [ ! -e "$$env/.installed" ] || [ pyproject.toml -nt "$$env/.installed" ]; then \
	    "$$chosen" -m venv --clear "$$env"; \
	    if [ "$$jax" = newest ]; then pin=jax; else pin="jax==$$jax"; fi; \
	    "$$env/bin/python" -m pip install --quiet --disable-pip-version-check \
	        --editable '.[test]' "$$pin"; \
	    touch "$$env/.installed"; \
	fi; \
	echo "== $$("$$env/bin/python" --version), JAX $$("$$env/bin/python" -c 'import jax; print(jax.__version__)')"; \
	"$$env/bin/python" $(PYTEST_TEST)

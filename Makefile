# Two commands on a fresh machine with Python 3.11 or newer, without root:  make tour   and   make test
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: tour test test-all quick parity browser docs lint bench clean

tour: .venv/.installed-models     ## the whole story as one page, tour/index.html
	$(BIN)/attnlab tour -o tour

test: .venv/.installed-dev        ## every test, with a few hundred damaged files
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not exhaustive"

test-all: test                    ## these, and what is slow: 10,000 damaged files
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m exhaustive

quick: .venv/.installed-dev       ## the tests that take a moment
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not slow and not exhaustive"

parity: .venv/.installed-parity   ## trained models against the original implementation, with torch and transformers
	$(BIN)/python -m pytest tests/parity

browser: .venv/.installed-dev     ## the pages in a headless Chromium, if there is one
	$(BIN)/python -m pytest tests/browser

docs: .venv/.installed-dev        ## the site, into docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

lint: .venv/.installed-dev        ## style and types
	$(BIN)/python -m ruff check src tests bench examples docs
	$(BIN)/python -m mypy

bench: .venv/.installed-bench     ## how fast it is beside NumPy, SciPy, torch, JAX and diffrax: ratios, also in bench.json
	$(BIN)/python bench/run.py --json bench.json

clean:                            ## everything that was made, .venv too
	rm -rf .venv tour docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "attnlab needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv

.venv/.installed-models: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[models]'
	touch $@

.venv/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch .venv/.installed-models $@

.venv/.installed-parity: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev,parity]'
	touch .venv/.installed-models .venv/.installed-dev $@

.venv/.installed-bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@

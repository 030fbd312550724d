# Two commands on a fresh machine with Python 3.11 or newer, without root:  make tour   and   make test
PYTHON ?= python3
BIN := .venv/bin
OLDEST := .venv-oldest/environment
WORKERS ?= 2
# AGAIN=1, which .ci/run gives: tests that fail are run once more, alone, because a busy machine may be late. Only where pytest
# ends with 1: after any other end (a file that cannot be read, a crash of pytest) some tests have not run at all.
ONCE_MORE := echo "What failed is run once more, alone. If it passes now, it depends on the clock: see the failure above."
# The tests start hundreds of processes. Without bytecode each of them compiles NumPy, matplotlib and attnlab once more.
unexport PYTHONDONTWRITEBYTECODE
tests = $(1) -m pytest -n $(WORKERS) $(2)$(if $(AGAIN), || { test $$? = 1 && $(ONCE_MORE) && \
	$(1) -m pytest -n 0 $(2) --last-failed --last-failed-no-failures none; })

.PHONY: tour test test-all test-slow test-oldest parity browser docs lint bench clean

tour: .venv/.installed-models     ## the whole story as one page, tour/index.html
	$(BIN)/attnlab tour -o tour

test: .venv/.installed-dev        ## every part of attnlab, in a few minutes
	$(call tests,$(BIN)/python,-m "not slow" $(TESTS))
	@echo "make test-all adds the tests marked slow (all frozen limits, every shape of a kernel, 10,000 damaged files, the tour from"
	@echo "the wheel), and the oldest versions that are allowed. .ci/run adds parity, the pages in a browser, and the documentation."

test-slow: .venv/.installed-dev   ## what `make test` leaves out: all frozen limits, every shape, 10,000 damaged files, the wheel
	$(call tests,$(BIN)/python,-m slow $(TESTS))

test-all: test test-slow          ## both, then test-oldest
	$(MAKE) test-oldest

test-oldest: $(OLDEST)/.installed ## the tests of `make test`, with Python 3.11 and the oldest version of each dependency that is allowed
	$(OLDEST)/bin/python -m pytest tests/oldest
	$(call tests,$(OLDEST)/bin/python,-m "not slow" $(TESTS))

parity: .venv/.installed-parity   ## trained models against the original implementation, with torch and transformers
	$(call tests,$(BIN)/python,tests/parity)

browser: .venv/.installed-dev     ## the pages in a headless Chromium, if there is one
	$(call tests,$(BIN)/python,tests/browser)

docs: .venv/.installed-dev        ## the site, into docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

lint: .venv/.installed-dev        ## style and types
	$(BIN)/python -m ruff check src tests bench examples docs
	$(BIN)/python -m mypy

bench: .venv/.installed-bench     ## how fast it is beside NumPy, SciPy, torch, JAX and diffrax: ratios, also in bench.json
	$(BIN)/python bench/run.py --json bench.json

clean:                            ## everything that was made, .venv and .venv-oldest too
	rm -rf .venv .venv-oldest tour docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "attnlab needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv

# pip says what it does: a newcomer must see at once that something happens. Python compiles what is imported, when it is
# imported; pip would compile everything first, which takes longer than the rest of the installation.
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --no-compile --editable

.venv/.installed-models: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[models]'
	touch $@

.venv/.installed-dev: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[dev]'
	touch .venv/.installed-models $@

.venv/.installed-parity: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[dev,parity]'
	touch .venv/.installed-models .venv/.installed-dev $@

.venv/.installed-bench: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[bench]'
	touch $@

# uv finds the oldest versions, which pip cannot; it also gets Python 3.11 where that is missing. Its settings are its own:
# it does not read those of pip. Wheels only: an old version without one would be built from its source.
$(OLDEST)/.installed: pyproject.toml
	rm -rf .venv-oldest
	$(PYTHON) -m venv .venv-oldest/uv
	.venv-oldest/uv/bin/python -m pip install --disable-pip-version-check uv
	.venv-oldest/uv/bin/uv venv --seed --python 3.11 $(OLDEST)
	.venv-oldest/uv/bin/uv pip install --python $(OLDEST)/bin/python --resolution lowest-direct \
		--only-binary :all: --no-binary attnlab --editable '.[dev]'
	touch $@

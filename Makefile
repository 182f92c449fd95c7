PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

SHARED := $(or $(AWATT_SHARED),../shared)

.PHONY: demo test test-ray lint check train-bundled clean

demo: .venv/core  ## the main job on the bundled sample, with the core packages only
	$(BIN)/awatt demo

test: .venv/dev  ## the test suite
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q

test-ray: .venv/dev  ## the tests of the Ray engine, which is 240 MB more
	$(INSTALL) --editable '.[ray]'
	$(BIN)/python -m pytest -q tests/scale

lint: .venv/dev  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

check: test lint  ## what CI runs

train-bundled: .venv/dev  ## the model that the package ships with, from AWATT_SHARED, in about ten minutes
	test -d datasets || $(BIN)/awatt data build $(SHARED)/data/yelp_aspect --fewasp $(SHARED)/data/fewasp --out datasets
	$(BIN)/awatt train-detector --data datasets --out src/awatt/aspect_model/weights

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable .
	touch $@

.venv/dev: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable '.[dev]'
	touch $@ .venv/core

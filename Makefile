PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

SHARED := $(or $(AWATT_SHARED),../shared)

.PHONY: demo test test-failed test-ray test-lowest test-lowest-core lint check docs notebooks release-check audit locked train-bundled clean

demo: .venv/core  ## the main job on the bundled sample, with the core packages only
	$(BIN)/awatt demo

test: .venv/dev  ## the test suite
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q

test-failed: .venv/dev  ## only the tests that failed last time, one after the other
	$(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none

test-ray: .venv/dev  ## the tests of the Ray engine, which is 240 MB more
	$(INSTALL) --editable '.[ray]'
	$(BIN)/python -m pytest -q tests/scale

lint: .venv/dev  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test-lowest:  ## the lowest declared versions: the core with every Python that is here, and every extra
	$(PYTHON) tools/test_lowest.py all

test-lowest-core:  ## the same for the core and one Python
	$(PYTHON) tools/test_lowest.py core

check: test lint test-lowest-core  ## what CI runs

docs: .venv/docs  ## the site, in site/; any warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

notebooks: .venv/dev  ## run the notebooks and store what they show
	$(BIN)/python tools/notebooks.py docs/notebooks/*.ipynb

release-check:  ## what must hold before a release: build, clean install, README, metadata, files
	$(PYTHON) tools/release_check.py

audit:  ## known vulnerabilities of the dependencies; skipped where pip-audit or its database is out of reach
	$(PYTHON) tools/audit.py

locked: | .venv/bin/python  ## all of our environment, every file but torch checked by its hash; then test, lint, docs as usual
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement locked.txt
	$(INSTALL) --no-build-isolation --editable '.[dev,docs,ray]'
	touch .venv/core .venv/dev .venv/docs

train-bundled: .venv/dev  ## the models that the package ships with, from AWATT_SHARED; vectors and student stay as they are
	test -d datasets || $(BIN)/awatt data build $(SHARED)/data/yelp_aspect --fewasp $(SHARED)/data/fewasp --out datasets
	$(BIN)/awatt train-detector --data datasets --out src/awatt/aspect_model/weights/fast --set plain_tasks=0
	$(BIN)/awatt train-detector --data datasets --out src/awatt/aspect_model/weights/accurate --encoder student --slim \
		--set plain_tasks=2000 --set tasks=3000

clean:
	rm -rf .venv .venv-lowest build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable .
	touch $@

.venv/dev: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable '.[dev]'
	touch $@ .venv/core

.venv/docs: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable '.[docs]'
	touch $@

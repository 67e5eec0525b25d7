# On a fresh machine with Python 3.11+, make and git: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DATA := $(or $(ACEFRAUD_DATA),../shared/data)
# A file's tests run on one worker, so that what its fixtures train is trained once. The long tests share less, and some of
# their files take minutes: a worker that has nothing left to do takes tests from the other.
WORKERS := -n 2 --dist loadfile --no-loadscope-reorder
LONG_WORKERS := -n 2 --dist worksteal
SLOWEST := --durations=20 --durations-min=1
COVERAGE := out/coverage.json
# Compiled modules are kept, whatever the caller's environment says: without them every start compiles the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo check test test-wide test-long test-llm format hooks bench bench-quality bench-tuned bench-large bench-parts docs notebook build lock clean

help:  ## list the targets (the default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST) | sed 's/\$$\$$/$$/g'

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "acefraud needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(INSTALLED)  ## compare the three modes on the shipped synthetic world; report in out/demo
	$(BIN)/acefraud compare --seeds 3 --report out/demo

test: $(INSTALLED)  ## the tests to run while you work; some minutes
	$(BIN)/pytest $(WORKERS) $(SLOWEST) -m 'not long and not wide'

test-wide: $(INSTALLED)  ## all but the long tests, with branch coverage: real servers, databases, benchmarks, docs, conformance too
	mkdir -p out
	$(BIN)/python -W 'ignore:Unable to activate' -m slipcover --json --out $(COVERAGE) -m pytest $(WORKERS) $(SLOWEST) -m 'not long'
	$(BIN)/python -m slipcover --merge $(COVERAGE) --out $(COVERAGE) --fail-under 95

test-long: $(INSTALLED)  ## kill loops, load, and many examples for every property; FULL=1 repeats them four times as often
	$(if $(FULL),ACEFRAUD_TEST_FULL=1 )$(BIN)/pytest $(LONG_WORKERS) $(SLOWEST) -m 'long or hypothesis' --hypothesis-profile=many tests

test-llm: $(INSTALLED)  ## the three modes on a real small model, installed and served on loopback; an hour or two
	$(BIN)/python -m benchmarks.real_model $(if $(LLM),--model $(LLM))

check: $(INSTALLED)  ## ruff, mypy --strict and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED)  ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(INSTALLED)  ## run ruff and mypy before every commit
	$(BIN)/python -m pip install --quiet pre-commit
	$(BIN)/pre-commit install

bench: $(INSTALLED)  ## measure speed, and the similarity thresholds of the embedders
	$(BIN)/python -m benchmarks speed --out out/speed
	$(BIN)/python -m benchmarks.embedder_threshold

bench-quality: $(INSTALLED)  ## measure the playbook beside other learners, on the datasets of $$ACEFRAUD_DATA
	$(BIN)/python -m benchmarks quality $(DATA) --mappings benchmarks/mappings

bench-tuned: $(INSTALLED)  ## measure the playbook beside tuned LightGBM and CatBoost, which it installs; some hours
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,tuned]'
	$(BIN)/python -m benchmarks tuned $(DATA) --mappings benchmarks/mappings

bench-large: $(INSTALLED)  ## measure `acefraud train` on 1.8 million rows beside a fit of LightGBM
	$(BIN)/python -m benchmarks train $(firstword $(wildcard $(DATA)/card_handbook/data.*) $(DATA)/card_handbook/data.parquet) --mapping benchmarks/mappings/card_handbook.toml

bench-parts: $(INSTALLED)  ## measure training in parts, in processes and on Dask, on 1.8 million rows, and whether all give one playbook
	$(BIN)/python -m benchmarks parts $(DATA)/card_handbook/data.parquet --mapping benchmarks/mappings/card_handbook.toml

docs: $(INSTALLED)  ## write the reference pages and the README's transcript from the code
	$(BIN)/python docs/generate.py

notebook: $(INSTALLED)  ## run docs/notebook.ipynb, the introduction for users of pandas and scikit-learn, and keep its outputs
	$(BIN)/python docs/execute_notebook.py

build: $(INSTALLED)  ## build the wheel and the source archive into dist/
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build

lock: $(INSTALLED)  ## choose the versions in constraints.txt again
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --no-annotate --no-emit-package acefraud --upgrade --output-file constraints.txt

clean:  ## delete the environment and everything that was built
	rm -rf $(VENV) out build dist

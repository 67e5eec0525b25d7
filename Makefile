# Two commands on a fresh machine with Python 3.11+, make and git: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DATA := $(or $(ACEFRAUD_DATA),../shared/data)

.PHONY: demo test test-long lint bench bench-quality bench-large test-llm docs lock clean

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "acefraud needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(INSTALLED)  ## the three modes on the shipped synthetic world
	$(BIN)/acefraud compare --seeds 3 --report out/demo

test: lint  ## everything but the long ones
	$(BIN)/pytest -n 2 -m 'not long' --cov --cov-report=term --cov-fail-under=90

test-long: $(INSTALLED)  ## kill loops, load and soak
	$(BIN)/pytest -n 2 -m long tests

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)  ## figures that docs/ quotes: speed, and the thresholds of the embedders
	$(BIN)/python -m benchmarks speed --out out/speed
	$(BIN)/python -m benchmarks.embedder_threshold

bench-quality: $(INSTALLED)  ## the playbook beside other learners, on the datasets of $$ACEFRAUD_DATA
	$(BIN)/python -m benchmarks quality $(DATA) --mappings benchmarks/mappings

bench-large: $(INSTALLED)  ## time and memory of `acefraud train` on 1.8 million rows, beside a fit of LightGBM
	$(BIN)/python -m benchmarks train $(firstword $(wildcard $(DATA)/card_handbook/data.*) $(DATA)/card_handbook/data.parquet) --mapping benchmarks/mappings/card_handbook.toml

test-llm: $(INSTALLED)  ## the three modes on a real small model, installed and served on loopback; an hour or two
	$(BIN)/python -m benchmarks.real_model $(if $(LLM),--model $(LLM))

docs: $(INSTALLED)  ## the reference pages, from the code itself
	$(BIN)/python docs/generate.py

lock: $(INSTALLED)  ## choose versions anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --no-annotate --no-emit-package acefraud --upgrade --output-file constraints.txt

clean:
	rm -rf $(VENV) out

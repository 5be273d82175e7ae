# make demo: train, compare and explain in a few minutes. make test, make check: what CI runs.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check torture clean

demo: .venv/installed
	$(BIN)/fathomer train demo --out build/demo --overwrite
	$(BIN)/fathomer evaluate build/demo demo
	$(BIN)/fathomer explain build/demo "Nobody can say that the hotel wasn't clean." \
		--html build/demo.html

# Tests start many processes, which share compiled modules unless the environment forbids it.
test: .venv/installed
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --maxprocesses 4

# The attacks of docs/reliability.md; SCALE=0.1 makes a tenth of the trials.
SCALE ?= 1
torture: .venv/installed
	rm -rf build/torture
	FATHOMER_TORTURE=$(SCALE) timeout 900 $(BIN)/python -m pytest -n 2 -m torture tests/torture
	$(BIN)/python -m tests.torture.report

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist

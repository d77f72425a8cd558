# Every target works on a fresh machine: it makes .venv and installs what it needs on first use.
PYTHON ?= python3
BIN := .venv/bin
NATIVE := CMakeLists.txt $(wildcard native/*pp native/kernels/*)
# pip's own notices are not about this project; its errors still come through.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: demo test lint bench fuzz clean

.venv/.created:
	$(PYTHON) -m venv .venv
	touch $@

.venv/.demo: .venv/.created pyproject.toml $(NATIVE)
	$(PIP) -e .
	touch $@

.venv/.test: .venv/.created pyproject.toml $(NATIVE)
	$(PIP) -e '.[test]'
	touch $@

.venv/.bench: .venv/.created pyproject.toml $(NATIVE)
	$(PIP) -e '.[bench]'
	touch $@

demo: .venv/.demo
	$(BIN)/forebay demo

lint: .venv/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests start hundreds of Python processes, and compiled modules halve what each of them takes to start.
test: lint
	PYTHONDONTWRITEBYTECODE= TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= $(BIN)/pytest -n 2 --dist worksteal

bench: .venv/.bench
	TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= $(BIN)/python -m bench $(ARGS)

# SECONDS of hostile bytes for the native kernels, under sanitizers (libFuzzer if there is clang, else a mutator), then
# as many of hostile files for the readers (Atheris if it is installed, else a mutator).
fuzz: .venv/.test
	cd tests && ../$(BIN)/python -m native.fuzz $(or $(SECONDS),600)
	cd tests && ../$(BIN)/python -m fuzzing.readers $(or $(SECONDS),600)

clean:
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Start with `make demo`, `make test` or `make check`.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || command -v python)
VENV ?= .venv
# Another build of torch, for example with CUDA: make demo TORCH='torch==2.13.0 --index-url URL'
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.dev
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q
RUNS ?= runs/demo
# Idle threads sleep: spinning ones slow down other processes.
export OMP_WAIT_POLICY ?= PASSIVE
PYTEST := $(BIN)/python -m pytest -n 2

.PHONY: demo test check docs fuzz storm soak lint types imports install clean
KILLS ?= 1000
SAMPLES ?= 10000000

demo: $(READY)  ## AGD-FD, fine-tuning and the control on digits; prints the path of the report
	$(BIN)/sterad study demo --out $(RUNS)
	@echo
	@echo "Report:"
	@$(BIN)/sterad report $(RUNS) --quiet

test: $(DEV)  ## the tests, under five minutes on two cores
	$(PYTEST) -m "not slow"

fuzz: $(DEV)  ## 20,000 mutated files for each reader; STERAD_FUZZ_CASES and STERAD_FUZZ_SEED change that
	STERAD_FUZZ_CASES=$${STERAD_FUZZ_CASES:-20000} $(PYTEST) tests/fuzz -rA --durations=0

docs: $(DEV)  ## the documentation site, into build/site; needs no network
	$(BIN)/python -m docs.site build/site

check: lint types imports test  ## lint, types, import contract and all tests
	$(PYTEST) -m slow

storm: $(DEV)  ## kill runs at random moments and compare their results: make storm KILLS=1000
	$(BIN)/python -m tests.storm --kills $(KILLS)

soak: $(DEV)  ## memory and speed over 10 million samples: make soak SAMPLES=10000000
	$(BIN)/python -m tests.storm.soak --samples $(SAMPLES)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)
	$(BIN)/mypy

imports: $(DEV)
	$(BIN)/lint-imports

install: $(DEV)  ## the environment with the development tools

$(READY): pyproject.toml reproduction/pyproject.toml requirements/py311.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sterad needs Python 3.11 or newer and $(PYTHON) is older: make PYTHON=python3.11"; exit 2; }
	@# Some systems ship venv without ensurepip; then their own pip installs pip.
	$(PYTHON) -m venv $(VENV) 2>/dev/null || \
	  { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	    $(PYTHON) -m pip --python $(BIN)/python install pip; }
	$(PIP) $(TORCH)
	$(PIP) -c requirements/py311.txt -e '.[report]'
	$(PIP) --no-deps -e reproduction
	@touch $(READY)

$(DEV): $(READY)  # all extras, and the tools of tests and checks
	$(PIP) -c requirements/py311.txt -e '.[dev]'
	@touch $(DEV)

clean:  ## remove the environment; runs stay
	rm -rf $(VENV)

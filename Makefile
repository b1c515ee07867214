# Every target prepares what it needs: uv in .tools, the locked packages and remit itself in .venv.
# The stamps make a second call cost nothing. Needed beforehand: Python 3.11 or later, git and make.

PYTHON ?= python3
UV_VERSION := 0.13.7

UV := .tools/bin/uv
UV_STAMP := .tools/.uv-$(UV_VERSION)
BIN := .venv/bin
READY := .venv/.ready

SOURCES := src tests scripts examples $(if $(wildcard benchmarks/*.py),benchmarks)
# Three workers keep the two cores of the smallest machine busy while some tests wait.
PYTEST := $(BIN)/python -m pytest --quiet --numprocesses=3 --dist=worksteal
# The two halves of the unit tests, which take about as long as each other; whatever is new belongs to the second.
FIRST := $(addprefix tests/unit/,adapters agents tool)
SECOND := $(filter-out $(FIRST) %__pycache__,$(patsubst %/,%,$(wildcard tests/unit/*/)) $(wildcard tests/unit/test_*.py))
# Only what a stage runs is read for it: collecting all tests takes longer than many a folder of them.
UNMEASURED := $(filter-out tests/unit/ tests/__pycache__/,$(wildcard tests/*/)) $(shell grep -rl --include='*.py' mark.unmeasured tests/unit)
WITH_MODEL := $(shell grep -rl --include='test_*.py' mark.model tests)
CHECKED := $(wildcard tests/tidy tests/unit tests/property tests/simulation)

SEEDS_CHECK := 50
SEEDS_TEST := 400
SEEDS_SOAK := 10000
KILLS_SOAK := 1000

# Rewriting the asserts of some four hundred test files takes longer than running most of them; once is enough.
export PYTHONDONTWRITEBYTECODE :=
# The interpreter is the one that called; nothing fetches another.
export UV_PYTHON_DOWNLOADS := never
# Where the machine keeps certificates of its own, a company's proxy is among them; uv alone would not know it.
CERTIFICATES := $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem)
export UV_SYSTEM_CERTS ?= $(if $(CERTIFICATES),true,false)

.PHONY: run check test soak bench peers docs requirements format lock clean static quick measured first-half second-half
.DEFAULT_GOAL := check

run: $(READY)
	@$(BIN)/remit demo

# Types are checked beside the tests, some of which wait.
check: $(READY)
	@$(MAKE) --no-print-directory --jobs=2 static quick

quick: $(READY)
	@echo "==> tests ($(SEEDS_CHECK) seeds)"
	@REMIT_SIMULATION_SEEDS=$(SEEDS_CHECK) REMIT_EXAMPLES=quick $(PYTEST) -m "not slow and not soak and not model" $(CHECKED)

# The type checker has one core to itself at best, so the first tests run beside it; what each says comes in one piece.
test: $(READY)
	@scripts/system_tools.sh
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target static measured
	@echo "==> tests ($(SEEDS_TEST) seeds)"
	@REMIT_SIMULATION_SEEDS=$(SEEDS_TEST) $(PYTEST) -m "unmeasured and not soak and not model" $(UNMEASURED)
	@echo "==> tests with the local model"
	@$(BIN)/python -m pytest --quiet -m "model and not soak" $(WITH_MODEL)
	@$(MAKE) --no-print-directory requirements

soak: $(READY)
	@echo "==> simulation ($(SEEDS_SOAK) seeds)"
	@REMIT_SIMULATION_SEEDS=$(SEEDS_SOAK) $(PYTEST) tests/simulation
	@echo "==> laws, with more examples"
	@REMIT_EXAMPLES=thorough $(PYTEST) tests/property
	@echo "==> kills at random times ($(KILLS_SOAK))"
	@REMIT_RANDOM_KILLS=$(KILLS_SOAK) $(PYTEST) -m "soak and not model" tests/e2e tests/authority tests/unit
	@echo "==> the local model, all counts"
	@$(BIN)/python -m pytest --quiet -m "soak and model" -s tests

bench: $(READY)
	@$(BIN)/python -m benchmarks

# Other frameworks for `make bench`, each in an environment of its own: their newest releases, and nothing of our lock.
PEERS := agno:agno pydantic_ai:pydantic-ai-slim
peers: $(UV_STAMP)
	@for peer in $(PEERS); do \
		echo "==> $${peer#*:}"; \
		$(UV) venv --quiet --allow-existing --python $(PYTHON) .peers/$${peer%%:*} && \
		$(UV) pip install --quiet --upgrade --python .peers/$${peer%%:*}/bin/python $${peer#*:} || exit 1; \
	done

# The documents that are made from the code; a test fails while a stored one is stale.
docs: $(READY)
	@echo "==> docs"
	@$(BIN)/python -m scripts.generate_docs

requirements: $(READY)
	@echo "==> requirements"
	@$(BIN)/python scripts/requirements.py

# Repairs what a tool can repair; `make check` reports the rest.
format: $(READY)
	@$(BIN)/ruff check --quiet --fix --exit-zero $(SOURCES)
	@$(BIN)/ruff format --quiet $(SOURCES)

static: $(READY)
	@echo "==> format"
	@$(BIN)/ruff format --quiet --check $(SOURCES)
	@echo "==> lint"
	@$(BIN)/ruff check --quiet $(SOURCES)
	@echo "==> types"
	@$(BIN)/mypy --no-error-summary $(SOURCES)
	@echo "==> imports"
	@report=$$($(BIN)/lint-imports --no-logo) || { echo "$$report"; exit 1; }

# Coverage counts unit tests only: what a simulation happens to touch is not thereby tested.
measured: first-half second-half
	@echo "==> coverage"
	@$(BIN)/python scripts/coverage_gate.py .coverage.first.json .coverage.second.json

COUNTED := $(BIN)/python -m pytest --quiet -m "not model and not soak and not unmeasured"
first-half: $(READY)
	@echo "==> unit tests, first half"
	@REMIT_COVERAGE=.coverage.first.json $(COUNTED) $(FIRST)

second-half: $(READY)
	@echo "==> unit tests, second half"
	@REMIT_COVERAGE=.coverage.second.json $(COUNTED) $(SECOND)

# Keeps the pinned versions that still fit; `make lock UPGRADE=--upgrade` takes the newest.
lock: $(UV_STAMP)
	@echo "==> requirements.lock"
	@$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		--all-extras --group dev --group weights --group web $(UPGRADE) --output-file requirements.lock pyproject.toml

clean:
	@rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* build dist
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV_STAMP):
	@echo "==> uv $(UV_VERSION)"
	@$(PYTHON) -m venv --clear .tools
	@.tools/bin/python -m pip install -qq --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(READY): requirements.lock pyproject.toml | $(UV_STAMP)
	@echo "==> environment"
	@test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) .venv
	@$(UV) pip sync --quiet --require-hashes --python $(BIN)/python requirements.lock
	@$(UV) pip install --quiet --no-deps --no-build-isolation --python $(BIN)/python --editable .
	@touch $@

# README's two commands are `make demo` and `make test`; each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One process per core, each with one thread, so that they do not wait for each other; who has done
# its half takes from what is left of the other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -q --numprocesses auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help venv browser redis demo demo-live test test-slow test-oldest check format bench clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(READY) ## create .venv with the package and all its extras

$(READY): pyproject.toml lab/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,dev]' --editable lab
	touch $(READY)

demo: $(READY) ## simulate a world, compare three ways to fuse with a tuned formula, write a page
	$(BIN)/harmonrank demo

demo-live: $(READY) ## run the closed loop: platform, stream, registry, service, an upstream swap
	$(BIN)/python examples/live_loop.py

# The report's page is opened in Debian's Chromium. It is installed where root, or a sudo that asks
# nothing, may do so; elsewhere the test that needs it says so and is skipped.
browser: ## install Chromium for the test of the HTML report, where that is allowed
	@{ command -v chromium && command -v chromedriver; } >/dev/null || { \
		as=; [ "$$(id -u)" = 0 ] || as="sudo -n"; \
		$$as apt-get update -qq && \
		$$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver; \
	} >/dev/null 2>&1 || echo "Chromium is not installed and cannot be; its test will be skipped."

# Streams are tested with a real Redis from Debian's package, likewise.
redis: ## install redis-server for the tests of streams, where that is allowed
	@command -v redis-server >/dev/null || { \
		as=; [ "$$(id -u)" = 0 ] || as="sudo -n"; \
		$$as apt-get update -qq && \
		$$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server; \
	} >/dev/null 2>&1 || echo "redis-server is not installed and cannot be; its tests will be skipped."

test: $(READY) browser redis ## all tests but the slow ones
	$(PYTEST)

test-slow: $(READY) ## the tests that take minutes; their counts are kept
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt schemathesis \
		|| echo "schemathesis could not be installed; its test will be skipped."
	$(PYTEST) -m slow --tally benchmarks/results/torture.json

# The lower bounds of pyproject.toml are promises, which these tests keep. What checks the code itself
# needs newer packages and is left out.
OLDEST := .venv-oldest
test-oldest: ## the main job and what it stands on, with the oldest versions that are allowed
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt \
		--editable '.[all]' --editable lab pytest hypothesis scikit-learn scipy selenium
	OMP_NUM_THREADS=1 $(OLDEST)/bin/pytest -q tests/data tests/metrics tests/support tests/registry \
		tests/fusion/test_every_method.py tests/cli/test_own_log.py tests/export/test_onnx.py

check: $(READY) ## style, types and import direction
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## let ruff mend what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Peers are never dependencies of the package, so they have a .venv of their own.
BENCH_VENV := .venv-bench
BENCH_BIN := $(BENCH_VENV)/bin
PIP := $(BENCH_BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
# A peer that cannot be installed is left out of the tables.
ABSENT = || echo "$(1) could not be installed; it is left out."

$(BENCH_VENV)/.ready: pyproject.toml constraints.txt
	test -x $(BENCH_BIN)/python || $(PYTHON) -m venv $(BENCH_VENV)
	$(PIP) --editable '.[serve,torch]' --editable lab
	$(PIP) fastapi $(call ABSENT,FastAPI)
	$(PIP) scikit-learn $(call ABSENT,scikit-learn)
	$(PIP) onnxruntime onnx onnxscript $(call ABSENT,ONNX Runtime)
	$(PIP) tqdm pandas && $(PIP) --no-deps libauc $(call ABSENT,LibAUC)
	$(PIP) setuptools wheel && PATH=/usr/bin:/bin $(PIP) --no-build-isolation torchsort $(call ABSENT,torchsort)
	touch $@

bench: $(BENCH_VENV)/.ready ## time ours against its peers; write benchmarks/RESULTS.md
	$(BENCH_BIN)/harmonrank lab bench all --json benchmarks/results/bench.json
	$(BENCH_BIN)/python benchmarks/tables.py

clean: ## remove .venv and caches
	rm -rf $(VENV) $(BENCH_VENV) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src lab tests -name __pycache__ -prune -exec rm -rf {} +

# Every target sets up .venv by itself when it is missing or stale; see tools/setup_venv.py.
#   make demo PYTHON=python3.12     to name the interpreter

PYTHON ?= python3
# Several processes read the tests, and later ones find the compiled files.
export PYTHONDONTWRITEBYTECODE :=
IN_VENV := .venv/bin/python -m
# Three at a time, because many tests wait. Tests on the real model run alone: it uses all cores.
SIDE_BY_SIDE := $(IN_VENV) pytest -n 3
REAL := tests/real integrations/llama-index/tests/test_real.py
HERE := not real and not documentation and not packaging
# All tests of the other distributions are marked slow, and to collect them takes long.
QUICK := tests integrations/langchain/tests

.PHONY: help demo test check lint quick slow real documentation packaging site bench clean before-tests env-run env-dev weights

help:
	@echo 'make demo    watch a guarded chain answer questions, on local models alone (fetches them once, 1.1 GB)'
	@echo 'make test    run the tests, those on the real local model too (20 to 45 minutes on two cores)'
	@echo 'make check   lint, types, which room imports which, the quick tests'
	@echo 'make quick   the quick tests alone (3 minutes)'
	@echo 'make documentation  run the notebooks, the demonstration, and the code of the README and the pages'
	@echo 'make packaging  build the distributions and install them into environments of their own'
	@echo 'make site    build the documentation into site/, strictly; open site/index.html by a web server'
	@echo 'make bench   measure time and memory, side by side in one run (docs/performance.md)'
	@echo 'make clean   remove .venv and what tools left behind (the model stays)'

demo: env-run
	@$(IN_VENV) demur models pull
	@$(IN_VENV) demur demo

# The quick tests run once in one run of make, also if several targets need them.
test: before-tests quick slow real

before-tests: env-dev
	@$(IN_VENV) tools.before_tests

check: lint quick

lint: env-dev
	$(IN_VENV) ruff check .
	$(IN_VENV) ruff format --check .
	$(IN_VENV) mypy
	.venv/bin/lint-imports
	.venv/bin/lint-imports --config integrations/llama-index/pyproject.toml

quick: env-dev
	$(SIDE_BY_SIDE) --dist worksteal -m 'not slow and not browser and $(HERE)' $(QUICK)

slow: env-dev
	$(SIDE_BY_SIDE) --dist loadgroup -m '(slow or browser) and $(HERE)'

# Each process draws a secret for the delimiters around judged texts, and a small model judges a
# little differently with each. With a given secret the model is asked the same every time.
real: env-dev weights
	DEMUR_SECRET=tests $(IN_VENV) pytest -m 'real and not documentation' $(REAL)

documentation: env-dev weights
	DEMUR_SECRET=tests $(IN_VENV) pytest -m documentation $(REAL) tests/exemplars tests/documentation

site: env-dev
	$(IN_VENV) tools.site

packaging: env-dev weights
	$(IN_VENV) pytest -n 2 --dist loadfile tests/packaging

bench: env-dev
	$(IN_VENV) bench.import_time
	$(IN_VENV) bench.scheduling
	$(IN_VENV) bench.guard
	$(IN_VENV) bench.observe
	$(IN_VENV) bench.log
	$(IN_VENV) bench.report
	$(IN_VENV) bench.fewl
	$(IN_VENV) bench.fewl_inline
	$(IN_VENV) bench.exemplars
	$(IN_VENV) bench.reverse_validation
	$(IN_VENV) bench.tails
	$(IN_VENV) bench.ray_scoring --rows 3000 --workers 2
	$(IN_VENV) bench.chroma_scale
	$(IN_VENV) bench.capacity
	$(IN_VENV) peers.speed --peers demur

clean:
	rm -rf .venv site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

env-run env-dev: env-%:
	@$(PYTHON) tools/setup_venv.py $*

# The tests on the real model skip, and say so, where its weights cannot be had.
weights: env-dev
	@$(IN_VENV) demur models pull || echo '*** No local model: the tests marked "real" WILL BE SKIPPED. ***'

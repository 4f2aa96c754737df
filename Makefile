# bipedsim on a machine with python3 (3.10 to 3.14) and make, and nothing else. `make help` lists what there is.
# With ROS 2 installed, colcon builds the package instead: see docs/development.md.

PYTHON ?= python3
PYTEST_ARGS ?=
BIN := .venv/bin

# A sourced ROS or another virtual environment must not leak into .venv: its libraries are of other versions. The last
# name is the guard of the ROS wheels: inherited, it keeps them from finding their libraries.
unexport PYTHONHOME PYTHONPATH LD_LIBRARY_PATH AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE
# Set in many images of containers: every process would compile every library anew, most of its time to start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help python setup demo test test-long test-all test-bounds lint format docs wheel release-check lock clean
# Installs what setup.py asks for, with the extras named behind it; at once when they are there.
SETUP = '$(PYTHON)' tools/setup_venv.py

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

python:
	@command -v '$(PYTHON)' > /dev/null || { \
	    echo "make: no $(PYTHON) found. Mend it with: sudo apt install python3 python3-venv" >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' || { \
	    echo "make: $$('$(PYTHON)' --version 2>&1) does not fit, bipedsim needs 3.10 to 3.14. Name another, as in" >&2; \
	    echo "    make PYTHON=python3.12 setup" >&2; exit 1; }

setup: python ## install everything, pinned, into .venv (again only when requirements change)
	@$(SETUP)

demo: setup ## a robot stands and squats for 12 s; the forces under its feet land in runs/demo
	@$(BIN)/bipedsim up --demo

# Before all tests, where a source is new or the cache is empty: kernels, since a node that has to compile its own keeps
# a test waiting, and what pytest makes of the test files, which every worker would make for itself. The mark is in the
# cache, so that it goes with it.
KERNELS := $(or $(NUMBA_CACHE_DIR),bipedsim/numerics/__pycache__/kernels)
$(KERNELS)/warm: $(wildcard .venv/setup.json) $(shell find bipedsim bipedsim_ros bipedsim_studies test -name '*.py')
	@$(BIN)/python -m pytest --collect-only -q > /dev/null 2>&1 & $(BIN)/bipedsim warmup && wait
	@mkdir -p $(@D) && touch $@

# Of the studies, those folders whose tests need no extra; see test/conftest.py.
STUDIES = $(addprefix --ignore=,$(filter-out test/studies/study test/studies/score,$(wildcard test/studies/*)))
WARM = $(if $(PYTEST_ARGS),,$(MAKE) --no-print-directory $(KERNELS)/warm)
# Two workers a core: tests of nodes wait for topics and clocks part of their time, and each worker imports everything.
# nproc counts one core where OMP_NUM_THREADS is 1, as bipedsim likes it.
ALL_CORES = --numprocesses $(shell expr 2 \* $$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)) --dist worksteal
# Every worker imports all files that it collects from. Of each study, `ci` marks a test or two.
LONG = $(shell grep -rlE --include='test_*.py' 'pytest.mark.(long|ci)' test)
# pytest's exit code where nothing was selected.
NONE = || { code=$$?; [ $$code -ne 5 ] || echo 'make: no test is called so; `.venv/bin/python -m pytest --collect-only -q` lists them' >&2; exit $$code; }

test: python ## run the tests of simulator and ROS, some minutes; PYTEST_ARGS="-k name" picks some
	@$(SETUP) test
	@$(WARM)
	@$(BIN)/python -m pytest $(ALL_CORES) -m "not long and not slow and not studies" $(STUDIES) $(PYTEST_ARGS) $(NONE)

test-long: python ## run those that take one to ten seconds of one core each, and some of studies; CI runs them, too
	@$(SETUP) test
	@$(WARM)
	@$(BIN)/python -m pytest $(ALL_CORES) -m "(long or ci) and not slow and not studies" $(or $(PYTEST_ARGS),$(LONG)) $(NONE)

test-all: python ## run all tests, also those of studies and long runs
	@$(SETUP) test
	@$(WARM)
	@$(BIN)/python -m pytest $(ALL_CORES) $(PYTEST_ARGS) $(NONE)

# A cache of its own, since every index is checked in these kernels; numba has no such mode for single functions.
BOUNDS = NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR='$(CURDIR)/.venv/bounds'
test-bounds: python ## run physics and BIPEDSIM_SCENES (200) random scenes with every index checked, some ten minutes
	@$(SETUP) test
	@$(BOUNDS) $(BIN)/bipedsim warmup
	@$(BOUNDS) BIPEDSIM_SCENES=$${BIPEDSIM_SCENES:-200} $(BIN)/python -m pytest $(ALL_CORES) -m "not slow and not ros" \
	    $(or $(PYTEST_ARGS),$(addprefix test/,physics contact objects sim dynamics ground numerics plates)) $(NONE)

lint: python ## style of code and English, types, and layers
	@$(SETUP) lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python tools/style.py
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/mypy

format: python ## format the code and let ruff fix the faults that it can
	@$(SETUP) lint
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: python ## build the documentation site into site/; broken links and references fail
	@$(SETUP) docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'Read it at http://localhost:8000 after: python3 -m http.server --directory site'

wheel: setup ## build the source distribution, and a wheel with kernels for each Python found, into dist/
	@$(BIN)/python tools/make_wheel.py

release-check: setup ## check the last commit before a release, about an hour: tests of wheels and of the container
	@$(SETUP) test lint docs
	@$(BIN)/python tools/release_check.py

lock: setup ## pin anew what setup.py asks for; UPGRADE=--upgrade takes newer versions
	@UPGRADE='$(UPGRADE)' sh tools/lock.sh

clean: ## remove .venv, caches and what builds leave; runs/ stays
	@rm -rf .venv build dist install log site bipedsim.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

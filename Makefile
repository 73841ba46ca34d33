# make help       lists the targets
# make install    makes a virtual environment in .venv with everything in the versions of constraints.txt
# make demo       installs, then runs a week of a small marketplace that the package makes itself, and its nights
# make test       installs, then lint, types and every test
# make lint       installs, then lint and types alone
# make bench      installs, then measures every path against plain PyTorch and NumPy (about ten minutes on an idle machine)
# make experiments   installs, then runs every claim about negatives on small markets (under an hour)
# make clean      removes the environment and every cache
#
# PYTHON=/path/to/python picks the interpreter of the virtual environment; otherwise it is the first of python3,
# python3.13, python3.12 and python3.11 that is 3.11 to 3.13 and has the venv module.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
STAMP := $(VENV)/.install-stamp
BIN := $(VENV)/bin
# Tests of data sets are skipped, with the reason, where this names no folder that holds them.
ifeq ($(origin HATCHWAY_DATA),undefined)
ifneq ($(wildcard ../shared/data),)
export HATCHWAY_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: help install demo test lint bench experiments clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@if [ ! -x $(BIN)/python ]; then \
		chosen=""; \
		for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
			if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; \
			then chosen="$$candidate"; break; fi; \
		done; \
		if [ -z "$$chosen" ]; then \
			echo "no Python 3.11, 3.12 or 3.13 with the venv module was found; install one, or run make PYTHON=/path/to/python" >&2; \
			exit 1; \
		fi; \
		echo "making $(VENV) with $$("$$chosen" --version) ($$("$$chosen" -c 'import sys; print(sys.executable)'))"; \
		"$$chosen" -m venv $(VENV); \
	fi
	@echo "installing Hatchway and the versions of constraints.txt into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,examples]'
	@touch $@

demo: install
	@$(BIN)/hatchway demo

lint: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# One thread a worker, two workers: quicker on two cores than one worker with two threads.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile

# One after another, and nothing else beside them. Other libraries: benchmarks/peers/.
bench: install
	@for name in masks draws frequency batches loss step mining near_duplicates serving; do \
		echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; \
	done
	@$(BIN)/python benchmarks/table.py

# The full settings, which write results and verdicts: each script without --short, about an hour on two cores.
experiments: install
	@for script in $$(grep -l -e --short experiments/*/run.py); do \
		echo "== $$script"; OMP_NUM_THREADS=1 $(BIN)/python "$$script" --short || exit 1; \
	done
	@$(BIN)/python experiments/index.py --check

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

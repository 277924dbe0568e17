# make demo               start a parent and 16 virtual nodes; apply examples/quickstart/site.yaml
# make demo ARGS=--once   the same without a terminal: inject faults, check the repair, exit
# make demo DEMO=NAME     run another example: examples/NAME/, with or without ARGS=--once
# make setup              only create the virtual environment, in .venv/
# make check              quick checks before each commit: about 2 minutes
# make core               the tests of what decides (core, planner, model, wire): under 30 seconds
# make test               all tests but the long ones; install what they need first: under 10 minutes
# make changed            as root: of the long tests and real parts those that what changed since BASE=REV concerns
# make nightly            as root: everything, with seeds of the day: about an hour
# make gpu                measure the NVIDIA GPUs of this machine by the module nvml, where it has any
# make soak HOURS=500     simulate clusters for this many hours; WITHIN_S=600: for so many seconds at most
# make release            from a tag: all artefacts, below build/release/VERSION/
# make docs               the documentation as a site, in build/docs/site/
# make lock               new requirements*.txt from pyproject.toml (ARGS=--upgrade: newest versions)
# make clean              remove everything that the commands above created here
.PHONY: help demo example setup setup-dev check core test changed nightly gpu real-parts soak lint types contracts lock docs release clean
.NOTPARALLEL:
.DEFAULT_GOAL := help

# What a shell has set for another project's Python must not leak into ours. Without bytecode, each
# process that a test starts would take up to half a second more to import what it runs.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE

ARGS ?=
# The same examples of each property on each run; the night tries twice as many, and others each day.
GATE = HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} GATE_BASE=$(BASE) .venv/bin/python -m tests.gate
BASE ?=
UV ?= $(firstword $(wildcard .venv/bin/uv) uv)
# examples/NAME/: site.yaml, check.sh for --once, `needs` (commands), and `run` where a plain lab does not do.
DEMO ?= quickstart
EXAMPLE = examples/$(DEMO)
# Each cluster has a directory of its own; the quickstart's is the checkout.
export DEMO_DIR = $(CURDIR)$(if $(filter-out quickstart,$(DEMO)),/.haptera/demos/$(DEMO))
RUN_DEMO = $(or $(wildcard $(EXAMPLE)/run),.venv/bin/haptera lab --site $(EXAMPLE)/site.yaml --dir "$$DEMO_DIR")
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links $(ARGS)
BUILD_REQUIRES = python3 -c 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")'

help:
	@sed -n 's/^# \(make\)/\1/p' Makefile

setup:
	@tools/setup run

setup-dev:
	@tools/setup dev

demo: example setup
	@tools/need $$(cat $(EXAMPLE)/needs)
	@mkdir -p "$$DEMO_DIR"
	$(RUN_DEMO) $(ARGS)

example:
	@test -e $(EXAMPLE)/check.sh || { \
		echo "there is no example $(DEMO); there are: $(patsubst examples/%/check.sh,%,$(wildcard examples/*/check.sh))" >&2; exit 1; }

check: setup-dev lint
	$(GATE) check

core: setup-dev
	.venv/bin/pytest -q -n auto -m "not slow and not net and not campaign and not long" \
		tests/core tests/planner tests/model tests/wire

test:
	@tools/need --install ensurepip curl ss sqlite3 promtool dot perl chromium zsh fish socat || echo "make test: goes on without these"
	@$(MAKE) --no-print-directory setup-dev lint
	$(GATE) test
	@if tools/need curl ss; then $(MAKE) --no-print-directory demo ARGS=--once; \
	else echo "make test: left out: make demo ARGS=--once"; fi

# What is missing here is skipped with its reason.
changed: setup-dev real-parts
	$(GATE) changed

nightly: setup-dev real-parts
	$(GATE) nightly

gpu: setup-dev
	.venv/bin/pytest -q -rs -s -p no:cacheprovider tests/modules/test_nvml.py -k real_gpu

real-parts:
	@tools/need --install openssl slurmctld slurmd sbatch etcd dhclient dhcping tftp cpio dropbearkey ssh faketime dnsmasq libvirtd virsh qemu-system-aarch64 aavmf qemu-aarch64-static ansible skopeo mkfs.erofs ganesha.nfsd certutil debootstrap $$(cat examples/*/needs | sort -u) || echo "make: goes on without these"

# Simulated clusters, for so many hours of their time; a broken seed prints how to replay it.
HOURS ?= 500
WITHIN_S ?= inf
soak: setup-dev
	.venv/bin/python -m tests.world.hunt --hours $(HOURS) --within $(WITHIN_S)

lint:
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types:
	.venv/bin/mypy

contracts:
	.venv/bin/lint-imports

# Needs uv (`pip install uv`). The build backend is locked too, so that haptera installs offline.
lock:
	$(BUILD_REQUIRES) | $(COMPILE) pyproject.toml - --extra parent --extra channels -o requirements.txt
	$(BUILD_REQUIRES) | $(COMPILE) pyproject.toml - --extra parent --extra channels --extra dev -c requirements.txt -o requirements-dev.txt
	echo zensical | $(COMPILE) - -o requirements-docs.txt

# Opens without a server: build/docs/site/index.html.
docs: setup-dev
	.venv/bin/python -m tools.site

# What it says of a tag is what it is made of: see tools/release/.
release: setup-dev
	.venv/bin/python -m tools.release $(ARGS)

# Not while a lab runs, or what a killed one left: without .haptera/ nobody could find it again.
clean:
	@! grep -qs "HAPTERA_LAB=$$(cat .haptera/lab/cluster 2>/dev/null || echo none)" /proc/[0-9]*/environ || \
		{ echo "make clean: a lab runs here; end it with Ctrl-C (if it was killed: make demo first)" >&2; \
		exit 1; }
	rm -rf .venv .haptera build src/haptera.egg-info .mypy_cache .ruff_cache .pytest_cache \
		.hypothesis .import_linter_cache
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

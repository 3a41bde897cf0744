# Each target does all of its own set-up. `make help` lists them.
#
# make test needs Go only. make test-ops installs the Debian and npm packages that it needs.

SHELL := /bin/bash
GO    ?= go
CACHE := .cache
BIN   := bin/recurgentd

# The daemon and its runners are static binaries, and the daemon carries the other.
export CGO_ENABLED ?= 0

# The Go versions that the engine knows, the newest last: docs/upgrading-go.md.
KNOWN := go1.26.8 go1.27.2

# Where Go is newer than that, the newest of them builds, tests and runs everything.
export GOTOOLCHAIN := $(shell GO=$(GO) scripts/toolchain $(KNOWN))

PACKAGES := ./...
TIMEOUT  := 25m

# What make race-ci runs. The gate's packages are too slow for it, and have no goroutines; so are tests that break a store off at
# each operation of one goroutine. make race has all of them.
RACED_NOT := ^Test((Crash|Interval)PowerCut|CrashErasure|(Crash|Interval|Erasure)Faults)$$
RACED := $(addprefix ./internal/,runtime runtime/catalog mcp cluster store/... api/... app/... telemetry/... agent/... client/...)

.DEFAULT_GOAL := help
.PHONY: help run build test test-known test-ops test-postgres test-replicas test-ops-long test-image lint vulncheck cover mutate mutate-check fuzz race race-ci bench bench-kernels bench-goals bench-scale diff diff-native truth crash chaos dist generate docs image clients clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS=$$'\t' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

run: build ## build and start the daemon on the embedded demo, and print what to try
	@exec ./$(BIN) serve --provider replay --recording= --data-dir $(CACHE)/run

build: ## build bin/recurgentd, which carries the program of its runners
	@mkdir -p bin
	@GO=$(GO) scripts/build $(BIN)

test: ## everything that needs only Go
	$(GO) vet $(PACKAGES)
	$(GO) test -timeout $(TIMEOUT) $(PACKAGES)
	$(GO) test -timeout $(TIMEOUT) -tags testnogate ./internal/runtime/sandbox/independence
	$(GO) test -timeout $(TIMEOUT) -tags enginecheck -run '^TestCorpus$$' ./internal/runtime/sandbox

test-known: ## the gate's packages, with every Go version that the engine knows; of generated programs half where make test did not run them all
	@for version in $(KNOWN); do echo "go test with $$version"; \
		if [ "$$version" = "$$($(GO) env GOVERSION)" ]; then programs=; else programs=DIFF_PROGRAMS=250; fi; \
		env $$programs GOTOOLCHAIN=$$version $(GO) test -timeout $(TIMEOUT) ./internal/runtime/gate/... || exit 1; done

test-ops: ## suites that need Debian or npm packages, which it installs
	@scripts/ops-install promtool redocly systemd-analyze groff chromium mcp-clients typescript console python3 mypy curl nginx
	PATH="$(CURDIR)/$(CACHE)/npm/node_modules/.bin:$$PATH" $(GO) test -tags ops -count 1 -timeout $(TIMEOUT) -run '^TestOps' ./test/... ./deploy
	cd deploy/check && $(GO) vet ./... && $(GO) test -count 1 -timeout $(TIMEOUT) ./...
	$(MAKE) test-postgres
	$(GO) test -tags 'ops postgres' -count 1 -timeout $(TIMEOUT) -run '^TestReplicasPage$$' ./test/e2e/console

test-postgres: ## what needs PostgreSQL and pgbouncer, which it installs
	@scripts/ops-install postgres
	$(GO) vet -tags postgres ./internal/store/postgres/... ./test/e2e/cluster ./test/e2e/database ./test/e2e/chaos ./bench/scale
	$(GO) test -tags postgres -count 1 -timeout $(TIMEOUT) ./internal/store/postgres/... ./test/e2e/cluster ./test/e2e/database
	RECURGENTD_TEST_REPLICAS=1 $(GO) test -count 1 -timeout $(TIMEOUT) ./test/e2e/lifecycle ./test/e2e/history
	$(GO) test -tags postgres -count 1 -timeout $(TIMEOUT) -run '^TestChaosReplicas$$' ./test/e2e/chaos

test-replicas: ## 13 suites on PostgreSQL, which it installs, with REPLICAS (3) replicas in the place of each daemon, each request at any of them
	@scripts/ops-install postgres
	RECURGENTD_TEST_REPLICAS=$${REPLICAS:-3} $(GO) test -count 1 -p 1 -timeout $(TIMEOUT) $(addprefix ./test/e2e/,lifecycle history tenancy spend files truth evolution why effects overview connections interfaces agents)

test-ops-long: ## what takes hours: mutants, fuzzing (FUZZTIME each), generated programs, crash rounds, chaos, suites on replicas, everything under the race detector. make test and make test-ops run a sample of each
	$(MAKE) mutate
	$(MAKE) fuzz
	$(MAKE) diff
	$(MAKE) truth
	$(MAKE) crash
	$(MAKE) chaos
	$(MAKE) test-replicas
	@scripts/ops-install chromium console
	CONSOLE_COPIES=1000 $(GO) test -tags ops -count 1 -timeout $(TIMEOUT) -run '^TestOpsManyTools$$' ./test/e2e/console
	$(MAKE) race

test-image: ## build both images of the Dockerfile and run them, by buildah, which it installs
	@scripts/ops-install buildah
	@scripts/test-image

lint: ## gofmt, go vet, module checksums, and golangci-lint (built once, then cached)
	@unformatted=$$(gofmt -l cmd internal bench test api deploy clients examples); if [ -n "$$unformatted" ]; then echo "gofmt -w these:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(PACKAGES)
	$(GO) mod verify
	@scripts/golangci-lint run

vulncheck: ## look for known vulnerabilities by govulncheck; scripts/vulncheck exits with 69 where it cannot be had or its database not reached
	@scripts/vulncheck

cover: ## fail when the tests of internal/runtime, those without processes, run less than 80 % of it
	@mkdir -p $(CACHE)
	@$(GO) test -count 1 -tags scripted -timeout $(TIMEOUT) -coverprofile $(CACHE)/runtime.cover ./internal/runtime
	@$(GO) tool cover -func $(CACHE)/runtime.cover | awk '/^total:/ { print "internal/runtime: " $$3; exit $$3+0 < 80 }'

mutate: ## make small faults in the core and count those that its tests notice: docs/mutants.md
	@scripts/mutate

mutate-check: ## the same faults made by gremlins, which it installs, to check make mutate; half an hour for internal/contract
	@scripts/gremlins $${PACKAGE:-./internal/contract}

fuzz: ## every fuzz target for FUZZTIME (10s) each
	@FUZZTIME=$${FUZZTIME:-10s} scripts/each-fuzz

race: ## all tests under the race detector; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -timeout $(TIMEOUT) $(PACKAGES)

race-ci: ## the packages with concurrency of their own under the race detector; installs a C compiler
	@scripts/ops-install gcc
	CGO_ENABLED=1 $(GO) test -race -tags scripted -skip '$(RACED_NOT)' -timeout $(TIMEOUT) $(RACED)

bench: ## all benchmarks, one second each, without tests
	$(GO) test -run '^$$' -bench . -benchmem $(PACKAGES)

bench-kernels: ## programs in the engine, compiled, in yaegi and in CPython: ratios of processor time; WRITE=docs/performance.md puts the table there
	$(GO) run ./bench/kernels -rounds $${ROUNDS:-5} $(if $(WRITE),-write $(WRITE))

bench-goals: ## many tools, many owners, nested, cold and large calls, floods, many namespaces: ratios in one run; GOALS="-only floods" chooses
	$(GO) run ./bench/goals $(GOALS)

bench-scale: ## simulate 10 and 100 replicas on one or several databases from figures that bench/scale measured
	$(GO) run ./bench/scale

diff: ## run every recorded and corpus program natively and by the engines, and compare; then 10,000 generated ones of each kind, and 500 over HTTP, from a new seed
	@seed=$${DIFF_SEED:-$$(date +%s)}; echo "DIFF_SEED=$$seed"; DIFF_SEED=$$seed DIFF_PROGRAMS=$${DIFF_PROGRAMS:-10000} YAEGI_PROGRAMS=$${YAEGI_PROGRAMS:-10000} \
		$(GO) test -count 1 -timeout 6h -run 'Diff' ./internal/runtime/gate/... && \
		HTTP_SEED=$$seed HTTP_PROGRAMS=$${HTTP_PROGRAMS:-500} $(GO) test -count 1 -timeout 2h -run 'TestGeneratedPrograms' ./test/e2e/programs

diff-native: ## run every program of the corpus, and 500 generated ones from a new seed, in executables and on the engine, and compare
	@seed=$${DIFF_SEED:-$$(date +%s)}; echo "NATIVE_SEED=$$seed"; NATIVE_SEED=$$seed NATIVE_EVERY=1 NATIVE_PROGRAMS=$${NATIVE_PROGRAMS:-500} \
		$(GO) test -count 1 -timeout 6h -run 'Natively' ./internal/runtime/native

truth: ## sequences of verdicts, examples, failing candidates, drifts and restarts, from a new seed: none may take a working answer away
	@seed=$${TRUTH_SEED:-$$(date +%s)}; echo "TRUTH_SEED=$$seed"; TRUTH_SEED=$$seed TRUTH_ROUNDS=$${TRUTH_ROUNDS:-5000} \
		$(GO) test -count 1 -timeout 6h -run TruthHolds ./internal/runtime/operator

crash: ## kill the daemon and the store over and over, and look for what was acknowledged
	CRASH_ROUNDS=$${CRASH_ROUNDS:-100} $(GO) test -count 1 -timeout $(TIMEOUT) -run 'Crash|Kill' ./internal/store/... ./test/...

chaos: ## daemons under load, one on disk and three on PostgreSQL, which it installs, that are killed, stopped and cut off: CHAOS_CALLS (50,000) calls and CHAOS_FAULTS (36) faults each, chosen by CHAOS_SEED, or from a new seed
	@scripts/ops-install postgres
	@seed=$${CHAOS_SEED:-$$(date +%s)}; echo "CHAOS_SEED=$$seed"; CHAOS_SEED=$$seed CHAOS_CALLS=$${CHAOS_CALLS:-50000} CHAOS_FAULTS=$${CHAOS_FAULTS:-36} $(GO) test -tags postgres -count 1 -timeout 3h -v -run 'TestChaos' ./test/e2e/chaos

generate: ## what the gate embeds, with every Go version that the engine knows
	@for version in $(KNOWN); do echo "go generate with $$version"; GOTOOLCHAIN=$$version $(GO) generate ./internal/runtime/gate || exit 1; done

docs: ## write the generated parts of docs/
	$(GO) test -count 1 -run 'TestConfigurationDocument|TestLogReference' ./test/docs -update
	$(GO) test -count 1 -run 'TestEveryMetricIsDocumented' ./internal/telemetry -update

dist: ## release archives for Linux and macOS in dist/, with checksums
	@scripts/dist

image: ## build the container image recurgentd:dev
	docker build -t recurgentd:dev .

clients: ## generate clients/go from api/openapi.yaml
	cd clients/go && $(GO) tool -modfile=tools/go.mod oapi-codegen -config api/config.yaml -o api/api.gen.go ../../api/openapi.yaml

clean: ## remove what the targets made
	rm -rf bin dist $(CACHE)

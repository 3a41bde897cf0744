# Each target does all of its own set-up. `make help` lists them.
#
# make test needs Go only. make test-ops installs the Debian and npm packages that it needs.

SHELL := /bin/bash
GO    ?= go
CACHE := .cache
BIN   := bin/recurgentd

# The daemon and its runners are static binaries, and the daemon carries the other.
export CGO_ENABLED ?= 0

# The Go versions whose standard library the gate knows, the newest last: docs/upgrading-go.md.
KNOWN := go1.26.8 go1.27.2

PACKAGES := ./...
TIMEOUT  := 25m

# The packages that a call passes through. Most of their tests are in internal/runtime.
PHASES := attempt call classify env equal forge judge lifetime programs proof selection turns
HEART  := ./internal/runtime $(addprefix ./internal/runtime/,$(PHASES))
EMPTY  :=
COMMA  := ,

# What runs under the race detector: the packages with goroutines of their own. make test-all adds the one that puts them together, which takes
# the compiler a minute.
RACED := $(addprefix ./internal/,runtime runtime/forge runtime/lifetime runtime/turns runtime/catalog runtime/fetch runtime/spend fair bell cache mcp cluster store store/disk store/disk/jsonl store/disk/wal api telemetry client)

# What needs no second look there, and takes minutes under it: large bodies, the document, and what one goroutine does to a disk.
RACED_NOT := ^TestStore$$/^tiny$$|^Test(DocsPage|LargeBodiesAreBounded|UnreadRepliesAreBounded|Crash.*|.*(Faults|PowerCut|Erasure)|FaultInBatch|CorruptFiles|VerifyAndRepair|.*Export.*|Import.*|TornLogs|Damaged.*|DirectoryInTheWay|AuditReadsTheSameOfALongTrail|SchemaVersions|StrictFormsAreReadBack|Shapes.*|MaskerCuts|ScopesAndDocumentAgree)$$

# What .ci/run runs of the suites that need more than Go: the conformance suite and five smokes on a PostgreSQL, a page of the console, and a smoke
# of each kind of client: of MCP, of the OpenAI format, generated from the document, our own for Python and TypeScript, Prometheus.
SMOKES_POSTGRES := ^(TestStore|TestTwoStoresCount|TestCopiesAreTheSame|TestOrder|TestStoresMove|TestNoStoreIsMadeByReading)$$
SMOKES_OPS      := ^(TestOpsFreshDaemon|TestOpsInspector|TestOpsAgentLoop|TestOpsTypeScriptExample|TestOpsKeptConnections|TestOpsTypeScriptClient|TestOpsMetricsPassPromtool)$$

.DEFAULT_GOAL := help
.PHONY: help run build test test-all test-long smoke-postgres smoke-ops race lint flaky vulncheck mutate fuzz bench bench-kernels bench-goals bench-scale size dist generate docs image clients clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS=$$'\t' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

run: build ## build and start the daemon on the embedded demo, and print what to try
	@exec ./$(BIN) serve --provider replay --recording= --data-dir $(CACHE)/run

build: ## build bin/recurgentd, which carries the program of its runners and the compiler of programs
	@mkdir -p $(dir $(BIN))
	@echo "building $(BIN), with its runners and the compiler that it carries: some minutes the first time, then seconds"
	@GO=$(GO) scripts/build $(BIN)

test: ## everything deterministic that needs Go only; fails, too, when less than 80 % of internal/runtime was run
	@mkdir -p $(CACHE)
	$(GO) test -short -timeout $(TIMEOUT) $(if $(VET),-vet $(VET)) $$($(GO) list $(PACKAGES) | grep -vE '/internal/runtime($$|/($(subst $(EMPTY) ,|,$(PHASES)))$$)')
	$(GO) test -short -timeout $(TIMEOUT) $(if $(VET),-vet $(VET)) -coverprofile $(CACHE)/runtime.cover -coverpkg $(subst $(EMPTY) ,$(COMMA),$(HEART)) $(HEART)
	@$(GO) tool cover -func $(CACHE)/runtime.cover | awk '/^total:/ { print "internal/runtime: " $$3 " of statements"; exit $$3+0 < 80 }'

race: ## the packages with goroutines, under the race detector; installs a C compiler
	@scripts/ops-install gcc
	CGO_ENABLED=1 $(GO) test -race -short -vet off -tags scripted -skip '$(RACED_NOT)' -timeout $(TIMEOUT) $(RACED)

smoke-postgres: ## the conformance suite and five smokes on a PostgreSQL, which it installs
	@scripts/ops-install postgres
	$(GO) test -tags postgres -short -vet off -count 1 -timeout $(TIMEOUT) -run '$(SMOKES_POSTGRES)' ./internal/store/postgres ./test/e2e/replicas

smoke-ops: ## a page of the console in Chromium and a smoke of each kind of client, which it installs
	@scripts/ops-install chromium console mcp-clients typescript python3 promtool
	$(GO) test -tags ops -short -vet off -count 1 -timeout $(TIMEOUT) -run '$(SMOKES_OPS)' ./test/e2e/console ./test/e2e/daemon

test-all: ## all suites in full, resumed where it was interrupted: docs/tests.md; STEPS="postgres race" runs these alone
	@KNOWN="$(KNOWN)" RACED="$(RACED) ./internal/app" scripts/test-all all $(STEPS)

test-long: ## what takes hours: mutants, an hour of each fuzz target, 10,000 generated programs, 50,000 calls of chaos
	@KNOWN="$(KNOWN)" RACED="$(RACED) ./internal/app" scripts/test-all long $(STEPS)

flaky: ## run the tests TESTS (a regular expression) N (50) times beside four busy processes
	@TESTS='$(TESTS)' N='$(or $(N),50)' scripts/flaky

lint: ## gofmt, module checksums, go vet, staticcheck, errcheck, ineffassign, gocyclo
	@scripts/lint

vulncheck: ## look for known vulnerabilities by govulncheck; scripts/vulncheck exits with 69 where it cannot be had or its database not reached
	@scripts/vulncheck

mutate: ## make small faults in the core by gremlins, which it installs, and count those that the tests notice: docs/mutants.md; PACKAGE=./internal/contract
	@scripts/mutate $(PACKAGE)

fuzz: ## every fuzz target for FUZZTIME (60s) each
	@scripts/each-fuzz

bench: ## all benchmarks, one second each, without tests
	$(GO) test -run '^$$' -bench . -benchmem $(PACKAGES)

bench-kernels: ## programs as plain Go, compiled by a daemon, in yaegi and in CPython: ratios of processor time; WRITE=docs/performance.md puts the table there
	$(GO) run ./bench/kernels -rounds $${ROUNDS:-5} $(if $(WRITE),-write $(WRITE))

bench-goals: ## many tools, many owners, nested, cold and large calls, floods, many namespaces: ratios in one run; GOALS="-only floods" chooses
	$(GO) run ./bench/goals $(GOALS)

size: ## lines of all files by kind
	@scripts/size

bench-scale: ## simulate 10 and 100 replicas on one or several databases from figures that bench/scale measured
	$(GO) run ./bench/scale

generate: ## what the gate embeds, with every Go version that it knows
	@for version in $(KNOWN); do echo "go generate with $$version"; GOTOOLCHAIN=$$version $(GO) generate ./internal/runtime/gate || exit 1; done

docs: ## write the generated parts of docs/
	$(GO) test -count 1 -run 'TestConfigurationDocument|TestLogReference' ./test/docs -update
	$(GO) test -count 1 -run 'TestEveryMetricIsDocumented' ./internal/telemetry -update

dist: ## release archives for Linux and macOS in dist/, with checksums
	@scripts/dist

image: ## build the container image recurgentd:dev
	docker build -t recurgentd:dev .

clients: ## generate the types of clients/go from api/openapi.yaml
	cd clients/go && $(GO) tool -modfile=tools/go.mod oapi-codegen -config api/config.yaml -o api/api.gen.go ../../api/openapi.yaml

clean: ## remove what the targets made
	rm -rf bin dist $(CACHE)

# Everything about this repository, by hand or by machine, starts here.
# "make help" lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all

GO    ?= go
TOOL  := $(GO) tool -modfile=tools/go.mod
# The race detector needs a C compiler; without one the tests run without it. SQLite is
# compiled without it: the translated C code alone, whose memory is outside of Go's heap,
# where the detector looks at nothing, and takes more time for that than all else does.
RACE  := $(if $(shell command -v $${CC:-gcc} 2>/dev/null),-race -gcflags=modernc.org/sqlite/lib=-race=false,)
FUZZ_TIME ?= 10m
SOAK_TIME ?= 10m
# An example that is a module of its own, because of what it compiles.
TICKETS := examples/tickets

.PHONY: all
all: build check test ## everything that CI runs

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## a gateway that needs no key, at http://127.0.0.1:8787/v1
	$(GO) run ./cmd/dragoman serve

.PHONY: build
build: modules ## compile everything, also for macOS and Windows
	$(GO) build ./...
	@# Nobody runs these two, so the compiler need not make them fast.
	GOOS=darwin GOARCH=arm64 $(GO) build -gcflags='all=-N -l' ./...
	GOOS=windows GOARCH=amd64 $(GO) build -gcflags='all=-N -l' ./...

.PHONY: check
check: modules ## gofmt, vet, staticcheck, and generated files up to date
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	$(GO) vet ./...
	@# Where an int has 32 bits, as on linux/arm, which is released, less compiles.
	GOOS=linux GOARCH=386 $(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(GO) mod tidy -diff
	cd $(TICKETS) && $(GO) vet ./... && $(GO) mod tidy -diff
	cd tools/release && $(GO) vet ./... && $(GO) test -vet=off ./...
	cd tools/picture && $(GO) vet ./... && $(GO) test -vet=off ./...
ifdef DRAGOMAN_VULNDB
	$(MAKE) --no-print-directory vuln
else
	@echo "make: SKIPPED: known vulnerabilities; DRAGOMAN_VULNDB names no copy of the Go vulnerability database. \"make vuln\" asks vuln.go.dev" >&2
endif

.PHONY: vuln
vuln: modules ## whether what we call has a known vulnerability; DRAGOMAN_VULNDB names a copy of the database
ifdef DRAGOMAN_VULNDB
	@# An archive as it is downloaded, or the folder that is in it.
	@db="$(DRAGOMAN_VULNDB)"; if [ -f "$$db" ]; then mkdir -p .cache/vulndb && tar xzf "$$db" -C .cache/vulndb && db="$(CURDIR)/.cache/vulndb/db"; fi; \
	  $(TOOL) govulncheck -db "file://$$db" ./...
else
	$(TOOL) govulncheck ./...
endif

.PHONY: test
test: unit e2e ## all tests; installs what they need

# "make check" vets more than "go test" does, which would vet every dependency once more.
.PHONY: unit
unit: modules peers buildah postgres proxies ## the tests of the packages
	$(GO) test $(RACE) -vet=off -timeout 20m $$($(GO) list ./... | grep -v /e2e)
	cd $(TICKETS) && $(GO) test -vet=off ./...

.PHONY: e2e
e2e: modules peers agents engines proxies chromium ## real clients and real servers against the real binary
	$(GO) test -vet=off -count=1 -timeout 40m ./e2e/...

.PHONY: judge
judge: modules peers engines ## public data judge us; CONTRIBUTING.md says where to get them
	$(GO) test -count=1 -timeout 2h -run 'Invariants|Bounded' ./dialect
	DRAGOMAN_DIFFERENTIAL=50000 $(GO) test -count=1 -timeout 1h -v -run '^TestDifferential$$' ./internal/judge/policy
	$(GO) test -count=1 -timeout 6h -v -run '^(TestMaskBench|TestBFCL|TestSchemaSuite|TestJudges|TestAccepted|TestEnginesHold|TestDecoded|TestOllamaKeepsTools|TestOpenResponses)$$' ./e2e
	DRAGOMAN_JUDGE=1 $(GO) test -count=1 -timeout 6h -v -run '^TestEnginesWrite$$' ./e2e

.PHONY: servers
servers: modules peers e2e/published/node_modules/.installed ## two dozen published MCP servers behind one endpoint, with a table
	DRAGOMAN_PUBLISHED=1 $(GO) test -count=1 -timeout 30m -v -run '^TestPublishedServers$$' ./e2e

.PHONY: lint-peers
lint-peers: modules peers linters ## the planted servers, judged by linters of others beside ours, with a table
	DRAGOMAN_PLANTED_PEERS=each $(GO) test -count=1 -timeout 2h -parallel 8 -v -run '^TestPlantedPeers$$' ./e2e

.PHONY: fidelity
fidelity: modules engines ## docs/fidelity.md, with the servers in DRAGOMAN_CORPUS, or MOST=20 tools of each
	$(GO) run ./bench/fidelity -engines e2e/engines -most $(or $(MOST),0) > docs/fidelity.md.new
	mv docs/fidelity.md.new docs/fidelity.md

.PHONY: bench
bench: modules ## the table of bench/README.md, measured here and now
	$(GO) run ./bench

.PHONY: fuzz
fuzz: modules ## each fuzz target for FUZZ_TIME (10m)
	@$(GO) list ./... | while read -r pkg; do \
	  for name in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$name"; $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 5x $$pkg; \
	  done; done

.PHONY: soak
soak: modules ## many clients, crashes and retries for SOAK_TIME (10m), with the race detector; the faults of the MCP endpoint, often
	$(GO) test $(RACE) -count=1 -timeout 0 -v -run '^TestSoak$$' ./e2e -soak $(SOAK_TIME)
	DRAGOMAN_SOAK=1 $(GO) test -count=1 -timeout 0 -v -p 1 -run '^TestFault' ./internal/gateway
	DRAGOMAN_SOAK=1 $(GO) test $(RACE) -count=1 -timeout 0 -v ./internal/stage/replicas
	DRAGOMAN_SOAK=1 $(GO) test -count=1 -timeout 0 -v -run '^TestFault' ./e2e -soak $(SOAK_TIME)
	$(GO) test -count=1 -timeout 0 -v -run '^TestKill$$' ./internal/judge/audit -kills 1000

.PHONY: snapshot
snapshot: modules buildah release-tools ## a whole release, unpublished, and its tests: archives, packages, images (long)
	PATH="$(CURDIR)/.cache/bin:$$PATH" goreleaser check
	@# Without any tag there is no version to count from.
	GORELEASER_CURRENT_TAG="$$(git describe --tags --abbrev=0 2>/dev/null || echo v0.0.0)" \
	  PATH="$(CURDIR)/.cache/bin:$$PATH" goreleaser release --snapshot --clean --skip=sign,docker
	DRAGOMAN_SNAPSHOT=1 $(GO) test -count=1 -timeout 30m ./packaging

.PHONY: notes
notes: ## the notes of a release, from CHANGELOG.md: make notes VERSION=v1.2.3
	@awk -v version="$(patsubst v%,%,$(or $(VERSION),Unreleased))" \
	  -v tree="https://github.com/dragoman-mcp/dragoman/blob/$(if $(VERSION),v$(patsubst v%,%,$(VERSION)),main)/" \
	  '/^## / { on = ($$2 == version || $$2 == "v" version); next } \
	  on && (some || /./) { some = 1; gsub(/\]\(/, "](" tree); gsub("\\]\\(" tree "https:", "](https:"); print } \
	  END { exit !some }' CHANGELOG.md || \
	  { echo "make: CHANGELOG.md has no section for $(or $(VERSION),Unreleased)" >&2; exit 1; }

.PHONY: release-tools
release-tools: .cache/bin/goreleaser .cache/bin/cyclonedx-gomod

.cache/bin/goreleaser: tools/release/go.mod
	cd tools/release && $(GO) build -o ../../$@ github.com/goreleaser/goreleaser/v2
.cache/bin/cyclonedx-gomod: tools/release/go.mod
	cd tools/release && $(GO) build -o ../../$@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

.PHONY: completions
completions: # what shells read; part of packages
	@mkdir -p .cache/completions
	@for shell in bash zsh fish; do $(GO) run ./cmd/dragoman completion $$shell > .cache/completions/dragoman.$$shell; done

.PHONY: picture
picture: chromium ## docs/demo.svg anew, where it shows something else than docs/demo.txtar does, and docs/pictures of the console
	cd tools/picture && $(GO) run . -update ../../docs/demo.txtar ../../docs/demo.svg
	$(GO) test ./e2e -count=1 -run 'TestConsolePictures$$' -pictures ../docs/pictures

.PHONY: update
update: ## rewrite golden files and generated documents; look at the difference
	$(GO) test $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n1 dirname | sort -u) -update

# What the tests need and Go does not bring. Each line that fetches says what it
# could not get.

.PHONY: modules
modules:
	@$(GO) mod download || { echo "make: the Go modules in go.mod could not be fetched; is there a network, or a GOPROXY?" >&2; exit 1; }
	@$(GO) mod download -modfile=tools/go.mod || { echo "make: the Go modules in tools/go.mod could not be fetched; is there a network, or a GOPROXY?" >&2; exit 1; }
	@cd $(TICKETS) && $(GO) mod download || { echo "make: the Go modules in $(TICKETS)/go.mod could not be fetched; is there a network, or a GOPROXY?" >&2; exit 1; }

.PHONY: peers
peers: e2e/node_modules/.installed

e2e/node_modules/.installed: e2e/package.json e2e/package-lock.json
	@command -v npm >/dev/null || $(MAKE) --no-print-directory npm
	cd e2e && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error || { echo "make: the npm packages in e2e/package-lock.json could not be fetched; is there a network, or an npm registry?" >&2; exit 1; }
	@touch $@

# Coding agents: two programs of nearly 400 MB each.
.PHONY: agents
agents: e2e/agents/node_modules/.installed

e2e/agents/node_modules/.installed: e2e/agents/package.json e2e/agents/package-lock.json
	@command -v npm >/dev/null || $(MAKE) --no-print-directory npm
	cd e2e/agents && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error || { echo "make: the npm packages in e2e/agents/package-lock.json could not be fetched; is there a network, or an npm registry?" >&2; exit 1; }
	@touch $@

# What others judge MCP servers with; only lint-peers needs it.
.PHONY: linters
linters: e2e/linters/node_modules/.installed

e2e/linters/node_modules/.installed: e2e/linters/package.json e2e/linters/package-lock.json
	@command -v npm >/dev/null || $(MAKE) --no-print-directory npm
	cd e2e/linters && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error || { echo "make: the npm packages in e2e/linters/package-lock.json could not be fetched; is there a network, or an npm registry?" >&2; exit 1; }
	@touch $@

e2e/published/node_modules/.installed: e2e/published/package.json e2e/published/package-lock.json
	@command -v npm >/dev/null || $(MAKE) --no-print-directory npm
	cd e2e/published && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error || { echo "make: the npm packages in e2e/published/package-lock.json could not be fetched; is there a network, or an npm registry?" >&2; exit 1; }
	@touch $@

# The engines that "dragoman prove" can ask. Without a C++ compiler llama.cpp is
# missing, which is said, and the tests that need it skip.
.PHONY: engines
engines: e2e/engines/bin/.built

e2e/engines/bin/.built: e2e/engines/package.json e2e/engines/package-lock.json e2e/engines/build.sh $(wildcard e2e/engines/llamacpp/* e2e/ollama/*)
	@command -v npm >/dev/null || $(MAKE) --no-print-directory npm
	cd e2e/engines && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error || { echo "make: the npm packages in e2e/engines/package-lock.json could not be fetched; is there a network, or an npm registry?" >&2; exit 1; }
	@GO="$(GO)" sh e2e/engines/build.sh && touch $@ || echo "make: not every engine could be built; what needs it is skipped" >&2

.PHONY: postgres
postgres: # the database that several gateways share; its tests skip without it
	@if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && ! command -v postgres >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q && apt-get install -qy --no-install-recommends postgresql || \
	  echo "make: the Debian package postgresql could not be fetched, so PostgreSQL is not tested" >&2; fi

.PHONY: proxies
proxies: # what stands before gateways in docs/operations.md; its test skips without them
	@if ! { command -v nginx && command -v caddy && command -v haproxy && command -v apache2; } >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q && apt-get install -qy --no-install-recommends nginx-light caddy haproxy apache2 || \
	  echo "make: the Debian packages nginx-light, caddy, haproxy and apache2 could not be fetched, so proxies are not tested" >&2; fi

.PHONY: chromium
chromium: # shows the console's pages to its tests, which skip without it
	@if ! command -v chromium-headless-shell >/dev/null && ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q && apt-get install -qy --no-install-recommends chromium-headless-shell || \
	  echo "make: the Debian package chromium-headless-shell could not be fetched, so the console is not tested in a browser" >&2; fi

.PHONY: buildah
buildah: # builds images for packaging's tests, which skip without it
	@if ! command -v buildah >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q && apt-get install -qy --no-install-recommends buildah || \
	  echo "make: the Debian package buildah could not be fetched, so images are not tested" >&2; fi

.PHONY: npm
npm:
	@if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q && apt-get install -qy --no-install-recommends npm || \
	  { echo "make: the Debian package npm could not be fetched; is there a network?" >&2; exit 1; }; \
	else echo "make: the end-to-end tests need npm: install Node.js 20 or newer with npm, then run make again" >&2; exit 1; fi

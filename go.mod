module example.com/providerd

go 1.26.0

tool github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0 // the SBOM of the release
	github.com/alecthomas/kong v1.17.0 // the command line
	github.com/chromedp/cdproto v0.0.0-20250724212937-08a3db8b4327 // tests of the pages in Chromium
	github.com/chromedp/chromedp v0.14.2 // tests of the pages in Chromium
	github.com/coreos/go-systemd/v22 v22.7.0 // notifications to systemd
	github.com/cyphar/filepath-securejoin v0.7.0 // paths without symbolic links
	github.com/getkin/kin-openapi v0.152.0 // validation against the contract
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // strict JSON parsing and canonical JSON
	github.com/go-logr/logr v1.4.4 // the log of the trace SDK, which would otherwise write to standard error
	github.com/gofrs/flock v0.13.1 // locks for opening and serving a SQLite database
	github.com/google/renameio/v2 v2.0.0 // files that are written completely or not at all
	github.com/google/uuid v1.6.0 // UUIDs
	github.com/jackc/pgpassfile v1.0.0 // password files of PostgreSQL
	github.com/jackc/pgx/v5 v5.12.0 // PostgreSQL driver
	github.com/jotaen/kong-completion v0.0.7 // shell completions
	github.com/labstack/echo/v4 v4.16.0 // routing; its support ends on 2026-12-31
	github.com/mattn/go-isatty v0.0.24 // progress and color only in a terminal
	github.com/mattn/go-sqlite3 v1.14.52 // SQLite driver and its error codes
	github.com/oapi-codegen/runtime v1.8.0 // the runtime of the generated code; the generator is a Go tool
	github.com/pressly/goose/v3 v3.29.0 // migrations
	github.com/prometheus/client_golang v1.25.0 // metrics
	github.com/prometheus/procfs v0.22.0 // what a benchmark costs the server
	github.com/rogpeppe/go-internal v1.16.0 // script tests of the command line
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // tests of the JSON Schema of apply files
	github.com/tink-crypto/tink-go/v2 v2.9.0 // encryption, digests and their keys
	github.com/yuin/goldmark v1.7.13 // the conventions page, which is Markdown in the contract
	go.opentelemetry.io/otel v1.47.0 // traces and their export
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp v1.47.0 // traces and their export
	go.opentelemetry.io/otel/sdk v1.47.0 // traces and their export
	go.opentelemetry.io/otel/trace v1.47.0 // traces and their export
	go.opentelemetry.io/proto/otlp v1.11.1 // tests of the export
	go.yaml.in/yaml/v4 v4.0.0 // apply files, with the position of each value
	golang.org/x/net v0.61.0 // domains outside ASCII
	golang.org/x/sync v0.24.0 // bounded concurrency
	golang.org/x/sys v0.49.0 // the width of a terminal, and system calls that fail in tests
	golang.org/x/time v0.16.0 // rate limits of invalid tokens, of --rate-limit, and of logs of failed exports
	google.golang.org/protobuf v1.36.12 // tests of the export
	gorm.io/driver/postgres v1.6.3 // PostgreSQL for GORM
	gorm.io/driver/sqlite v1.6.0 // SQLite for GORM
	gorm.io/gorm v1.31.2 // the ORM
	pgregory.net/rapid v1.3.0 // property tests
)

require (
	github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/chromedp/sysutil v1.1.0 // indirect
	github.com/dprotaso/go-yit v0.0.0-20220510233725-9ba8df137936 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-openapi/jsonpointer v1.0.1 // indirect
	github.com/gobwas/httphead v0.1.0 // indirect
	github.com/gobwas/pool v0.2.1 // indirect
	github.com/gobwas/ws v1.4.0 // indirect
	github.com/gorilla/mux v1.8.0 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.31.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	github.com/labstack/gommon v0.5.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/oapi-codegen/oapi-codegen/v2 v2.8.2 // indirect
	github.com/oasdiff/yaml v0.1.1 // indirect
	github.com/oasdiff/yaml3 v0.0.14 // indirect
	github.com/posener/complete v1.2.3 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/riywo/loginshell v0.0.0-20200815045211-7d26008be1ab // indirect
	github.com/sethvargo/go-retry v0.5.0 // indirect
	github.com/speakeasy-api/jsonpath v0.6.3 // indirect
	github.com/speakeasy-api/openapi v1.24.0 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	github.com/vmware-labs/yaml-jsonpath v0.3.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20261005182115-fad411399dd8 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261005182115-fad411399dd8 // indirect
	google.golang.org/grpc v1.84.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

#!/usr/bin/env bash
# Package:  schneider.vip/problem v1.9.1
# Expected: json.Unmarshal fills a problem.Problem from a problem document, extensions included.
# Happens:  json.Unmarshal into a zero Problem returns nil and leaves it empty: it is marshaled as null. UnmarshalJSON
#           has a value receiver, so it stores the members in a copy. A Problem from problem.New() is filled, because
#           the copy shares its map.
# Matters:  a client that decodes a refusal this way logs null instead of the violations, and no error explains it.
# Date:     2026-11-27
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >go.mod <<'MOD'
module finding

go 1.26

require schneider.vip/problem v1.9.1
MOD
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"schneider.vip/problem"
)

func main() {
	document := []byte(`{"status":422,"title":"Invalid","violations":[{"code":"blank"}]}`)
	var zero problem.Problem
	fmt.Println("zero:", json.Unmarshal(document, &zero), zero.JSONString())
	made := problem.New()
	fmt.Println("New:", json.Unmarshal(document, made), made.JSONString())
}
GO

seen=$(GOFLAGS=-mod=mod go run . 2>build.log) || {
	cat build.log
	exit 1
}
expected='zero: <nil> null
New: <nil> {"status":422,"title":"Invalid","violations":[{"code":"blank"}]}'
diff <(echo "$expected") <(echo "$seen") || {
	echo "go-problem-unmarshal: < as recorded, > seen now"
	exit 1
}
echo "go-problem-unmarshal: as recorded: a problem decoded into a zero Problem is empty, without an error."

#!/usr/bin/env bash
# Package: github.com/goccy/go-yaml 1.19.2 (Go); readers: go.yaml.in/yaml/v4 4.0.0, yaml 2.9.1 and js-yaml 5.5.0 (npm).
# Expected: Marshal quotes a string that YAML 1.2 reads as a number: it quotes "12", "1.5", "0x1F", "0o7" and "+1".
# Happens: it does not quote digits with an `e` between them ("1e3", "12e5", "5E2"), nor digits that begin with zero
#   and contain an 8 or 9 ("08", "0019"). It reads them as strings itself, so a round trip through this library alone
#   shows nothing; the other readers see the numbers 1000, 1200000, 500, 8 and 19.
# Why it matters here: client IDs and secrets are often hexadecimal or digits. Of random hexadecimal IDs of 8 digits,
#   one in 70 has this form, and codes such as "0019" are common. The next tool reads other values.
# Date: 2026-11-27
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund yaml@2.9.1 js-yaml@5.5.0
cat >go.mod <<'MOD'
module example.com/finding

go 1.26.0

require (
	github.com/goccy/go-yaml v1.19.2
	go.yaml.in/yaml/v4 v4.0.0
)
MOD
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	goccy "github.com/goccy/go-yaml"
	yaml4 "go.yaml.in/yaml/v4"
)

func main() {
	values := []string{"12", "1.5", "0x1F", "0o7", "+1", "1e3", "12e5", "5E2", "08", "0019"}
	text, err := goccy.Marshal(map[string][]string{"client_ids": values})
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile("goccy.yaml", text, 0o600); err != nil {
		panic(err)
	}
	show("goccy", func(v any) error { return goccy.Unmarshal(text, v) })
	show("v4", func(v any) error { return yaml4.Unmarshal(text, v) })
}

func show(reader string, read func(any) error) {
	var m map[string]any
	if err := read(&m); err != nil {
		panic(err)
	}
	values, err := json.Marshal(m["client_ids"])
	if err != nil {
		panic(err)
	}
	fmt.Println(reader, string(values))
}
GO
cat >read.mjs <<'JS'
import fs from 'node:fs';
import { parse } from 'yaml';
import { load } from 'js-yaml';
const text = fs.readFileSync('goccy.yaml', 'utf8');
for (const [reader, read] of Object.entries({ yaml: parse, 'js-yaml': load })) {
  console.log(reader, JSON.stringify(read(text).client_ids));
}
JS
export GOFLAGS=-mod=mod GOWORK=off
go mod tidy 2>tidy.log || { cat tidy.log >&2; exit 1; }
seen=$(go run . && node read.mjs)
quoted='"12","1.5","0x1F","0o7","+1"'
expected="goccy [$quoted,\"1e3\",\"12e5\",\"5E2\",\"08\",\"0019\"]
v4 [$quoted,1000,1200000,500,8,19]
yaml [$quoted,1000,1200000,500,8,19]
js-yaml [$quoted,1000,1200000,500,8,19]"
if [ "$seen" != "$expected" ]; then
  printf 'goccy-yaml-unquoted-numbers: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "goccy-yaml-unquoted-numbers: as recorded: the strings 1e3 and 0019 are written plain, and others read 1000 and 19"

#!/usr/bin/env bash
# Package: go.yaml.in/yaml/v4 4.0.0 (Go), next to v3 3.0.6; the file is written by yaml 2.9.1 (npm).
# Expected: `<<` means "merge" only as a key. As a value or as an item of a list it is a string, as in v3.
# Happens: when v4 decodes into a map, it omits a key whose value is a plain `<<`, and an item that is a plain `<<`,
#   without an error. Decoded into a struct, both are the string. The package yaml of npm writes the string without
#   quotation marks, as YAML 1.2 allows; v4 itself quotes it.
# Why it matters here: a program that reads a manifest into a map[string]any loses a field, or reads a shorter list of
#   redirect URIs or scopes, and creates a record that nobody wrote. Quote `<<`, or decode into structs or nodes.
# Date: 2026-11-27
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund yaml@2.9.1
cat >write.mjs <<'JS'
import fs from 'node:fs';
import { stringify } from 'yaml';
fs.writeFileSync('manifest.yaml', stringify({ name: '<<', separators: ['<<', '>>'] }));
JS
node write.mjs

cat >go.mod <<'MOD'
module example.com/finding

go 1.26.0

require (
	go.yaml.in/yaml/v3 v3.0.6
	go.yaml.in/yaml/v4 v4.0.0
)
MOD
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	yaml3 "go.yaml.in/yaml/v3"
	yaml4 "go.yaml.in/yaml/v4"
)

type manifest struct {
	Name       string   `yaml:"name"`
	Separators []string `yaml:"separators"`
}

func main() {
	text, err := os.ReadFile("manifest.yaml")
	if err != nil {
		panic(err)
	}
	show("v3 map", func(m *map[string]any) error { return yaml3.Unmarshal(text, m) })
	show("v4 map", func(m *map[string]any) error { return yaml4.Unmarshal(text, m) })
	show("v4 struct", func(m *manifest) error { return yaml4.Unmarshal(text, m) })
}

func show[T any](label string, decode func(*T) error) {
	var value T
	err := decode(&value)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	fmt.Printf("%s, error %v: ", label, err)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go mod tidy 2>tidy.log || { cat tidy.log >&2; exit 1; }
seen=$(go run .)
expected='v3 map, error <nil>: {"name":"<<","separators":["<<",">>"]}
v4 map, error <nil>: {"separators":[">>"]}
v4 struct, error <nil>: {"Name":"<<","Separators":["<<",">>"]}'
if [ "$seen" != "$expected" ]; then
  printf 'yaml-v4-drops-plain-merge-values: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "yaml-v4-drops-plain-merge-values: as recorded: yaml/v4 drops values and items that are a plain <<"

#!/usr/bin/env bash
# Package:  github.com/goccy/go-yaml 1.19.2, next to go.yaml.in/yaml/v4 4.0.0
# Expected: a mapping that merges another one with `<<` can override its fields: the key that is written in the mapping
#           itself wins, and of a list of mappings the first one. This is what merge keys are for.
# Happens:  into a struct, goccy refuses each such mapping with `duplicate key`, although no key is written twice, and
#           whether `<<` comes first or last. It refuses a list after `<<` too. Merging works as long as nothing is
#           overridden, and the same file is read into a map[string]any without an error. v4 reads all of them.
# Matters:  manifests share settings by an anchor and override a few of them. A program that decodes into structs
#           refuses the file and names a line that is right, while other tools, also with goccy, accept it.
# Date:     2026-11-28
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

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
	"fmt"
	"strings"

	goccy "github.com/goccy/go-yaml"
	yaml4 "go.yaml.in/yaml/v4"
)

const anchors = `
shared: &shared
  mode: shared
other: &other
  mode: other
`

type record struct {
	Name string `yaml:"name"`
	Mode string `yaml:"mode"`
}

func main() {
	show("no override", "item:\n  <<: *shared\n  name: a\n")
	show("<< first", "item:\n  <<: *shared\n  mode: own\n")
	show("<< last", "item:\n  mode: own\n  <<: *shared\n")
	show("list", "item:\n  <<: [*shared, *other]\n")
}

func show(title, item string) {
	text := []byte(anchors + item)
	fmt.Printf("%s: goccy %s, v4 %s\n", title,
		read(func(v any) error { return goccy.Unmarshal(text, v) }),
		read(func(v any) error { return yaml4.Unmarshal(text, v) }))
}

func read(unmarshal func(any) error) string {
	var s struct {
		Item record `yaml:"item"`
	}
	var m map[string]any
	if err := unmarshal(&m); err != nil {
		return err.Error()
	}
	err := unmarshal(&s)
	for _, reason := range []string{`duplicate key "mode"`, "sequence was used where mapping is expected"} {
		if err != nil && strings.Contains(err.Error(), reason) {
			return reason
		}
	}
	if err != nil {
		return err.Error()
	}
	return s.Item.Mode
}
GO

export GOFLAGS=-mod=mod GOWORK=off
go mod tidy 2>tidy.log || { cat tidy.log >&2; exit 1; }
seen=$(go run .)
expected='no override: goccy shared, v4 shared
<< first: goccy duplicate key "mode", v4 own
<< last: goccy duplicate key "mode", v4 own
list: goccy sequence was used where mapping is expected, v4 shared'
if [ "$seen" != "$expected" ]; then
  printf 'goccy-yaml-merge-override: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "goccy-yaml-merge-override: as recorded: overriding a merged field is a duplicate key in a struct"

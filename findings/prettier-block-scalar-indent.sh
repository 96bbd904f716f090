#!/usr/bin/env bash
# Package: prettier 3.10.1 (npm) on files of go.yaml.in/yaml/v4 4.0.0 (Go); values read with yaml 2.9.1 (npm).
# Expected: formatting a YAML file changes white space that has no meaning, and no value.
# Happens: a block scalar with an indentation indicator (`|4`, `|2`) in a mapping that was indented by 4 is moved to an
#   indentation of 2, but its indicator and lines stay as they are. The lines now have two more leading spaces in the
#   value, and prettier reports success. Block scalars without an indicator keep their value.
# Why it matters here: Go's YAML library indents by 4 and writes an indicator if a string begins with a space. A
#   manifest that it wrote changes when a formatter runs in a commit hook, and the stored records then differ from it.
# Date: 2026-11-27
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund prettier@3.10.1 yaml@2.9.1
cat >go.mod <<'MOD'
module example.com/finding

go 1.26.0

require go.yaml.in/yaml/v4 v4.0.0
MOD
cat >main.go <<'GO'
package main

import (
	"os"

	yaml "go.yaml.in/yaml/v4"
)

func main() {
	text, err := yaml.Marshal(map[string]map[string]string{
		"wiki": {"plain": "a\n  b\n", "template": "  a\n b\n"},
	})
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile("manifest.yaml", text, 0o600); err != nil {
		panic(err)
	}
}
GO
cat >read.mjs <<'JS'
import fs from 'node:fs';
import { parse } from 'yaml';
const { wiki } = parse(fs.readFileSync('manifest.yaml', 'utf8'));
console.log(process.argv[2], JSON.stringify(wiki.plain), JSON.stringify(wiki.template));
JS
export GOFLAGS=-mod=mod GOWORK=off
go mod tidy 2>tidy.log || { cat tidy.log >&2; exit 1; }
go run .
seen=$(
  node read.mjs before
  node_modules/.bin/prettier --log-level=silent --write manifest.yaml
  node read.mjs after
  node_modules/.bin/prettier --log-level=silent --check manifest.yaml
  node read.mjs again
)
expected='before "a\n  b\n" "  a\n b\n"
after "a\n  b\n" "    a\n   b\n"
again "a\n  b\n" "    a\n   b\n"'
if [ "$seen" != "$expected" ]; then
  printf 'prettier-block-scalar-indent: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "prettier-block-scalar-indent: as recorded: formatting adds two spaces to each line of a string with an indicator"

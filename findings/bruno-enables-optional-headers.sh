#!/usr/bin/env bash
# Package:  @usebruno/converters 0.23.0 (npm), the importer of Bruno
# Expected: an optional header parameter is imported as a disabled header, or without a value.
# Happens:  it is enabled if it has an example or a default, which becomes its value. Only a parameter without either is
#           disabled. The same goes for optional query parameters.
# Matters:  an Idempotency-Key with an example is sent with each create of the collection. The first request creates a
#           record; another one with the same key is a replay or is refused as a reuse of the key.
# Date:     2026-11-28
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @usebruno/converters@0.23.0
cat >run.cjs <<'JS'
const { openApiToBruno } = require('@usebruno/converters');

const schema = { type: 'string' };
const parameters = [
  { in: 'header', name: 'Idempotency-Key', required: false, example: 'a-1', schema },
  { in: 'header', name: 'X-Default', schema: { ...schema, default: 'd' } },
  { in: 'header', name: 'X-Plain', schema },
  { in: 'query', name: 'optional', example: 'q', schema },
  { in: 'query', name: 'required', required: true, example: 'q', schema },
];
const collection = openApiToBruno({
  openapi: '3.0.3',
  info: { title: 'Records', version: '1' },
  paths: { '/records': { post: { parameters, responses: { 201: { description: 'Created' } } } } },
});
const first = (item) => (item.items?.length ? first(item.items[0]) : item);
const { headers, params } = first(collection).request;
for (const { name, value, enabled } of [...headers, ...params]) console.log(name, JSON.stringify(value), enabled);
JS

seen=$(node run.cjs)
expected='Idempotency-Key "a-1" true
X-Default "d" true
X-Plain "" false
optional "q" true
required "q" true'
if [ "$seen" != "$expected" ]; then
  printf 'bruno-enables-optional-headers: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "bruno-enables-optional-headers: as recorded: the example of an optional Idempotency-Key is sent with each request"

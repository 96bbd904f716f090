#!/usr/bin/env bash
# Package:  json-schema-faker 0.6.3
# Expected: each call of generate() returns another random value, as in version 0.5.9.
# Happens:  without a seed, generate() uses seed 1 in each call: all calls, in all processes, return the same value,
#           with the same UUID. Only createGenerator() counts the seed up, and it also starts with that value.
# Matters:  the second create of a test has the client_id and the idempotency key of the first one, in every run. It
#           returns the first record or is refused as a conflict, and a load test writes a single record.
# Date:     2026-11-27
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund json-schema-faker@0.6.3
cat >main.mjs <<'JS'
import { createGenerator, generate } from "json-schema-faker";

const schema = {
  type: "object",
  required: ["client_id", "key"],
  properties: { client_id: { type: "string", pattern: "^[a-z]{12}$" }, key: { type: "string", format: "uuid" } },
};
const generator = createGenerator({});
const values = [await generate(schema), await generate(schema), await generate(schema, { seed: 1 })];
values.push(await generator.generate(schema), await generator.generate(schema));
for (const value of values) console.log(value.client_id, value.key);
JS

node main.mjs >first
node main.mjs >second
seen="values of generate(): $(head -n 3 first | sort -u | wc -l)
values of generate() and of a generator: $(sort -u first | wc -l)
another process differs: $(cmp -s first second && echo no || echo yes)"
expected='values of generate(): 1
values of generate() and of a generator: 2
another process differs: no'
diff <(echo "$expected") <(echo "$seen") || {
	echo "json-schema-faker-repeats: < as recorded, > seen now"
	exit 1
}
echo "json-schema-faker-repeats: as recorded: generate() returns the same UUID in each call and each process."

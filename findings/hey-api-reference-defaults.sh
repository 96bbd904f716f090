#!/usr/bin/env bash
# Package:  @hey-api/openapi-ts 0.99.0 with its zod plugin, zod 4.6.7
# Expected: the zod schema of a request fills in the default of a property that refers to an enum, like other defaults.
# Happens:  from an OpenAPI 3.0 document, in which a default is written next to allOf: [$ref], the default is lost. The
#           same goes for nullable and for oneOf: [$ref]; inline enums and strings keep theirs. From a 3.1 document with
#           the same allOf, or with the default next to $ref, it is kept. The generator prints no warning.
# Matters:  parse({}) returns a request without issuer_mode or sub_mode although every other default is filled in. Which
#           fields a form shows depends on the version of the document that the client was generated from.
# Date:     2026-11-27
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund @hey-api/openapi-ts@0.99.0 esbuild@0.28.2 typescript@5.9.3 zod@4.6.7
cat >document.mjs <<'JS'
const reference = { $ref: "#/components/schemas/Mode" };
const mode = { type: "string", enum: ["global", "per_provider"] };
const properties = {
  inline: { ...mode, default: "global" },
  all_of: { allOf: [reference], default: "global" },
  one_of: { oneOf: [reference], default: "global" },
  text: { type: "string", default: "global" },
};
if (process.argv[2] === "3.0.3") properties.nullable = { nullable: true, allOf: [reference], default: null };
else properties.next_to_reference = { ...reference, default: "global" };
const content = { "application/json": { schema: { $ref: "#/components/schemas/Request" } } };
const post = { operationId: "create", requestBody: { content }, responses: { 204: { description: "Stored" } } };
console.log(
  JSON.stringify({
    openapi: process.argv[2],
    info: { title: "Providers", version: "1" },
    paths: { "/providers": { post } },
    components: { schemas: { Mode: mode, Request: { type: "object", properties } } },
  }),
);
JS

seen=
for version in 3.0.3 3.1.0; do
	node document.mjs $version >openapi.json
	echo 'export default { input: "./openapi.json", output: "./generated", plugins: ["zod"] };' >openapi-ts.config.mjs
	npx openapi-ts >log 2>&1 || { cat log && exit 1; }
	npx esbuild generated/zod.gen.ts --bundle --platform=node --format=esm --log-level=error --outfile=zod.mjs
	seen+="$version $(node -e 'import("./zod.mjs").then((m) => console.log(JSON.stringify(m.zRequest.parse({}))))')"$'\n'
done
expected='3.0.3 {"inline":"global","text":"global"}
3.1.0 {"inline":"global","all_of":"global","one_of":"global","text":"global","next_to_reference":"global"}
'
diff <(echo "$expected") <(echo "$seen") || {
	echo "hey-api-reference-defaults: < as recorded, > seen now"
	exit 1
}
echo "hey-api-reference-defaults: as recorded: a default next to allOf is lost from OpenAPI 3.0 and kept from 3.1."

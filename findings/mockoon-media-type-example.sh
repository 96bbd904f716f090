#!/usr/bin/env bash
# Package:  @mockoon/commons 9.9.0, the importer and exporter of Mockoon
# Expected: a mock that is imported from OpenAPI serves the example of a response, and an exported mock can be imported.
# Happens:  the example of a media type is never read. The body is generated from the schema, and is empty without one.
#           The exporter writes bodies into this very member, so an export that is imported again has lost them all.
#           An example in the schema is served; those in examples become additional responses, none the default.
# Matters:  a contract describes each refusal by an example. The mock of a refusal has values that are made up from the
#           schema instead, so what a caller tests against it is not what the contract shows.
# Date:     2026-11-27
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund @mockoon/commons@9.9.0
cat >main.js <<'JS'
const { OpenApiConverter } = require("@mockoon/commons");

const schema = { type: "object", properties: { detail: { type: "string", default: "schema" } } };
const example = { detail: "example" };
const media = {
  "schema and example": { schema, example },
  "example alone": { example },
  "example in the schema": { schema: { ...schema, example } },
  "schema and examples": { schema, examples: { one: { value: example } } },
};
const show = (name, { routes }) => {
  const bodies = routes[0].responses.map((one) => (one.default ? "default " : "") + (one.body || "empty"));
  console.log(`${name}: ${bodies.join(", ").replace(/\s+/g, " ")}`);
};

async function main() {
  const converter = new OpenApiConverter();
  const importFrom = (content) => {
    const paths = { "/a": { post: { responses: { 422: { description: "Refused", content } } } } };
    const info = { title: "Refusals", version: "1" };
    return converter.convertFromOpenAPI(JSON.stringify({ openapi: "3.0.3", info, paths }));
  };
  for (const [name, type] of Object.entries(media)) show(name, await importFrom({ "application/problem+json": type }));

  const mock = await importFrom({ "application/problem+json": media["example in the schema"] });
  const exported = await converter.convertToOpenAPIV3(mock, "json");
  console.log("exported:", JSON.stringify(JSON.parse(exported).paths["/a"].post.responses[422].content));
  show("imported again", await converter.convertFromOpenAPI(exported));
}
main();
JS

seen=$(node main.js)
expected='schema and example: default { "detail": "schema" }
example alone: default empty
example in the schema: default { "detail": "example" }
schema and examples: default { "detail": "schema" }, { "detail": "example" }
exported: {"application/problem+json":{"example":"{\n  \"detail\": \"example\"\n}"}}
imported again: default empty'
diff <(echo "$expected") <(echo "$seen") || {
	echo "mockoon-media-type-example: < as recorded, > seen now"
	exit 1
}
echo "mockoon-media-type-example: as recorded: Mockoon serves no example of a media type, not even its own."

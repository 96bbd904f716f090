#!/usr/bin/env bash
# Package:  openapi-to-postmanv2 6.3.3 (npm), the importer of Postman
# Expected: a property, parameter or header of an OpenAPI 3.1 document with `const` has this value in the collection:
#           it is the only one that the server accepts.
# Happens:  const is ignored. With a type, the value is a placeholder such as "<string>", or one made up from the type
#           with parametersResolution "Example"; without a type it is an empty string. A oneOf of const values is an
#           empty string as well. An enum of one value and a default are used.
# Matters:  since 3.1, generators write the discriminator of a record as const. Each imported request is refused until
#           the value is typed in by hand, and saved example responses show a value that no server sends.
# Date:     2026-11-28
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund openapi-to-postmanv2@6.3.3

cat >run.cjs <<'JS'
const { convertV2 } = require('openapi-to-postmanv2');

const properties = {
  const: { const: 'oauth2' },
  typed: { type: 'string', const: 'oauth2' },
  choice: { oneOf: [{ const: 'a' }, { const: 'b' }] },
  enum: { type: 'string', enum: ['oauth2'] },
  default: { type: 'string', default: 'oauth2' },
};
const content = { 'application/json': { schema: { type: 'object', properties } } };
const data = {
  openapi: '3.1.0',
  info: { title: 'Records', version: '1' },
  paths: {
    '/records': {
      post: {
        parameters: [{ name: 'X-Kind', in: 'header', schema: { type: 'string', const: 'oauth2' } }],
        requestBody: { content },
        responses: { 201: { description: 'Created', content } },
      },
    },
  },
};
const first = (item) => (item.item ? first(item.item[0]) : item);

function show(options) {
  convertV2({ type: 'json', data: structuredClone(data) }, options, (error, result) => {
    if (error || !result.result) throw error ?? new Error(result.reason);
    const { request, response } = first(result.output[0].data.item[0]);
    console.log('request', JSON.stringify(JSON.parse(request.body.raw)));
    console.log('header', request.header.find(({ key }) => key === 'X-Kind').value);
    console.log('response', JSON.stringify(JSON.parse(response[0].body)));
  });
}

show({});
show({ parametersResolution: 'Example' });
JS

seen=$(node run.cjs)
schema='{"const":"","typed":"<string>","choice":"","enum":"oauth2","default":"oauth2"}'
example='{"const":"","typed":"string","choice":"","enum":"oauth2","default":"oauth2"}'
expected="request $schema
header <string>
response $schema
request $example
header string
response $example"
if [ "$seen" != "$expected" ]; then
  printf 'postman-ignores-const: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "postman-ignores-const: as recorded: a const is imported as an empty string or as <string>"

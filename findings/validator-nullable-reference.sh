#!/usr/bin/env bash
# Package:  express-openapi-validator 5.6.2 with express 5.3.0 (npm)
# Expected: in an OpenAPI 3.0 document, an optional property `nullable: true` next to `allOf: [$ref]` accepts null, or
#           refuses it, because the enum that it refers to has no null. Requests without the property are accepted.
# Happens:  the middleware starts without an error, and then each request to the operation fails with 500:
#           "nullable" cannot be used without "type". An unused property is enough. With `type: string` added, null
#           alone is refused.
# Matters:  generators of 3.0 documents write a nullable enum in this form. Such a contract is valid for linters and
#           clients, and a server that is protected by the middleware refuses every create.
# Date:     2026-11-28
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts express-openapi-validator@5.6.2 express@5.3.0
cat >run.mjs <<'JS'
import express from 'express';
import { middleware } from 'express-openapi-validator';

const reference = { nullable: true, allOf: [{ $ref: '#/components/schemas/Mode' }] };
for (const [name, mode] of Object.entries({ reference, 'with type': { type: 'string', ...reference } })) {
  const schema = { type: 'object', properties: { mode, name: { type: 'string' } } };
  const apiSpec = {
    openapi: '3.0.3',
    info: { title: 'Records', version: '1' },
    paths: {
      '/records': {
        post: {
          requestBody: { content: { 'application/json': { schema } } },
          responses: { 201: { description: 'Created' } },
        },
      },
    },
    components: { schemas: { Mode: { type: 'string', enum: ['a', 'b'] } } },
  };
  const app = express();
  app.use(express.json(), middleware({ apiSpec }));
  app.post('/records', (request, response) => response.status(201).json({}));
  app.use((error, request, response, next) => response.status(error.status ?? 500).json(error.message));
  const server = await new Promise((resolve) => {
    const started = app.listen(0, '127.0.0.1', () => resolve(started));
  });
  for (const body of [{ name: 'wiki' }, { mode: 'a' }, { mode: null }]) {
    const response = await fetch(`http://127.0.0.1:${server.address().port}/records`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    console.log(name, JSON.stringify(body), response.status, await response.text());
  }
  server.close();
  server.closeAllConnections();
}
JS

seen=$(node run.mjs)
message='500 "\"nullable\" cannot be used without \"type\""'
expected="reference {\"name\":\"wiki\"} $message
reference {\"mode\":\"a\"} $message
reference {\"mode\":null} $message
with type {\"name\":\"wiki\"} 201 {}
with type {\"mode\":\"a\"} 201 {}
with type {\"mode\":null} 400 \"request/body/mode must be string\""
if [ "$seen" != "$expected" ]; then
  printf 'validator-nullable-reference: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "validator-nullable-reference: as recorded: a nullable reference makes each request fail with 500"

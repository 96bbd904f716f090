#!/usr/bin/env bash
# Package:  @mswjs/source 0.5.0 with msw 2.15.0 (npm)
# Expected: a handler that fromOpenApi creates returns the example of the success response, such as 201 for a create.
# Happens:  it returns 200 or, without one, default. An operation that has neither is "501 Not Implemented", although
#           its 201 has an example. With 201 and default, it returns default, which is usually the error. The query
#           parameter ?response=201 selects the 201 in each case.
# Matters:  a create returns 201. Mocked from its contract, it fails with a status that the contract does not have, or
#           the test sees the problem document of an error, and the error is sent with the status 200.
# Date:     2026-11-28
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @mswjs/source@0.5.0 msw@2.15.0
cat >run.mjs <<'JS'
import { fromOpenApi } from '@mswjs/source/open-api';
import { getResponse } from 'msw';

const response = (type, example) => ({ description: 'A response', content: { [type]: { example } } });
const record = response('application/json', { pk: 7 });
const problem = response('application/problem+json', { detail: 'refused' });
const post = (responses) => ({ post: { responses } });
const handlers = await fromOpenApi({
  openapi: '3.0.3',
  info: { title: 'Records', version: '1' },
  servers: [{ url: 'https://api.example.com' }],
  paths: {
    '/200': post({ 200: record, 422: problem }),
    '/201': post({ 201: record, 422: problem }),
    '/201-and-default': post({ 201: record, default: problem }),
  },
});
for (const path of ['/200', '/201', '/201?response=201', '/201-and-default']) {
  const request = new Request(`https://api.example.com${path}`, { method: 'POST', body: '{}' });
  const answer = await getResponse(handlers, request);
  console.log(path, answer.status, await answer.text());
}
JS

seen=$(node run.mjs)
expected='/200 200 {"pk":7}
/201 501 Not Implemented
/201?response=201 201 {"pk":7}
/201-and-default 200 {"detail":"refused"}'
if [ "$seen" != "$expected" ]; then
  printf 'mswjs-source-needs-200: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "mswjs-source-needs-200: as recorded: a create that is documented with 201 alone is mocked as 501"

#!/usr/bin/env bash
# Package:  undici 7.30.2 (npm)
# Expected: with the interceptor `retry` and POST among its methods, a POST that gets a 503 is sent again, through
#           `fetch` as through `request`. If the last attempt fails too, fetch returns the 503.
# Happens:  request does so. fetch has used the body up at the second attempt, although it was a string, and fails with
#           "fetch failed" instead of returning the 503. A fetch without a body is sent again.
# Matters:  a create with an idempotency key is safe to repeat, and a caller that configures it for fetch gets less
#           than without the interceptor: no second attempt, no status, no Retry-After and no problem document.
# Date:     2026-11-28
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund undici@7.30.2
cat >run.mjs <<'JS'
import http from 'node:http';
import { Agent, fetch, interceptors, request } from 'undici';

let received = 0;
const server = http.createServer((incoming, response) => {
  incoming.resume();
  incoming.on('end', () => {
    response.statusCode = ++received < 3 ? 503 : 201;
    if (incoming.url === '/503') response.statusCode = 503;
    response.end('{}');
  });
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${server.address().port}`;
const dispatcher = new Agent().compose(interceptors.retry({ maxRetries: 2, minTimeout: 1, methods: ['GET', 'POST'] }));
const show = async (name, send) => {
  received = 0;
  const outcome = await send().catch((error) => `${error.message}, ${error.cause?.message}`);
  console.log(`${name}: ${outcome}`);
};
const post = { method: 'POST', body: '{}' };
await show('request POST', async () => (await request(url, { ...post, dispatcher })).statusCode);
await show('fetch POST', async () => (await fetch(`${url}/503`, { ...post, dispatcher })).status);
await show('fetch POST, no interceptor', async () => (await fetch(`${url}/503`, post)).status);
await show('fetch GET', async () => (await fetch(url, { dispatcher })).status);
server.close();
server.closeAllConnections();
process.exit(0);
JS

seen=$(node run.mjs)
expected='request POST: 201
fetch POST: fetch failed, Request body length does not match content-length header
fetch POST, no interceptor: 503
fetch GET: 201'
if [ "$seen" != "$expected" ]; then
  printf 'undici-fetch-retry: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "undici-fetch-retry: as recorded: fetch with the retry interceptor cannot repeat a POST, and hides the 503"

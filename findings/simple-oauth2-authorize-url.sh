#!/usr/bin/env bash
# Package:  simple-oauth2 5.1.0 (npm)
# Expected: two resource indicators (RFC 8707) given as a list are sent as two `resource` parameters, and a parameter
#           that is undefined is omitted.
# Happens:  authorizeURL joins the list with a comma into one `resource`, which is the URI of neither. getToken and
#           refresh of the same library send the parameter twice, as the RFC asks. authorizeURL also turns undefined
#           and null into the strings "undefined" and "null".
# Matters:  authorization and token requests of one client name different resources, and the server refuses the first
#           or ignores it. `login_hint: user?.email` sends the user "undefined". Build the query yourself.
# Date:     2026-11-28
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund simple-oauth2@5.1.0

cat >run.mjs <<'JS'
import http from 'node:http';
import { AuthorizationCode, ClientCredentials } from 'simple-oauth2';

let body;
const server = http.createServer(async (request, response) => {
  body = '';
  for await (const chunk of request) body += chunk;
  response.setHeader('Content-Type', 'application/json');
  response.end('{"access_token": "a", "token_type": "Bearer", "expires_in": 60}');
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));

const config = {
  client: { id: 'app', secret: 'secret' },
  auth: { tokenHost: `http://127.0.0.1:${server.address().port}` },
};
const parameters = { scope: ['read', 'write'], resource: ['https://a.example.com', 'https://b.example.com'] };
const show = (name, query) => console.log(name, JSON.stringify(query.getAll('resource')), query.get('scope'));

const code = new AuthorizationCode(config);
const url = new URL(code.authorizeURL({ ...parameters, login_hint: undefined, max_age: null }));
show('authorize', url.searchParams);
console.log(url.search.split('&').filter((part) => /^(login_hint|max_age)=/.test(part)).join(' '));

await new ClientCredentials(config).getToken(parameters);
show('token', new URLSearchParams(body));
await code.createToken({ access_token: 'o', refresh_token: 'r', expires_in: 1 }).refresh(parameters);
show('refresh', new URLSearchParams(body));
server.closeAllConnections();
server.close();
JS

seen=$(node run.mjs)
expected='authorize ["https://a.example.com,https://b.example.com"] read write
login_hint=undefined max_age=null
token ["https://a.example.com","https://b.example.com"] read write
refresh ["https://a.example.com","https://b.example.com"] read write'
if [ "$seen" != "$expected" ]; then
  printf 'simple-oauth2-authorize-url: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "simple-oauth2-authorize-url: as recorded: two resources become one with a comma, and undefined is sent"

#!/usr/bin/env bash
# Package: deno 2.9.6 (npm), next to the fetch of Node.
# Expected: if a server reads a POST on a reused connection and closes it without a response, fetch reports an error,
#   as it does in Node, because the client cannot know whether the server stored anything.
# Happens: Deno sends the POST a second time on a new connection and returns the second response. It does so for
#   PATCH and DELETE too, without an Idempotency-Key, and through node:http as well as fetch. Only a streamed body
#   is not sent twice.
# Why it matters here: a create without an Idempotency-Key is stored twice, and the caller sees one 201. A server that
#   restarts or closes idle connections causes this. Deno programs must send an Idempotency-Key with every create.
# Date: 2026-11-27
set -euo pipefail
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund deno@2.9.6
export DENO_DIR="$dir/cache" DENO_NO_UPDATE_CHECK=1

# The first request of a connection gets a response. The second one is read whole, and the connection is closed.
cat >server.mjs <<'JS'
import net from 'node:net';
import fs from 'node:fs';
let writes = 0;
const server = net.createServer((socket) => {
  let received = '';
  let requests = 0;
  socket.on('error', () => {});
  socket.on('data', (data) => {
    received += data.toString('latin1');
    const end = received.indexOf('\r\n\r\n');
    if (end < 0) return;
    const head = received.slice(0, end);
    const chunked = /transfer-encoding: *chunked/i.test(head);
    const length = Number((/content-length: *(\d+)/i.exec(head) ?? [0, 0])[1]);
    if (chunked ? !received.endsWith('0\r\n\r\n') : received.length < end + 4 + length) return;
    received = '';
    requests++;
    if (!head.startsWith('GET')) writes++;
    if (requests > 1) return socket.destroy();
    const body = head.startsWith('GET /writes') ? String(writes) : 'ok';
    if (head.startsWith('GET /writes')) writes = 0;
    const close = head.startsWith('GET /writes') ? 'Connection: close\r\n' : '';
    const status = head.startsWith('GET') ? '200 OK' : '201 Created';
    socket.write(`HTTP/1.1 ${status}\r\n${close}Content-Length: ${body.length}\r\n\r\n${body}`);
    if (close) socket.end();
  });
});
server.listen(0, '127.0.0.1', () => {
  fs.writeFileSync('port.new', String(server.address().port));
  fs.renameSync('port.new', 'port');
});
JS
node server.mjs &
server=$!
until [ -f port ]; do sleep 0.1; done

cat >client.mjs <<'JS'
import http from 'node:http';
import process from 'node:process';
const [port, through, method, body] = process.argv.slice(2);
const url = `http://127.0.0.1:${port}/`;
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const withHTTP = (method, body) => new Promise((resolve, reject) => {
  const request = http.request(url, { method, agent }, (response) => {
    response.resume();
    response.on('end', () => resolve(response.statusCode));
  });
  request.on('error', reject);
  request.end(body);
});
const withFetch = async (method, body) => {
  const stream = body === 'stream' ? { body: new Blob(['{}']).stream(), duplex: 'half' } : { body };
  const response = await fetch(url, { method, ...stream });
  await response.text();
  return response.status;
};
const send = through === 'http' ? withHTTP : withFetch;
await send('GET');
await new Promise((resolve) => setTimeout(resolve, 100));
const outcome = await send(method, body).catch(() => 'error');
const counted = new Promise((resolve) => {
  http.get(`${url}writes`, { agent: false }, (response) => {
    let text = '';
    response.on('data', (data) => { text += data; });
    response.on('end', () => resolve(text));
  });
});
console.log(`${through} ${method} ${body === 'stream' ? 'stream ' : ''}${outcome} received ${await counted}`);
process.exit(0);
JS
port=$(cat port)
deno=(node_modules/.bin/deno run --quiet --no-config --no-lock --allow-all client.mjs "$port")
seen=$(
  for through in fetch http; do node client.mjs "$port" "$through" POST '{}' | sed 's/^/node /'; done
  for through in fetch http; do "${deno[@]}" "$through" POST '{}' | sed 's/^/deno /'; done
  for method in PATCH DELETE; do "${deno[@]}" fetch "$method" '{}' | sed 's/^/deno /'; done
  "${deno[@]}" fetch POST stream | sed 's/^/deno /'
)
expected='node fetch POST error received 1
node http POST error received 1
deno fetch POST 201 received 2
deno http POST 201 received 2
deno fetch PATCH 201 received 2
deno fetch DELETE 201 received 2
deno fetch POST stream error received 1'
if [ "$seen" != "$expected" ]; then
  printf 'deno-sends-posts-twice: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "deno-sends-posts-twice: as recorded: Deno sends a POST twice and returns 201; Node reports an error"

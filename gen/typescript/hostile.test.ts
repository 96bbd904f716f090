import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from "node:net";
import { Readable } from "node:stream";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";

import { ConnectionError, createClient, ProblemError, TimeoutError, type ClientOptions } from "./client.js";

const request = { name: "x", authorization_flow: "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", client_secret: "hunter2" };
const blanks = " ".repeat(1024 * 1024);

/** A server that is not providerd. */
interface Stranger {
  url: string;
  host: string;
  connections: number;
  requests: number;
}

const running: Server[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  const closed = running.splice(0).map((server) => new Promise((resolve) => server.close(resolve)));
  for (const socket of sockets.splice(0)) {
    socket.destroy();
  }
  await Promise.all(closed);
});

async function listen(server: Server, scheme = "http"): Promise<Stranger> {
  running.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const stranger: Stranger = { url: `${scheme}://${host}`, host, connections: 0, requests: 0 };
  server.on("connection", (socket) => {
    stranger.connections++;
    sockets.push(socket.on("error", () => undefined));
  });
  server.on("request", () => stranger.requests++);
  return stranger;
}

function stranger(listener: RequestListener): Promise<Stranger> {
  return listen(
    createServer((request, response) => {
      request.resume().once("end", () => listener(request, response));
    }),
  );
}

/** The error of a create that must fail. It must quote neither the token, the request nor the response. */
async function failure(url: string, options: ClientOptions = {}): Promise<Error> {
  const create = createClient(url, "pvd_hunter2", options).createOAuth2(request);
  const error: unknown = await create.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Error);
  const text = `${String(error)} ${String((error as Error).cause)}`;
  expect(text).not.toContain("hunter2");
  expect(text.length).toBeLessThan(4096);
  return error as Error;
}

/** Expects a create to fail permanently, after one try. */
async function refusedOnce(server: Stranger, message: string, options?: ClientOptions): Promise<void> {
  expect((await failure(server.url, options)).message).toContain(message);
  expect(server.requests).toBe(1);
}

/** A server with a fixed response. */
function answering(status: number, headers: Record<string, string>, body = ""): Promise<Stranger> {
  return stranger((_, response) => response.writeHead(status, headers).end(body));
}

test.each([300, 301, 302, 303, 307, 308])("does not follow a redirect with %i", async (status) => {
  const target = await answering(200, {});
  const elsewhere = target.host.replace("127.0.0.1", "localhost");
  for (const [location, host] of [
    [`http://user:hunter2@${target.host}/hunter2?code=hunter2#hunter2`, target.host],
    [`http://${elsewhere}/hunter2`, elsewhere],
    [`https://${target.host}/hunter2`, target.host],
  ] as const) {
    for (const options of [{}, { fetch: (sent: Request) => fetch(sent) }]) {
      await refusedOnce(await answering(status, { Location: location }), `The server redirects to ${host}. `, options);
    }
  }
  expect(target.connections).toBe(0);
});

test.each([
  ["a path", "/hunter2", "127.0.0.1:"],
  ["nothing", "", "127.0.0.1:"],
  ["no scheme", "//other.example/hunter2", "other.example."],
  ["no URL", "http://[hunter2", "an unknown host."],
  ["no host", "data:hunter2", "an unknown host."],
  ["a long host", `https://${"a.".repeat(4000)}example/`, "a.a.…. Redirects"],
])("tells no more of a redirect than its host: %s", async (_, location, host) => {
  await refusedOnce(await answering(307, { Location: location }), host);
});

test("refuses a redirect that a browser hides, and one that fetch has followed", async () => {
  for (const shown of [{ type: "opaqueredirect", status: 0 }, { redirected: true, url: "http://other.example/hunter2" }]) {
    const response = new Response();
    for (const [name, value] of Object.entries(shown)) {
      Object.defineProperty(response, name, { value });
    }
    const error = await failure("http://127.0.0.1:9", { fetch: () => Promise.resolve(response) });
    expect(error).toBeInstanceOf(ProblemError);
    expect(error.message).toMatch(/The server redirects to (an unknown host|other\.example)\./);
  }
});

const json = "application/json";
const noPk = "the response has no pk; is this a providerd server?";
const noRecord = "the response is not the record of a provider; is this a providerd server?";
const otherType = "the response is not of the type application/json; is this a providerd server?";
const otherKind = "the response is not a record of the kind that was sent; is this a providerd server?";
const noDocument = "The response is not a problem document.";
const record = (pk: string) => `{"pk": ${pk}, "name": "hunter2", "meta_model_name": "providers_oauth2.oauth2provider"}`;

test.each([
  [201, json, "{}", noPk],
  [201, json, "null", noPk],
  [201, json, record("0"), noPk],
  [201, json, record("-1"), noPk],
  [201, json, record("1.5"), noPk],
  [201, json, record("2147483648"), noPk],
  [201, json, record('"1"'), noPk],
  [201, json, "[]", noRecord],
  [201, json, '"hunter2"', noRecord],
  [201, json, "", noRecord],
  [201, json, `${record("1")}hunter2`, noRecord],
  [201, json, "[".repeat(100_000), noRecord],
  [201, json, '{"pk": 1}', otherKind],
  [201, json, '{"pk": 1, "meta_model_name": "hunter2"}', otherKind],
  [201, "", record("1"), otherType],
  [201, "text/html", record("1"), otherType],
  [201, "application/json-seq", record("1"), otherType],
  [200, json, record("1"), noDocument],
  [204, json, "", noDocument],
  [400, json, '{"status": 401, "detail": "hunter2"}', noDocument],
  [400, json, '{"status": 400, "errors": {"hunter2": 1}}', noDocument],
  [400, json, '{"status": 400, "errors": [null, "hunter2"]}', noDocument],
  [400, "text/plain", "hunter2", noDocument],
])("makes an error of a response that is not from providerd: %#", async (status, contentType, body, message) => {
  await refusedOnce(await answering(status, { "Content-Type": contentType }, body), message);
});

test("accepts a record from any server", async () => {
  for (const contentType of [json, "Application/JSON; charset=utf-8"]) {
    const server = await answering(201, { "Content-Type": contentType }, record("2147483647") + blanks);
    expect(await createClient(server.url, "t").createOAuth2(request)).toMatchObject({ pk: 2147483647 });
  }
});

/** Writes until the client disconnects or 64 MiB are written. */
function flood(response: ServerResponse): void {
  Readable.from(Array(64).fill(blanks)).pipe(response);
}

test.each<[string, RequestListener, RegExp]>([
  ["body", (_, response) => flood(response.writeHead(201, { "Content-Type": json })), /larger than 16 MiB/],
  [
    "zip bomb",
    (_, response) => {
      const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, " "));
      response.writeHead(201, { "Content-Type": json, "Content-Encoding": "gzip" }).end(bomb);
    },
    /larger than 16 MiB/,
  ],
  ["header", (_, response) => response.writeHead(201, { "X-Long": "hunter2".repeat(20_000) }).end(), /^the connection to .* failed: Headers Overflow/],
  [
    "title",
    (_, response) => {
      const problem = { status: 400, title: "\u001b[31m\n\u2028", detail: "x".repeat(1_000_000), errors: [{}] };
      response.writeHead(400, { "Content-Type": json }).end(JSON.stringify(problem));
    },
    /^400 \uFFFD\[31m\uFFFD\uFFFD: x+…$/,
  ],
])("bounds an endless %s", async (_, listener, message) => {
  const server = await stranger(listener);
  expect((await failure(server.url)).message).toMatch(message);
  expect(server.requests).toBe(1);
});

test.each<[string, RequestListener]>([
  ["says nothing", () => undefined],
  [
    "drips",
    (_, response) => {
      response.writeHead(201, { "Content-Type": json });
      const drops = setInterval(() => response.write(" "), 10);
      response.once("close", () => clearInterval(drops));
    },
  ],
])("leaves a server that %s, after another try", async (_, listener) => {
  const server = await stranger(listener);
  const error = await failure(server.url, { tryTimeoutSeconds: 0.3, retries: 1 });
  expect(error).toBeInstanceOf(TimeoutError);
  expect(error.message).toBe(
    `no complete response from ${server.url} within 0.3s; ` +
      "check the server and the network, or allow more time with tryTimeoutSeconds",
  );
  expect(server.requests).toBe(2);
});

test("names the server of a failed connection, and what to do", async () => {
  const check = "; check the server and the network";
  const gone = await stranger(() => undefined);
  await new Promise((resolve) => running.pop()?.close(resolve));
  for (const url of [gone.url, gone.url.replace("127.0.0.1", "localhost")]) {
    const refused = await failure(`${url}/api/v3`, { retries: 0 });
    expect(refused).toBeInstanceOf(ConnectionError);
    expect(refused).toMatchObject({ name: "ConnectionError", url, temporary: true, cause: { code: "ECONNREFUSED" } });
    expect(refused.message).toBe(
      `nothing accepts connections at ${url} (connection refused); start the server, or check the host and the port`,
    );
  }
  const hangsUp = await stranger((request) => request.socket.destroy());
  const cutsOff = await stranger((_, response) => {
    response.writeHead(201, { "Content-Type": json, "Content-Length": "100" });
    response.write("{", () => response.destroy());
  });
  for (const { url } of [hangsUp, cutsOff]) {
    const lost = await failure(url, { retries: 0 });
    expect(lost).toBeInstanceOf(ConnectionError);
    expect(lost.message).toMatch(new RegExp(`^the connection to ${url} failed: .*${check}$`));
    expect(lost).toMatchObject({ temporary: true });
  }
  const browsers = { retries: 0, fetch: () => Promise.reject(new TypeError("Failed to fetch")) };
  const unexplained = await failure("https://example.com", browsers);
  expect(unexplained.message).toBe(`the connection to https://example.com failed: Failed to fetch${check}`);
});

test.each([
  ["ENOTFOUND", "the host of https://example.com is unknown; check its name and DNS"],
  ["CERT_HAS_EXPIRED", "the certificate of https://example.com is expired or not yet valid (REASON); renew it, or set the clock"],
  [
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "the certificate of https://example.com is not for this host (REASON); use a host that it names, or install one for this host",
  ],
  [
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "the certificate of https://example.com is not trusted (REASON); " +
      "set NODE_EXTRA_CA_CERTS to a PEM file with the certificate of its issuer",
  ],
  ["UND_ERR_CONNECT_TIMEOUT", "the connection to https://example.com timed out (REASON); check the server and the network"],
])("says what to do about %s", async (code, message) => {
  const cause = Object.assign(new Error("REASON"), { code });
  const options = { retries: 0, fetch: () => Promise.reject(new TypeError("fetch failed", { cause })) };
  const error = await failure("https://example.com", options);
  expect(error).toBeInstanceOf(code.includes("TIMEOUT") ? TimeoutError : ConnectionError);
  expect(error.message).toBe(message);
  expect(error.cause).toBe(cause);
});

test.each(["Client sent an HTTP request to an HTTPS server.", "<h1>The plain HTTP request was sent to HTTPS port</h1>"])(
  "says that a port expects HTTPS: %s",
  async (page) => {
    const server = await answering(400, {}, `${page} hunter2`);
    const error = await failure(server.url);
    expect(error.message).toBe(`the server at ${server.url} expects HTTPS; use ${server.url.replace("http", "https")}`);
    expect(error).toMatchObject({ url: server.url, temporary: false });
    expect(error.cause).toBeInstanceOf(ProblemError);
    expect(server.requests).toBe(1);
  },
);

test.each([
  [404, "/elsewhere/api/v3/", "/elsewhere/api/v3 (404 Not Found); check the path /elsewhere, or use URL"],
  [405, "", "/api/v3 (405 Method Not Allowed); check the host and the port"],
])("says that a base URL leads to no API: %i", async (status, path, message) => {
  const server = await answering(status, {}, "hunter2");
  const error = await failure(server.url + path);
  expect(error).toBeInstanceOf(ProblemError);
  expect(error.message).toBe(`there is no providerd API at ${server.url}${message.replace("URL", server.url)}`);
});

test("does not quote a request that a server sends back", async () => {
  const echo = await listen(createTcpServer((socket) => socket.pipe(socket)));
  const error = await failure(echo.url, { retries: 0 });
  expect(inspect(error, { depth: null, showHidden: true }) + JSON.stringify(error)).not.toContain("hunter2");
});

test("tries a server of another protocol, or without a certificate, once", async () => {
  const plain = await answering(201, {});
  const encryptedUrl = plain.url.replace("http:", "https:");
  expect((await failure(encryptedUrl)).message).toBe(
    `the server at ${encryptedUrl} does not speak HTTPS; use ${plain.url}, or enable TLS on the server`,
  );
  expect(plain.connections).toBe(1);

  const encrypted = await listen(createTlsServer({}), "https");
  const other = await listen(createTcpServer((socket) => socket.end("220 hello\r\n")));
  for (const server of [encrypted, other]) {
    await failure(server.url);
    expect(server.connections).toBe(1);
  }
});

import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from "node:net";
import { Readable } from "node:stream";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";

import { createClient, isTemporary, ProblemError, type Client, type ClientOptions } from "./client.js";

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
const noRecord = "the response is not the record of a provider of this kind; check the base URL";
const noDocument = "The response is not a problem document.";
const elsewhere = "This is not the API of providerd. Check the host, port and path of the base URL.";
const encrypted = "The server uses TLS. Use https:// in the base URL.";
const record = (pk: string) => `{"pk": ${pk}, "name": "hunter2", "meta_model_name": "providers_oauth2.oauth2provider"}`;

test.each([
  [201, json, "{}", noRecord],
  [201, json, "null", noRecord],
  [201, json, record("0"), noRecord],
  [201, json, record("-1"), noRecord],
  [201, json, record("1.5"), noRecord],
  [201, json, record("9007199254740993"), noRecord],
  [201, json, record('"1"'), noRecord],
  [201, json, "[]", noRecord],
  [201, json, '"hunter2"', noRecord],
  [201, json, "", noRecord],
  [201, json, `${record("1")}hunter2`, noRecord],
  [201, json, "[".repeat(100_000), noRecord],
  [201, json, '{"pk": 1}', noRecord],
  [201, json, '{"pk": 1, "meta_model_name": "hunter2"}', noRecord],
  [201, "", record("1"), noRecord],
  [201, "text/html", record("1"), noRecord],
  [201, "application/json-seq", record("1"), noRecord],
  [200, json, record("1"), "the status is 200 instead of 201; check the base URL"],
  [204, json, "", "the status is 204 instead of 201; check the base URL"],
  [400, json, '{"status": 401, "detail": "hunter2"}', noDocument],
  [400, json, '{"status": 400, "errors": {"hunter2": 1}}', noDocument],
  [400, json, '{"status": 400, "errors": [null, "hunter2"]}', noDocument],
  [400, json, '{"status": 400, "errors": [{"detail": {"toString": 1}}]}', "400 : "],
  [400, "text/plain", "hunter2", noDocument],
  [404, "text/plain", "hunter2", elsewhere],
  [405, json, '{"message": "hunter2"}', elsewhere],
  [501, "text/html", "hunter2", elsewhere],
  [400, "", "Client sent an HTTP request to an HTTPS server.\n", encrypted],
  [400, "text/html", "<p>The plain HTTP request was sent to HTTPS port", encrypted],
  [400, "text/html", "You're speaking plain HTTP to an SSL-enabled server port.", encrypted],
])("makes an error of a response that is not from providerd: %#", async (status, contentType, body, message) => {
  await refusedOnce(await answering(status, { "Content-Type": contentType }, body), message);
});

test("accepts a record from any server", async () => {
  for (const contentType of [json, "Application/JSON; charset=utf-8"]) {
    const server = await answering(201, { "Content-Type": contentType }, record("9007199254740991") + blanks);
    expect(await createClient(server.url, "t").createOAuth2(request)).toMatchObject({ pk: 9007199254740991 });
  }
});

const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, " "));

/** Writes until the client disconnects or 64 MiB are written. */
function flood(response: ServerResponse): void {
  Readable.from(Array(64).fill(blanks)).pipe(response);
}

test.each<[string, RequestListener, RegExp]>([
  ["body", (_, response) => flood(response.writeHead(201, { "Content-Type": json })), /larger than 16 MiB/],
  [
    "zip bomb",
    (_, response) => response.writeHead(201, { "Content-Type": json, "Content-Encoding": "gzip" }).end(bomb),
    /larger than 16 MiB/,
  ],
  ["header", (_, response) => response.writeHead(201, { "X-Long": "hunter2".repeat(20_000) }).end(), /^fetch failed: Headers Overflow Error$/],
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
  expect(error).toMatchObject({ name: "TimeoutError", message: "no complete response within 0.3 s" });
  expect(isTemporary(error)).toBe(true);
  expect(server.requests).toBe(2);
});

test("throws the errors of fetch", async () => {
  const gone = await stranger(() => undefined);
  await new Promise((resolve) => running.pop()?.close(resolve));
  const hangsUp = await stranger((request) => request.socket.destroy());
  const cutsOff = await stranger((_, response) => {
    response.writeHead(201, { "Content-Type": json, "Content-Length": "100" });
    response.write("{", () => response.destroy());
  });
  for (const { url } of [gone, hangsUp, cutsOff]) {
    const lost = await failure(url, { retries: 0 });
    expect(lost).toBeInstanceOf(TypeError);
    expect(isTemporary(lost)).toBe(true);
    expect(lost.message.endsWith("; start the server, or check the base URL")).toBe(url === gone.url);
  }
  const cause = new Error("REASON");
  const fetch = () => Promise.reject(new TypeError("fetch failed", { cause }));
  expect((await failure("https://example.com", { retries: 0, fetch })).cause).toBe(cause);
});

test("does not quote a request that a server sends back", async () => {
  const echo = await listen(createTcpServer((socket) => socket.pipe(socket)));
  const error = await failure(echo.url, { retries: 0 });
  expect(inspect(error, { depth: null, showHidden: true }) + JSON.stringify(error)).not.toContain("hunter2");
});

test("tries a server of another protocol, or without a certificate, once", async () => {
  const plain = await answering(201, {});
  const encryptedUrl = plain.url.replace("http:", "https:");
  expect(isTemporary(await failure(encryptedUrl))).toBe(false);
  expect(plain.connections).toBe(1);

  const encrypted = await listen(createTlsServer({}), "https");
  const other = await listen(createTcpServer((socket) => socket.end("220 hello\r\n")));
  for (const server of [encrypted, other]) {
    await failure(server.url);
    expect(server.connections).toBe(1);
  }
});

/** A client of a server of a later version, whose response this package does not know. */
function newer(status: number, contentType: string, answer: object): Client {
  const fetch = () => Promise.resolve(Response.json(answer, { status, headers: { "Content-Type": contentType } }));
  return createClient("http://example.com", "t", { fetch });
}

test("returns a record with new enum values unchanged", async () => {
  const modes = { client_type: "new_type", sub_mode: "new_mode", issuer_mode: "new_issuer" };
  const model = { meta_model_name: "providers_oauth2.oauth2provider", component: "a-new-form", verbose_name: "New" };
  const oauth2 = { pk: 1, ...model, ...modes, a_new_field: {} };
  expect(await newer(201, "application/json", oauth2).createOAuth2(request)).toEqual(oauth2);
  const meta_model_name = "providers_workspace_directory.workspacedirectoryprovider";
  const directory = { pk: 1, meta_model_name, user_delete_action: "archive" };
  const requested = { name: "x", delegated_subject: "admin@example.com", credentials: {}, default_group_email_domain: "example.com" };
  expect(await newer(201, "application/json", directory).createWorkspaceDirectory(requested)).toEqual(directory);
});

test("returns a refusal with a new type and code unchanged", async () => {
  const errors = [{ pointer: "/name", code: "too_short", detail: "`name` must be longer." }];
  const known = { type: "/problems/new", title: "New", status: 400, detail: "Something new.", request_id: "r", errors };
  const problem = { ...known, a_new_member: [] };
  const refused = newer(400, "application/problem+json", problem).createOAuth2(request);
  const error: unknown = await refused.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ProblemError);
  expect((error as ProblemError).problem).toEqual(problem);
  expect((error as ProblemError).message).toContain("`name` must be longer.");
});

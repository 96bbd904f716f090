import { createRequire } from "node:module";
import { resolve } from "node:path";

import "vitest";

import { createClient, ProblemError, type ClientOptions, type OAuth2ProviderRequest } from "./client.js";
import { startServer, type Server } from "./server.js";

declare module "vitest" {
  interface Assertion<T = any> {
    toSatisfyApiSpec(): T;
  }
}

// With require, because the types of the module do not match its exports.
const { default: jestOpenAPI } = createRequire(import.meta.url)("jest-openapi") as {
  default: (contract: string) => void;
};
jestOpenAPI(resolve("../../openapi.yaml"));

let server: Server;
let baseUrl: string;
let token: string;

beforeAll(async () => {
  server = await startServer();
  ({ baseUrl, token } = server);
});

afterAll(() => server.stop());

/** Sends a request and checks the response against the contract. */
async function checked(request: Request): Promise<Response> {
  const { method, url } = request;
  const response = await fetch(request);
  const body: unknown = await response.clone().json();
  const answer = { status: response.status, body, req: { method, path: new URL(url).pathname } };
  expect(answer).toSatisfyApiSpec();
  return response;
}

function client(options: ClientOptions = {}) {
  return createClient(baseUrl, token, { fetch: checked, ...options });
}

function request(name: string): OAuth2ProviderRequest {
  return { name, authorization_flow: "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01" };
}

const directory = {
  name: "Staff",
  delegated_subject: "admin@example.com",
  credentials: { key: "example" },
  default_group_email_domain: "example.com",
};

/** The error of a create that must fail. */
async function refusal(create: Promise<unknown>): Promise<ProblemError> {
  const error: unknown = await create.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ProblemError);
  return error as ProblemError;
}

test("checks responses against the contract", () => {
  const answer = { status: 401, body: { title: "x" }, req: { method: "POST", path: "/api/v3/providers/oauth2/" } };
  expect(() => expect(answer).toSatisfyApiSpec()).toThrow(/required/);
  expect(() => expect({ ...answer, status: 402 }).toSatisfyApiSpec()).toThrow(/402/);
});

test("creates a provider of each kind", async () => {
  const oauth2 = await client().createOAuth2({ ...request("Intranet"), client_type: "public", redirect_uris: "https://example.com/" });
  expect(oauth2).toMatchObject({ name: "Intranet", client_secret: "", redirect_uris: "https://example.com/", jwks_sources: [] });
  const stored = await client().createWorkspaceDirectory(directory);
  expect(stored).toMatchObject({ ...directory, user_delete_action: "do_nothing", pk: oauth2.pk + 1 });
});

test("reports all violations", async () => {
  const error = await refusal(client().createOAuth2({ ...request(" "), sub_mode: "x" as "user_id" }));
  expect(error.status).toBe(400);
  expect(error.type).toBe("/problems/validation-failed");
  expect(error.violations.map(({ pointer, code }) => [pointer, code])).toEqual([
    ["/name", "blank"],
    ["/sub_mode", "enum"],
  ]);
  expect(error.message).toContain("`sub_mode` must be one of");
  expect(error.message).toContain(error.problem.request_id);
});

test("finds the record of an earlier call by its key", async () => {
  const options = { idempotencyKey: "staff", lenient: true };
  const first = await client().createWorkspaceDirectory(directory, options);
  expect(await client().createWorkspaceDirectory(directory, options)).toEqual(first);
  const error = await refusal(client().createWorkspaceDirectory({ ...directory, name: "Others" }, options));
  expect(error.status).toBe(422);
});

test("validates without storing anything", async () => {
  const options = { idempotencyKey: "validated" };
  const before = await client().createOAuth2(request("before a validation"));
  for (let i = 0; i < 2; i++) {
    expect(await client().validateOAuth2(request("x"), options)).toMatchObject({ outcome: "would_create", pk: null });
  }
  const { pk } = await client().createOAuth2(request("x"), options);
  expect(pk).toBe(before.pk + 1);
  expect(await client().validateOAuth2(request("x"), options)).toMatchObject({ outcome: "already_created", pk });
  const fresh = await client().validateWorkspaceDirectory({ ...directory, x: 1 } as typeof directory, { lenient: true });
  expect(fresh.outcome).toBe("would_create");
});

test("refuses in a validation what it refuses in a create", async () => {
  const options = { idempotencyKey: "differs" };
  const { pk } = await client().createOAuth2(request("x"), options);
  const changed = { ...request("y"), redirect_uris: "https://app.example.com/" };
  for (const send of ["validateOAuth2", "createOAuth2"] as const) {
    const { problem } = await refusal(client()[send](changed, options));
    expect(problem).toMatchObject({ status: 422, pk, errors: [{ pointer: "/name", code: "differs" }, { pointer: "/redirect_uris", code: "differs" }] });
  }
  const error = await refusal(client().validateWorkspaceDirectory({ ...directory, name: " " }));
  expect(error.violations).toMatchObject([{ pointer: "/name", code: "blank" }]);
});

test("refuses responses other than a verdict", async () => {
  const json = { "Content-Type": "application/json" };
  for (const [status, body, headers, message] of [
    [201, { pk: 1, meta_model_name: "providers_oauth2.oauth2provider" }, json, /does not support validate_only and stored the provider/],
    [200, { outcome: "would_create", pk: null, advice: [] }, { "Content-Type": "text/html" }, /is not of the type/],
    ...[
      {},
      null,
      "hunter2",
      { outcome: "hunter2", pk: null },
      { outcome: "would_create", pk: 1, advice: [] },
      { outcome: "would_create", pk: null },
      { outcome: "already_created", pk: null, advice: [] },
      { outcome: "already_created", pk: 1.5, advice: [] },
    ].map((body) => [200, body, json, /^the response is not a verdict(?!.*hunter2)/] as const),
  ] as const) {
    let tries = 0;
    const strange = client({
      fetch: () => {
        tries++;
        return Promise.resolve(new Response(JSON.stringify(body), { status, headers }));
      },
    });
    await expect(strange.validateOAuth2(request("x"))).rejects.toThrow(message);
    expect(tries).toBe(1);
  }
});

test("retries lost responses and temporary refusals with one key, and creates one record", async () => {
  const keys: (string | null)[] = [];
  const before = await client().createOAuth2(request("before"));
  const losing = client({
    fetch: async (sent) => {
      keys.push(sent.headers.get("Idempotency-Key"));
      const response = await checked(sent);
      if (keys.length === 1) {
        throw new TypeError("fetch failed");
      }
      if (keys.length === 2) {
        const problem = { type: "/problems/overloaded", title: "Overloaded", status: 503, detail: "d", request_id: "r" };
        return Response.json(problem, { status: 503, headers: { "Retry-After": "1" } });
      }
      return response;
    },
  });
  const begun = Date.now();
  const record = await losing.createOAuth2(request("x"));
  expect(Date.now() - begun).toBeGreaterThanOrEqual(1000);
  expect(keys).toHaveLength(3);
  expect(new Set(keys).size).toBe(1);
  expect(record.pk).toBe(before.pk + 1);
  expect((await client().createOAuth2(request("after"))).pk).toBe(record.pk + 1);
});

test("stops retrying", async () => {
  let tries = 0;
  const unavailable = client({
    retries: 1,
    fetch: () => {
      tries++;
      return Promise.resolve(new Response("<html>", { status: 503, statusText: "Service Unavailable" }));
    },
  });
  const error = await refusal(unavailable.createOAuth2(request("x")));
  expect(error.problem).toMatchObject({ status: 503, type: "about:blank", title: "Service Unavailable" });
  expect(tries).toBe(2);
});

test("stops waiting when it is aborted", async () => {
  const controller = new AbortController();
  const unavailable = client({
    fetch: () => {
      setTimeout(() => controller.abort(), 10);
      return Promise.resolve(new Response("{}", { status: 503, headers: { "Retry-After": "60" } }));
    },
  });
  await expect(unavailable.createOAuth2(request("x"), { signal: controller.signal })).rejects.toThrow(/abort/);
});

/** The message of an error. */
function thrown(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  return "nothing";
}

test("refuses invalid arguments", async () => {
  for (const url of [
    "",
    "localhost:8080",
    "ftp://example.com",
    "http://",
    "http://[",
    "http://hunter2:hunter2@example.com",
    "http://example.com?hunter2",
    "http://example.com/api/v3/#hunter2",
  ]) {
    expect(thrown(() => createClient(url, "t"))).toMatch(/^the base URL is not(?!.*hunter2)/);
  }
  expect(() => createClient(baseUrl, "")).toThrow(/token is empty/);
  for (const ending of ["\n", "\r\nX-Other: 1", " ", "\0", "é"]) {
    expect(thrown(() => createClient(baseUrl, `hunter2${ending}`))).toMatch(/^the access token contains(?!.*hunter2)/);
  }
  for (const tryTimeoutSeconds of [0, -1, NaN, 1e9]) {
    expect(() => createClient(baseUrl, "t", { tryTimeoutSeconds })).toThrow(/timeout/);
  }
  const error = await refusal(createClient(baseUrl, "wrong", { fetch: checked }).createOAuth2(request("x")));
  expect(error.status).toBe(401);
});

test.each([
  ["http://example.com", "http://example.com"],
  ["http://example.com//", "http://example.com"],
  ["http://example.com/api/v3", "http://example.com"],
  ["http://example.com/api/v3//", "http://example.com"],
  ["https://example.com:8443/a/b", "https://example.com:8443/a/b"],
  ["http://example.com/a/api/v3/", "http://example.com/a"],
  ["http://example.com/rapi/v3", "http://example.com/rapi/v3"],
])("takes a base URL with and without the path of the API: %s", async (url, root) => {
  let sent = "";
  const failing = createClient(url, "t", {
    retries: 0,
    fetch: (request) => {
      sent = request.url;
      return Promise.reject(new Error("enough"));
    },
  });
  await expect(failing.createOAuth2(request("x"))).rejects.toThrow(/^enough$/);
  expect(sent).toBe(`${root}/api/v3/providers/oauth2/`);
});

test("does not send invalid requests", async () => {
  let tries = 0;
  const counting = client({
    fetch: () => {
      tries++;
      return Promise.reject(new TypeError("fetch failed"));
    },
  });
  for (const idempotencyKey of ["", "hunter2 ", "hunter2\n", "hunter2é", "k".repeat(256)]) {
    await expect(counting.createOAuth2(request("x"), { idempotencyKey })).rejects.toThrow(
      /^the idempotency key is not 1 to 255 visible ASCII characters$/,
    );
  }
  const circle: Record<string, unknown> = {};
  circle["hunter2"] = circle;
  for (const credentials of [circle, { hunter2: 1n }]) {
    await expect(counting.createWorkspaceDirectory({ ...directory, credentials })).rejects.toThrow(
      /^the request cannot be encoded as JSON$/,
    );
  }
  expect(tries).toBe(0);
});

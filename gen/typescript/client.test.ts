import { inspect } from "node:util";

import * as sdk from "./client.js";
import { createClient, ProblemError, type ClientOptions, type OAuth2ProviderRequest } from "./client.js";
import { startServer } from "./testdata/server.js";

const server = await startServer();

afterAll(() => server.stop());

function client(options: ClientOptions = {}) {
  return createClient(server.baseUrl, server.token, options);
}

/** A client whose tries all end in the same way, and how many there were. */
function counting(answer: (sent: Request) => Promise<Response>) {
  const counted = { tries: 0, client: client() };
  counted.client = client({ fetch: (sent) => (counted.tries++, answer(sent)) });
  return counted;
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
  const error: unknown = await create.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ProblemError);
  return error as ProblemError;
}

test("creates a provider of each kind", async () => {
  const oauth2 = await client().createOAuth2({ ...request("Intranet"), client_type: "public", redirect_uris: "https://example.com/" });
  expect(oauth2).toMatchObject({ name: "Intranet", client_secret: "", redirect_uris: "https://example.com/", jwks_sources: [] });
  const stored = await client().createWorkspaceDirectory(directory);
  expect(stored).toMatchObject({ ...directory, user_delete_action: "do_nothing", pk: oauth2.pk + 1 });
});

test("reports all violations", async () => {
  const error = await refusal(client().createOAuth2({ ...request("\u200b"), sub_mode: "x" as "user_id" }));
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
  const second = await client().createWorkspaceDirectory(directory, options);
  expect(second).toEqual(first);
  expect([first.replayed, second.replayed]).toEqual([false, true]);
  expect({ ...second }).not.toHaveProperty("replayed");
  const error = await refusal(client().createWorkspaceDirectory({ ...directory, name: "Others" }, options));
  expect(error.status).toBe(422);
});

test("validates without storing anything", async () => {
  const options = { idempotencyKey: "validated" };
  const validate = { ...options, validateOnly: true };
  const before = await client().createOAuth2(request("before a validation"));
  const signing_key = "6a7b8c9d-0e1f-4a2b-8c3d-4e5f6a7b8c9d";
  const body = { ...request("x"), redirect_uris: "http://app.example.com/", signing_key };
  for (let i = 0; i < 2; i++) {
    const record = await client().createOAuth2(body, validate);
    expect(record).toMatchObject({ pk: 0, client_id: "", access_token_validity: "hours=1" });
    expect([record.client_secret, record.replayed]).toEqual(["", false]);
    expect(record.advice).toMatchObject([{ code: "redirect_uri_http", pointer: "/redirect_uris" }]);
    expect(record.advice[0]?.detail).toMatch(/^Line 1: /);
  }
  const { pk, client_id } = await client().createOAuth2(body, options);
  expect(pk).toBe(before.pk + 1);
  const stored = await client().createOAuth2(body, validate);
  expect(stored).toMatchObject({ pk, client_id });
  expect([stored.client_secret, stored.replayed]).toEqual(["", true]);
  const lenient = { lenient: true, validateOnly: true };
  const fresh = await client().createWorkspaceDirectory({ ...directory, x: 1 } as typeof directory, lenient);
  expect([fresh.pk, fresh.credentials, fresh.advice]).toEqual([0, {}, []]);
  const { problem } = await refusal(client().createOAuth2({ ...body, name: "y" }, validate));
  expect(problem).toMatchObject({ status: 422, pk, errors: [{ pointer: "/name", code: "differs" }] });
});

test("refuses other responses to a validation", async () => {
  const record = { pk: 0, meta_model_name: "providers_oauth2.oauth2provider" };
  for (const [status, body, message] of [
    [201, { ...record, pk: 1 }, /^the status is 201 instead of 200; check the base URL$/],
    ...[{}, null, "hunter2", { ...record, pk: -1 }, { ...record, meta_model_name: "hunter2" }].map(
      (body) => [200, body, /^the response is not the record of a provider(?!.*hunter2)/] as const,
    ),
  ] as const) {
    const strange = counting(() => Promise.resolve(Response.json(body, { status })));
    await expect(strange.client.createOAuth2(request("x"), { validateOnly: true })).rejects.toThrow(message);
    expect(strange.tries).toBe(1);
  }
});

test("reads advice whatever its sentences contain", async () => {
  const link = '</other>; title="x", </advice/#a_b>; rel="help"; anchor="#/x"; title="Say \\"no, <yes>\\" \\\\ .", </advice/>; rel="help"';
  const body = { pk: 0, meta_model_name: "providers_oauth2.oauth2provider" };
  const fetch = () => Promise.resolve(Response.json(body, { headers: { Link: link } }));
  const record = await client({ fetch }).createOAuth2(request("x"), { validateOnly: true });
  expect(record.advice).toEqual([{ code: "a_b", pointer: "/x", detail: 'Say "no, <yes>" \\ .' }]);
});

test("retries lost responses and temporary refusals with one key, and creates one record", async () => {
  const keys: (string | null)[] = [];
  const before = await client().createOAuth2(request("before"));
  const losing = client({
    fetch: async (sent) => {
      keys.push(sent.headers.get("Idempotency-Key"));
      const response = await fetch(sent);
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

test("refuses invalid arguments", () => {
  for (const url of [
    ...["", "localhost:8080", "ftp://example.com", "http://", "http://[", "http://hunter2:hunter2@example.com"],
    ...["http://example.com?hunter2", "http://example.com/api/v3/#hunter2", "http://example.com/api/v3/providers/oauth2/", " http://example.com", "http://example.com "],
    ...[undefined, 1, new URL("http://example.com/hunter2"), { baseUrl: server.baseUrl, token: "hunter2" }],
  ]) {
    expect(() => createClient(url as string, "t")).toThrow(/^the base URL is not(?!.*hunter2).*; call createClient\(baseUrl, token, options\)$/);
  }
});

test.each<[fault: string, tokens: readonly unknown[]]>([
  ["is not visible ASCII", ["\n", "\r\nX-Other: 1", " ", "\0", "é"].map((ending) => `hunter2${ending}`)],
  ["is not a string", [1, { token: "hunter2" }, Promise.resolve("hunter2")]],
  ["is empty, a placeholder", ["", undefined, null, "undefined", "$(cat hunter2)", "${hunter2}", "{{hunter2}}", "<hunter2>", "%hunter2%"]],
  ["is the path of a file", ["../hunter2", "/hunter2", "~hunter2", "C:\\hunter2", "hunter2.txt", "a/initial-token", "a/token"]],
  ["begins with Bearer", ["Bearer hunter2", "bearer\thunter2\n", "Bearer "]],
])("refuses an access token that %s", (fault, tokens) => {
  for (const token of tokens) {
    expect(() => createClient(server.baseUrl, token as string)).toThrow(new RegExp(`^the access token ${fault}(?!.*hunter2).*; `));
  }
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
  const failing = (request: Request) => ((sent = request.url), Promise.reject(new Error("enough")));
  await expect(createClient(url, "B/a+s=", { retries: 0, fetch: failing }).createOAuth2(request("x"))).rejects.toThrow(/^enough$/);
  expect(sent).toBe(`${root}/api/v3/providers/oauth2/`);
});

test("learns from the server which field is misspelled", async () => {
  const misspelled = { name: "x", authorizationFlow: request("x").authorization_flow } as unknown as OAuth2ProviderRequest;
  expect((await refusal(client().createOAuth2(misspelled))).message).toContain("did you mean authorization_flow?");
});

test("sends what is probably a mistake only if told to", async () => {
  const empty = { ...request("x"), client_secret: "", redirect_uris: "https://a.example/,https://b.example/" };
  const { client_secret, redirect_uris } = await client().createOAuth2(empty, { unchecked: true });
  expect({ ...request("x"), client_secret, redirect_uris }).toEqual(empty);
});

test("does not send invalid requests", async () => {
  const none = counting(() => Promise.reject(new TypeError("fetch failed")));
  const circle: Record<string, unknown> = {};
  circle["hunter2"] = circle;
  for (const credentials of [circle, { get hunter2() { throw new Error("hunter2"); } }]) {
    await expect(none.client.createWorkspaceDirectory({ ...directory, credentials })).rejects.toThrow(
      /^the request cannot be encoded as JSON$/,
    );
  }
  expect(none.tries).toBe(0);
});

test.each([undefined, "", "00000000-0000-0000-0000-000000000000"])("does not send the unset flow %j", async (unset) => {
  const sending = counting(fetch);
  const request = { name: "Nil", authorization_flow: unset as string };
  const message = /^authorization_flow is not set; set it to the flow that authorizes this provider$/;
  await expect(sending.client.createOAuth2(request)).rejects.toThrow(message);
  await expect(sending.client.createOAuth2(request, { validateOnly: true })).rejects.toThrow(message);
  expect(sending.tries).toBe(0);
  const nil = { unchecked: true };
  if (unset) {
    expect((await sending.client.createOAuth2(request, nil)).authorization_flow).toBe(unset);
  } else {
    await expect(sending.client.createOAuth2(request, nil)).rejects.toThrow("`authorization_flow`");
  }
  expect(sending.tries).toBe(1);
});

const classes = {
  [sdk.problemTypes.validationFailed]: sdk.ValidationFailedError,
  [sdk.problemTypes.unauthorized]: sdk.UnauthorizedError,
  [sdk.problemTypes.forbidden]: sdk.ForbiddenError,
  [sdk.problemTypes.notFound]: sdk.NotFoundError,
  [sdk.problemTypes.clientIdTaken]: sdk.ClientIdTakenError,
  [sdk.problemTypes.idempotencyKeyReused]: sdk.IdempotencyKeyReusedError,
  [sdk.problemTypes.tooManyRequests]: sdk.TooManyRequestsError,
  [sdk.problemTypes.overloaded]: sdk.OverloadedError,
  [sdk.problemTypes.outcomeUnknown]: sdk.OutcomeUnknownError,
  [sdk.problemTypes.storageUnavailable]: sdk.StorageUnavailableError,
};

test.each(Object.entries(classes))("has a class for refusal %s", async (type, { name }) => {
  const problem = { type, title: "T", status: 400, detail: "d", request_id: "r" };
  const fetch = () => Promise.resolve(Response.json(problem, { status: 400 }));
  const error = await refusal(client({ fetch }).createOAuth2(request("x")));
  expect(error).toMatchObject({ name, type });
  expect(inspect(error)).toMatch(new RegExp(`^${name}: 400 T: d`));
  for (const [other, kind] of Object.entries(classes)) {
    expect(error instanceof kind).toBe(other === type);
  }
});

test("throws refusals of a server by class", async () => {
  const named = { ...request("x"), client_id: "taken" };
  await client().createOAuth2(named, { idempotencyKey: "k" });
  expect(await refusal(client().createOAuth2(named))).toBeInstanceOf(sdk.ClientIdTakenError);
  const reused = await refusal(client().createOAuth2(request("x"), { idempotencyKey: "k" }));
  expect(reused).toBeInstanceOf(sdk.IdempotencyKeyReusedError);
  expect(reused.violation("/client_id")?.code).toBe("differs");
  const stranger = createClient(server.baseUrl, "wrong");
  expect(await refusal(stranger.createOAuth2(request("x")))).toBeInstanceOf(sdk.UnauthorizedError);
  const elsewhere = createClient(`${server.baseUrl}/elsewhere`, server.token);
  expect(await refusal(elsewhere.createOAuth2(request("x")))).toBeInstanceOf(sdk.NotFoundError);
});

test("has the problem types of the server", async () => {
  const page = await (await fetch(`${server.baseUrl}/problems/`)).text();
  const types = [...page.matchAll(/href="(\/problems\/[^"]+)"/g)].map(([, type]) => type);
  const { foreign, ...known } = sdk.problemTypes;
  expect(foreign).toBe("about:blank");
  expect(Object.values(known).sort()).toEqual(types.sort());
});

test("says that a server does not use TLS, and with which URL it can be reached", async () => {
  const host = server.baseUrl.replace("http://", "");
  const encrypted = createClient(`https://${host}/`, server.token);
  const error: unknown = await encrypted.createOAuth2(request("hunter2")).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(TypeError);
  const message = `https://${host} does not use TLS; if it is the intended server, use http://${host}`;
  expect(error).toMatchObject({ message, cause: { code: "ERR_SSL_WRONG_VERSION_NUMBER" } });
  expect(sdk.isTemporary(error)).toBe(false);
  expect(inspect(error, { depth: null })).not.toMatch(new RegExp(`hunter2|${server.token}`));
});

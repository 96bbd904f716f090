import { createClient, duration, InvalidArgument, isTemporary, redirectUris, Secret, type ClientOptions, type CreateOptions } from "./client.js";

const url = "http://example.com";
const request = { name: "x", authorization_flow: "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01" };
const directory = { name: "x", delegated_subject: "admin@example.com", credentials: {}, default_group_email_domain: "example.com" };

/** The errors of a create of each kind with options, for each of which nothing may be sent. */
async function errorsOf(options: unknown): Promise<unknown[]> {
  let tries = 0;
  const client = createClient(url, "t", { fetch: () => (tries++, Promise.reject(new TypeError("fetch failed"))), retries: 0 });
  const creates = [
    client.createOAuth2(request, options as CreateOptions),
    client.createWorkspaceDirectory(directory, options as CreateOptions),
  ];
  const errors = await Promise.all(creates.map((create) => create.catch((reason: unknown) => reason)));
  expect(tries).toBe(0);
  return errors;
}

/** Expects a permanent TypeError that quotes no value. */
function expectRefusal(error: unknown, message: string | RegExp): void {
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toBeInstanceOf(InvalidArgument);
  expect(String(error)).toMatch(/^InvalidArgument: /);
  const text = (error as Error).message;
  expect(text).toMatch(typeof message === "string" ? new RegExp(`^${message}$`) : message);
  expect(text).not.toContain("hunter2");
  expect(isTemporary(error)).toBe(false);
}

/** What a function throws. */
function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}

test.each<[string, readonly unknown[]]>([
  ["the timeout of an attempt is not positive or is longer than a day", [0, -1, NaN, 1e9, Infinity].map((tryTimeoutSeconds) => ({ tryTimeoutSeconds }))],
  ["the number of retries is not a whole number of at least 0", [-1, NaN, 1.5, Infinity].map((retries) => ({ retries }))],
  ["tryTimeoutSeconds is not of the type number", ["30", null, 30n].map((tryTimeoutSeconds) => ({ tryTimeoutSeconds }))],
  ["retries is not of the type number", ["3", null, true].map((retries) => ({ retries }))],
  ["fetch is not of the type function", ["hunter2", null, {}].map((fetch) => ({ fetch }))],
  ["the options are not an object; write { fetch: VALUE }", [null, "hunter2", 1]],
])("refuses invalid options of a client: %s", (message, invalid) => {
  for (const options of invalid) {
    expectRefusal(thrown(() => createClient(url, "t", options as ClientOptions)), message);
  }
});

test.each(["timeout", "tryTimeout", "Retries", "max_retries", "idempotencyKey", "toString"])("refuses the client's unknown option %s", (name) => {
  const error = thrown(() => createClient(url, "t", { [name]: "hunter2" } as ClientOptions));
  expectRefusal(error, `${name} is not one of the options fetch, retries, tryTimeoutSeconds`);
});

test("takes undefined for a default of the client", () => {
  createClient(url, "t", { fetch: undefined, retries: undefined, tryTimeoutSeconds: undefined } as unknown as ClientOptions);
});

test.each<[string, () => unknown]>([
  ["a base URL", () => createClient("hunter2", "t")],
  ["a token", () => createClient(url, "hunter2\n")],
  ["a promise of a token", () => createClient(url, Promise.resolve("hunter2") as never)],
  ["a duration", () => duration({})],
  ["a redirect URI", () => redirectUris(1 as unknown as string)],
  ["an empty redirect URI", () => redirectUris("https://a.example/", "")],
])("says that %s is invalid for good", (_, call) => {
  expectRefusal(thrown(call), /./);
});

type Mistake = [option: string, values: readonly unknown[], message: RegExp];

test.each<Mistake>([
  ...["idempotency_key", "idempotencyKEY", "Idempotency-Key", "IdempotencyKey", "key"].map(
    (name): Mistake => [name, ["hunter2"], /^[A-Za-z_-]+ is not one of the options idempotencyKey, validateOnly, lenient, signal, unchecked$/],
  ),
  ...["validate_only", "validateonly", "dryRun"].map((name): Mistake => [name, [true], /, validateOnly, /]),
  ...["timeout", "retries", "nil_authorization_flow", "constructor"].map((name): Mistake => [name, [1], / is not one of the options /]),
  [
    "idempotencyKey",
    [undefined, "", "hunter2 ", "hunter2\n", "hunter2é", "k".repeat(256)],
    /^the idempotency key is not 1 to 255 visible ASCII characters; write one without spaces, such as import-wiki$/,
  ],
  ["idempotencyKey", [null, 1, true, ["hunter2"]], /^idempotencyKey is not of the type string$/],
  ...["validateOnly", "lenient", "unchecked"].map(
    (name): Mistake => [name, ["true", "hunter2", 1, 0, null], /^\w+ is not of the type boolean$/],
  ),
  ["signal", ["hunter2", 1, null, {}, new AbortController()], /^signal is not of the type AbortSignal, such as controller\.signal$/],
])("sends nothing with the option %s of a create if it is unknown or invalid", async (name, values, message) => {
  for (const value of values) {
    const options = { [name]: value };
    // An inherited option counts, too.
    for (const given of [options, { validateOnly: true, ...options }, Object.create(options) as object]) {
      for (const error of await errorsOf(given)) {
        expectRefusal(error, message);
      }
    }
  }
});

test.each([null, "hunter2", 1, [], new Map([["idempotencyKey", "hunter2"]])])("sends nothing with the options %j", async (options) => {
  for (const error of await errorsOf(options)) {
    expectRefusal(error, "the options are not an object; write { idempotencyKey: VALUE }");
  }
});

const uris = "redirect_uris is not a string with one URI on each line; pass each URI as an argument of redirectUris\\(\\)";
const secret = (fault: string) => `client_secret is ${fault}; pass its value, or omit it`;
const foreign = "not JSON, but bytes, a promise or the like; parse or await it";
const nested = "a value in credentials or a list";
const copied: unknown = JSON.parse(JSON.stringify(new Secret("hunter2")));

test.each<[message: string, requests: readonly unknown[]]>([
  ["the request is not an object", [undefined, null, "hunter2", 1, [request], new Map([["name", "hunter2"]])]],
  ["the request is a promise; await it", [Promise.resolve(request)]],
  [uris, [["https://a.example/"], redirectUris, null, { a: 1 }, "https://a.example/,https://b.example/", "a:b\nc:d; e://f", "https://a.example/\\nhttps://b.example/"].map((redirect_uris) => ({ ...request, redirect_uris }))],
  ["client_id is undefined; pass its value, or omit it", [{ ...request, client_id: undefined }]],
  [secret("undefined"), [undefined, new Secret(undefined)].map((client_secret) => ({ ...request, client_secret }))],
  [secret("empty"), ["", new Secret("")].map((client_secret) => ({ ...request, client_secret }))],
  [secret("the mask of a secret"), [copied, new Secret(copied)].map((client_secret) => ({ ...request, client_secret })).concat([{ ...request, toJSON: () => ({ ...request, client_secret: "********" }) }] as never)],
  [`client_secret is ${foreign}`, [() => "hunter2", Promise.resolve("hunter2"), Buffer.from("hunter2"), new Secret(Buffer.from("hunter2"))].map((client_secret) => ({ ...request, client_secret }))],
  [`credentials is ${foreign}`, [Buffer.from("{}"), new Map(), Promise.resolve({})].map((credentials) => ({ ...directory, credentials }))],
  ["credentials is a string; pass the object, such as JSON\\.parse\\(text\\)", ["hunter2", new Secret("{}"), "********x"].map((credentials) => ({ ...directory, credentials }))],
  ["credentials is undefined; pass its value, or omit it", [{ ...directory, credentials: new Secret(undefined) }]],
  [`${nested} is undefined; pass its value, or omit it`, [{ hunter2: undefined }, { a: [new Secret(undefined)] }].map((credentials) => ({ ...directory, credentials }))],
  [`${nested} is ${foreign}`, [NaN, Infinity, 1n].map((hunter2) => ({ ...directory, credentials: { hunter2 } }))],
  [`${nested} is empty; pass its value, or omit it`, [{ ...directory, credentials: { hunter2: new Secret("") } }]],
  ["validateOnly is an option, not a field; pass it in the second argument", [{ ...request, validateOnly: true }, { ...request, validate_only: true }]],
])("sends nothing for a request by mistake: %s", async (message, requests) => {
  let tries = 0;
  const client = createClient(url, "t", { fetch: () => (tries++, Promise.reject(new TypeError("fetch failed"))), retries: 0 });
  for (const sent of requests) {
    for (const create of [client.createOAuth2(sent as never), client.createWorkspaceDirectory(sent as never)]) {
      expectRefusal(await create.catch((reason: unknown) => reason), message);
    }
  }
  expect(tries).toBe(0);
});

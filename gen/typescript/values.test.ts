import { inspect } from "node:util";

import { createClient, duration, InvalidArgument, redirectUris, Secret, ValidationFailedError } from "./client.js";
import type { Duration, OAuth2ProviderRequest, WorkspaceDirectoryProviderRequest } from "./client.js";
import { startServer } from "./testdata/server.js";

const flow = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01";
const server = await startServer();

afterAll(() => server.stop());

function client() {
  return createClient(server.baseUrl, server.token);
}

function create(values: { access_token_validity?: string; redirect_uris?: string }) {
  return client().createOAuth2({ name: "x", authorization_flow: flow, ...values });
}

test.each<[Duration, string]>([
  [{ seconds: 0 }, "seconds=0"],
  [{ minutes: 30, hours: 1 }, "hours=1;minutes=30"],
  [{ seconds: 1.5 }, "seconds=1.5"],
  [{ seconds: 1e-9 }, "seconds=0.000000001"],
  [{ hours: 999_999_999, seconds: 999_999_999.5 }, "hours=999999999;seconds=999999999.5"],
  [{ weeks: 1, days: 2, milliseconds: 100, microseconds: 999_999_999 }, "weeks=1;days=2;milliseconds=100;microseconds=999999999"],
])("makes a duration that the server takes: %j", async (length, text) => {
  expect(duration(length)).toBe(text);
  expect((await create({ access_token_validity: text })).access_token_validity).toBe(text);
});

test.each([
  [[], ""],
  [["https://a.example/"], "https://a.example/"],
  [["https://a.example/", "myapp:back"], "https://a.example/\nmyapp:back"],
  [["https://a.example/\r\nhttps://b.example/\r\n", "myapp:back\n"], "https://a.example/\r\nhttps://b.example/\nmyapp:back"],
])("makes redirect URIs that the server takes: %j", async (uris, text) => {
  expect(redirectUris(...uris)).toBe(text);
  expect(redirectUris(uris)).toBe(text);
  expect((await create({ redirect_uris: text })).redirect_uris).toBe(text);
});

test.each([
  ...[3600, null, "hours=1", [1], new Date(), {}, { hour: 1, minutes: 30 }, { hours: "1" }, { hours: undefined }, { hours: NaN }, { hours: Infinity }],
  ...[{ hours: -1 }, { minutes: 1, hours: -1e-9 }, { hours: 1e9 }, { hours: 1e21 }, { hours: 1n }, { hours: null }],
])("throws for the duration %o", (length) => {
  expect(() => duration(length as Duration)).toThrow(InvalidArgument);
  expect(() => duration(length as Duration)).toThrow(
    /^"hours?" of the duration is (not|a string; pass) a number of weeks, .*, at least 0 and below 1e9$|^the duration is not an object with a part; write one/,
  );
});

test("throws for redirect URIs that are not strings", () => {
  for (const uri of [new URL("https://a.example/"), undefined, 1]) {
    expect(() => redirectUris(uri as unknown as string)).toThrow(/^a redirect URI is empty or not a string; /);
  }
});

test.each(["https://a.example/ https://b.example/", "https://a.example/\rhttps://b.example/", "a.example"])(
  "makes nothing of the redirect URI %j",
  async (uri) => {
    const error: unknown = await create({ redirect_uris: redirectUris(uri) }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ValidationFailedError);
    expect((error as ValidationFailedError).violation("/redirect_uris")?.code).toBe("invalid_uri");
    expect((error as ValidationFailedError).violation("/name")).toBeUndefined();
  },
);

/** Everything that a program may print of a value. */
function shown(value: unknown): string {
  return [
    inspect(value, { depth: null, showHidden: true }),
    inspect({ value }, { depth: null }),
    JSON.stringify([value]),
    JSON.stringify({ ...(value as object) }),
    String(value),
  ].join("\n");
}

const directory = { name: "Staff", delegated_subject: "admin@example.com", default_group_email_domain: "example.com" };

test("sends secrets, and does not print them", async () => {
  const request = { name: "Wiki", authorization_flow: flow, client_secret: new Secret("hunter2") };
  expect(shown(request)).not.toContain("hunter2");
  expect(shown(request)).toContain("********");
  expect(`${request.client_secret} ${request.client_secret.reveal()}`).toBe("******** hunter2");
  const record = await client().createOAuth2(request);
  expect(record.client_secret).toBe("hunter2");
  expect(shown(record)).not.toContain("hunter2");
  expect(JSON.parse(JSON.stringify(record))).toEqual({ ...record, client_secret: "********" });
  expect(inspect(record)).toBe(inspect({ ...record, client_secret: "********" }));

  const credentials = { key: "hunter2", n: [1] };
  const ofDirectory = { ...directory, credentials: new Secret(credentials) };
  expect(shown(ofDirectory)).not.toContain("hunter2");
  const stored = await client().createWorkspaceDirectory(ofDirectory);
  expect(stored.credentials).toEqual(credentials);
  expect(shown(stored)).not.toContain("hunter2");
  expect(JSON.parse(JSON.stringify(stored))).toEqual({ ...stored, credentials: "********" });
  const nested = { ...directory, credentials: { key: new Secret("hunter2"), n: [1] } };
  expect((await client().createWorkspaceDirectory(nested)).credentials).toEqual(credentials);
});

test("accepts plain secrets, and lets those of a record be set", async () => {
  const oauth2: OAuth2ProviderRequest = { name: "Plain", authorization_flow: flow, client_secret: "hunter2" };
  const record = await client().createOAuth2(oauth2);
  record.client_secret = "other";
  expect(record.client_secret).toBe("other");
  const request: WorkspaceDirectoryProviderRequest = { ...directory, credentials: { key: "hunter2" } };
  expect((await client().createWorkspaceDirectory(request, { validateOnly: true })).pk).toBe(0);
});

test("prints neither the token nor a secret of a client or an error", async () => {
  const token = server.token.replace(/.$/, "x");
  const request = { name: " ", authorization_flow: flow, client_secret: "hunter2" };
  const strangers = createClient(server.baseUrl, token);
  const gone = createClient("http://127.0.0.1:1", token, { retries: 0 });
  const refused: unknown = await strangers.createOAuth2(request).catch((error: unknown) => error);
  const broken: unknown = await client().createOAuth2(request).catch((error: unknown) => error);
  const lost: unknown = await gone.createOAuth2(request).catch((error: unknown) => error);
  expect(lost).toBeInstanceOf(TypeError);
  for (const value of [strangers, refused, broken, lost]) {
    expect(shown(value)).not.toContain("hunter2");
    expect(shown(value)).not.toContain(token);
  }
});

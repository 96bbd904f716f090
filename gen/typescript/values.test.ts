import { createClient, duration, redirectUris, ValidationFailedError, type Duration } from "./client.js";
import { startServer } from "./testdata/server.js";

const server = await startServer();

afterAll(() => server.stop());

function create(values: { access_token_validity?: string; redirect_uris?: string }) {
  const request = { name: "x", authorization_flow: "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", ...values };
  return createClient(server.baseUrl, server.token).createOAuth2(request);
}

test.each<[Duration, string]>([
  [{ seconds: 0 }, "seconds=0"],
  [{ minutes: 30, hours: 1 }, "hours=1;minutes=30"],
  [{ seconds: 1.5 }, "seconds=1.5"],
  [{ seconds: 1e-9 }, "seconds=0.000000001"],
  [{ weeks: 1, days: 2, milliseconds: 100, microseconds: 999_999_999 }, "weeks=1;days=2;milliseconds=100;microseconds=999999999"],
])("makes a duration that the server takes: %j", async (length, text) => {
  expect(duration(length)).toBe(text);
  expect((await create({ access_token_validity: text })).access_token_validity).toBe(text);
});

test.each([
  [[], ""],
  [["https://a.example/"], "https://a.example/"],
  [["https://a.example/", "myapp:back"], "https://a.example/\nmyapp:back"],
])("makes redirect URIs that the server takes: %j", async (uris, text) => {
  expect(redirectUris(...uris)).toBe(text);
  expect(redirectUris(uris)).toBe(text);
  expect((await create({ redirect_uris: text })).redirect_uris).toBe(text);
});

test.each([3600, null, {}, { hour: 1, minutes: 30 }, { hours: "1" }, { hours: undefined }])("throws for the duration %j", (length) => {
  expect(() => duration(length as Duration)).toThrow(TypeError);
  expect(() => duration(length as Duration)).toThrow(/^"hours?" of the duration is not a number of weeks|^the duration has no part/);
});

test("throws for redirect URIs that are not strings", () => {
  for (const uri of [new URL("https://a.example/"), undefined, 1]) {
    expect(() => redirectUris(uri as unknown as string)).toThrow(/^a redirect URI is not a string$/);
  }
});

test.each([
  { access_token_validity: duration({ hours: -1 }) },
  { access_token_validity: duration({ seconds: NaN }) },
  { access_token_validity: duration({ seconds: 1e9 }) },
  { access_token_validity: duration({ seconds: 1e21 }) },
  { redirect_uris: redirectUris("https://a.example/\nhttps://b.example/") },
  { redirect_uris: redirectUris("https://a.example/\r\n") },
])("makes nothing of what has no value: %j", async (values) => {
  const error: unknown = await create(values).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ValidationFailedError);
  const [field = ""] = Object.keys(values);
  expect((error as ValidationFailedError).violation(`/${field}`)?.code).toMatch(/^invalid_(duration|uri)$/);
  expect((error as ValidationFailedError).violation("/name")).toBeUndefined();
});

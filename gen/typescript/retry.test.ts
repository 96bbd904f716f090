import { runInNewContext } from "node:vm";

import { createClient, isTemporary, ProblemError } from "./client.js";

const request = { name: "x", authorization_flow: "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01" };
const began = Date.UTC(2000, 0, 1);

beforeEach(() => {
  vi.useFakeTimers({ now: began });
});

afterEach(() => {
  vi.useRealTimers();
});

/** The pauses between the tries of a create that must fail, in seconds of the fake clock, and its error. */
async function pausesOf(fetch: () => Promise<Response>, retries = 4): Promise<{ pauses: number[]; error: Error }> {
  const times: number[] = [];
  const client = createClient("http://example.com", "t", {
    retries,
    fetch: () => {
      times.push(Date.now());
      return fetch();
    },
  });
  let error: unknown;
  const ended = client.createOAuth2(request).catch((reason: unknown) => {
    error = reason;
  });
  while (error === undefined) {
    await vi.advanceTimersByTimeAsync(50);
  }
  await ended;
  return { pauses: times.slice(1).map((time, i) => (time - (times[i] ?? 0)) / 1000), error: error as Error };
}

function answering(status: number, retryAfter = ""): () => Promise<Response> {
  return () => Promise.resolve(new Response("", { status, headers: { "Retry-After": retryAfter } }));
}

const failing = (error: Error) => () => Promise.reject(error);

function faulting(code: string): () => Promise<Response> {
  return failing(new TypeError("fetch failed", { cause: Object.assign(new Error(code), { code }) }));
}

/** A constructor of another realm, such as the one that Jest gives its tests: instanceof fails for what it creates. */
function foreign<Type>(name: string): Type {
  return runInNewContext(name) as Type;
}
const ForeignTypeError = foreign<TypeErrorConstructor>("TypeError");

test.each<[string, number, () => Promise<Response>]>([
  ["429", 3, answering(429)],
  ["502", 3, answering(502)],
  ["503", 3, answering(503)],
  ["504", 3, answering(504)],
  ["a refused connection", 3, faulting("ECONNREFUSED")],
  ["a lost connection", 3, faulting("ECONNRESET")],
  ["a closed connection", 3, faulting("UND_ERR_SOCKET")],
  ["a connection that takes long", 3, faulting("UND_ERR_CONNECT_TIMEOUT")],
  ["a name server without an answer", 3, faulting("EAI_AGAIN")],
  ["a fault of a browser", 3, failing(new TypeError("Failed to fetch"))],
  ["a timeout", 3, failing(new DOMException("late", "TimeoutError"))],
  ["a refused connection of another realm", 3, failing(new ForeignTypeError("fetch failed", { cause: { code: "ECONNREFUSED" } }))],
  ["a fault of a browser of another realm", 3, failing(new ForeignTypeError("Failed to fetch"))],
  ["a timeout of another realm", 3, failing(Object.assign(new (foreign<ErrorConstructor>("Error"))("late"), { name: "TimeoutError" }))],
  ["an unknown host of another realm", 0, failing(new ForeignTypeError("fetch failed", { cause: { code: "ENOTFOUND" } }))],
  ["a cause that is null", 0, failing(new TypeError("fetch failed", { cause: null }))],
  ["400", 0, answering(400, "1")],
  ["500", 0, answering(500, "1")],
  ["501", 0, answering(501, "1")],
  ["a redirect", 0, answering(307, "1")],
  ["an unknown host", 0, faulting("ENOTFOUND")],
  ["a certificate of nobody's", 0, faulting("DEPTH_ZERO_SELF_SIGNED_CERT")],
  ["an expired certificate", 0, faulting("CERT_HAS_EXPIRED")],
  ["a certificate of another", 0, faulting("ERR_TLS_CERT_ALTNAME_INVALID")],
  ["HTTP at a port of HTTPS", 0, faulting("EPROTO")],
  ["a long header", 0, faulting("UND_ERR_HEADERS_OVERFLOW")],
  ["a port that is not fetched", 0, failing(new TypeError("fetch failed", { cause: new Error("bad port") }))],
  ["a mistake in a fetch", 0, failing(new TypeError("fetch is not a function"))],
  ["a fetch that returns nothing", 0, () => Promise.resolve(undefined as unknown as Response)],
  ["a fault of a fetch", 0, failing(new RangeError("out of range"))],
])("after %s, tries %i more times", async (_, retries, fetch) => {
  const { pauses, error } = await pausesOf(fetch, 3);
  expect([pauses.length, isTemporary(error)]).toEqual([retries, retries > 0]);
});

test.each<[string, string, number, number]>([
  ["seconds", "3", 3, 4],
  ["a minute, twice", "60", 60, 2],
  ["what goes beyond two minutes", "50", 50, 2],
  ["what is beyond a minute", "61", 61, 0],
  ["hours", "20000", 20_000, 0],
  ["what is beyond a number", "9".repeat(400), Infinity, 0],
  ["a date", "Sat, 01 Jan 2000 00:00:40 GMT", 40, 1],
  ["a date of RFC 850", "Saturday, 01-Jan-00 00:00:40 GMT", 40, 1],
  ["a date of asctime", "Sat Jan  1 00:00:40 2000", 40, 1],
  ["a date in a year", "Sun, 31 Dec 2000 00:00:00 GMT", 365 * 86_400, 0],
  ["a date that is over", "Fri, 31 Dec 1999 00:00:00 GMT", 0, 4],
  ["nothing", "", 0, 4],
  ["less than nothing", "-5", 0, 4],
  ["neither form", "5 minutes", 0, 4],
  ["a fraction, in no form", "1.5", 0, 4],
])("waits for a server as it asks within bounds: %s", async (_, header, asked, retries) => {
  const { pauses, error } = await pausesOf(answering(503, header));
  expect(error).toBeInstanceOf(ProblemError);
  if (retries === 0) {
    expect((error as ProblemError).retryAfter).toBe(asked);
  }
  // At the next try, the date has passed.
  const waited = retries === 1 ? pauses.slice(0, 1) : pauses;
  expect(waited).toHaveLength(retries);
  waited.forEach((pause, i) => {
    expect(pause).toBeGreaterThanOrEqual(asked);
    expect(pause).toBeLessThanOrEqual(asked + Math.min(0.25 * 2 ** i, 10) + 0.05);
  });
});

test.each(["", "7", "60"])("waits two minutes in total, for %j", async (header) => {
  const { pauses } = await pausesOf(answering(503, header), 1_000_000);
  const waited = pauses.reduce((sum, pause) => sum + pause, 0);
  expect(waited).toBeGreaterThan(60);
  expect(waited).toBeLessThanOrEqual(120 + 0.001 * pauses.length);
  expect(pauses.length).toBeLessThan(1000);
});

test("spreads pauses between zero and their step", async () => {
  const all: number[][] = [];
  for (let i = 0; i < 100; i++) {
    all.push((await pausesOf(faulting("ECONNRESET"), 3)).pauses);
  }
  for (const [i, step] of [0.25, 0.5, 1].entries()) {
    const shares = all.map((pauses) => (pauses[i] ?? -1) / step);
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...shares)).toBeLessThanOrEqual(1.01);
    expect(shares.filter((share) => share < 1 / 3).length).toBeGreaterThan(10);
    expect(shares.filter((share) => share > 2 / 3).length).toBeGreaterThan(10);
  }
});

test("gives each try thirty seconds", async () => {
  const { pauses, error } = await pausesOf(() => new Promise(() => undefined), 1);
  expect(pauses).toHaveLength(1);
  expect(pauses[0]).toBeGreaterThanOrEqual(30);
  expect(pauses[0]).toBeLessThan(30.3);
  expect(error.message).toBe("no complete response within 30 s");
  expect((Date.now() - began) / 1000).toBeGreaterThanOrEqual(60);
});

test.each<[string, () => Promise<Response>]>([
  ["a try", () => new Promise(() => undefined)],
  ["the wait after a refusal", answering(503, "60")],
])("ends when the caller aborts it, in %s", async (_, answer) => {
  let tries = 0;
  const fetch = () => (tries++, answer());
  const controller = new AbortController();
  const { signal } = controller;
  const create = createClient("http://example.com", "t", { fetch }).createOAuth2(request, { signal });
  setTimeout(() => controller.abort(new Error("enough")), 1000);
  const ended = expect(create).rejects.toThrow("enough");
  await vi.advanceTimersByTimeAsync(1000);
  await ended;
  await expect(createClient("http://example.com", "t", { fetch }).createOAuth2(request, { signal })).rejects.toThrow("enough");
  expect(tries).toBe(1);
});

import * as sdk from "./client.js";
import { startServer } from "./testdata/server.js";

const server = await startServer();

afterAll(() => server.stop());

const request = { name: "x", authorization_flow: "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01" };

/** The error of a create that must fail. */
async function failure(create: Promise<unknown>): Promise<Error> {
  const error: unknown = await create.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Error);
  return error as Error;
}

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

test.each(Object.keys(classes))("has a class for refusal %s", async (type) => {
  const problem = { type, title: "T", status: 400, detail: "d", request_id: "r" };
  const fetch = () => Promise.resolve(Response.json(problem, { status: 400 }));
  const error = await failure(sdk.createClient("http://example.com", "t", { fetch }).createOAuth2(request));
  expect(error).toBeInstanceOf(sdk.ProblemError);
  expect(error).toMatchObject({ name: "ProblemError", type });
  for (const [other, kind] of Object.entries(classes)) {
    expect(error instanceof kind).toBe(other === type);
  }
});

test("throws refusals of a server by class", async () => {
  const client = sdk.createClient(server.baseUrl, server.token);
  const named = { ...request, client_id: "taken" };
  await client.createOAuth2(named, { idempotencyKey: "k" });
  expect(await failure(client.createOAuth2(named))).toBeInstanceOf(sdk.ClientIdTakenError);
  const reused = await failure(client.createOAuth2(request, { idempotencyKey: "k" }));
  expect(reused).toBeInstanceOf(sdk.IdempotencyKeyReusedError);
  expect((reused as sdk.ProblemError).violation("/client_id")?.code).toBe("differs");
  const stranger = sdk.createClient(server.baseUrl, "wrong");
  expect(await failure(stranger.createOAuth2(request))).toBeInstanceOf(sdk.UnauthorizedError);
  const elsewhere = sdk.createClient(`${server.baseUrl}/elsewhere`, server.token);
  expect(await failure(elsewhere.createOAuth2(request))).toBeInstanceOf(sdk.NotFoundError);
});

test("has the problem types of the server", async () => {
  const page = await (await fetch(`${server.baseUrl}/problems/`)).text();
  const types = [...page.matchAll(/href="(\/problems\/[^"]+)"/g)].map(([, type]) => type);
  const { foreign, ...known } = sdk.problemTypes;
  expect(foreign).toBe("about:blank");
  expect(Object.values(known).sort()).toEqual(types.sort());
});

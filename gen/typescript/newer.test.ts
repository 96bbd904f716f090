import { createClient, ProblemError, type Client } from "./client.js";

const request = { name: "x", authorization_flow: "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01" };

/** A client of a server of a later version, whose response this package does not know. */
function newer(status: number, contentType: string, answer: object): Client {
  const fetch = () => Promise.resolve(Response.json(answer, { status, headers: { "Content-Type": contentType } }));
  return createClient("http://example.com", "t", { fetch });
}

test("returns a record with new enum values unchanged", async () => {
  const oauth2 = {
    pk: 1,
    meta_model_name: "providers_oauth2.oauth2provider",
    component: "a-new-form",
    client_type: "new_type",
    sub_mode: "new_mode",
    issuer_mode: "new_issuer",
    verbose_name: "New",
    a_new_field: {},
  };
  expect(await newer(201, "application/json", oauth2).createOAuth2(request)).toEqual(oauth2);
  const directory = {
    pk: 1,
    meta_model_name: "providers_workspace_directory.workspacedirectoryprovider",
    user_delete_action: "archive",
  };
  const requested = { name: "x", delegated_subject: "admin@example.com", credentials: {}, default_group_email_domain: "example.com" };
  expect(await newer(201, "application/json", directory).createWorkspaceDirectory(requested)).toEqual(directory);
});

test("returns a refusal with a new type and code unchanged", async () => {
  const problem = {
    type: "/problems/new",
    title: "New",
    status: 400,
    detail: "Something new.",
    request_id: "r",
    errors: [{ pointer: "/name", code: "too_short", detail: "`name` must be longer." }],
    a_new_member: [],
  };
  const refused = newer(400, "application/problem+json", problem).createOAuth2(request);
  const error: unknown = await refused.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ProblemError);
  expect((error as ProblemError).problem).toEqual(problem);
  expect((error as ProblemError).message).toContain("`name` must be longer.");
});

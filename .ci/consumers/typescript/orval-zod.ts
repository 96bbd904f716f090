import * as schemas from "../generated/orval-zod/schemas";
import { baseUrl, directory, headers, type Options, provider, Refused, run } from "./steps";

const send = async (path: string, body: object, extra: object) => {
  const response = await fetch(`${baseUrl}/providers/${path}`, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json", ...extra },
    body: JSON.stringify(body),
  });
  const answer: unknown = await response.json();
  if (!response.ok) throw new Refused(answer as Refused["problem"]);
  return answer;
};

export const oauth2 = async (uris: string, { key, validate_only }: Options) => {
  const query = schemas.providersOauth2CreateQueryParams.parse({ validate_only });
  const body = schemas.providersOauth2CreateBody.parse(provider(uris));
  const extra = schemas.providersOauth2CreateHeader.parse(key ? { "Idempotency-Key": key } : {});
  const answer = await send(`oauth2/?validate_only=${query.validate_only ?? false}`, body, extra);
  return schemas.providersOauth2CreateResponse.parse(answer);
};

export const workspace = async () => {
  const body = schemas.providersWorkspaceDirectoryCreateBody.parse(directory);
  return schemas.providersWorkspaceDirectoryCreateResponse.parse(await send("workspace_directory/", body, {}));
};

await run(oauth2, workspace);

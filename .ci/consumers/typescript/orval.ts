import { providersOauth2Create, providersWorkspaceDirectoryCreate } from "../generated/orval/client";
import { directory, headers, type Options, provider, Refused, run } from "./steps";

export const oauth2 = async (uris: string, { key, validate_only }: Options) => {
  const answer = await providersOauth2Create(
    provider(uris),
    { validate_only },
    { headers: { ...headers, ...(key && { "Idempotency-Key": key }) } },
  );
  if (answer.status === 200 || answer.status === 201) return answer.data;
  throw new Refused(answer.data);
};

export const workspace = async () => {
  const answer = await providersWorkspaceDirectoryCreate(directory, undefined, { headers });
  if (answer.status === 200 || answer.status === 201) return answer.data;
  throw new Refused(answer.data);
};

await run(oauth2, workspace);

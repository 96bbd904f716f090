import { providersOauth2Create, providersWorkspaceDirectoryCreate } from "../generated/hey-api";
import { client } from "../generated/hey-api/client.gen";
import { baseUrl, directory, type Options, provider, Refused, run, token } from "./steps";

client.setConfig({ baseUrl, auth: token });

export const oauth2 = async (uris: string, { key, validate_only }: Options) => {
  const { data, error } = await providersOauth2Create({
    body: provider(uris),
    headers: { "Idempotency-Key": key },
    query: { validate_only },
  });
  if (data) return data;
  throw error instanceof Error ? error : new Refused(error);
};

export const workspace = async () => {
  const { data } = await providersWorkspaceDirectoryCreate({ body: directory, throwOnError: true });
  return data;
};

await run(oauth2, workspace);

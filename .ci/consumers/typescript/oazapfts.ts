import * as api from "../generated/oazapfts/client";
import { baseUrl, directory, headers, type Options, provider, Refused, run } from "./steps";

Object.assign(api.defaults, { baseUrl, headers });

export const oauth2 = async (uris: string, { key, validate_only }: Options) => {
  const answer = await api.providersOauth2Create(provider(uris), { idempotencyKey: key, validateOnly: validate_only });
  if (answer.status === 200 || answer.status === 201) return answer.data;
  throw new Refused(answer.data);
};

export const workspace = async () => {
  const answer = await api.providersWorkspaceDirectoryCreate(directory);
  if (answer.status === 200 || answer.status === 201) return answer.data;
  throw new Refused(answer.data);
};

await run(oauth2, workspace);

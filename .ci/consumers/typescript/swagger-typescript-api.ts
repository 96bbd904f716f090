import { Api, type HttpResponse, type Problem } from "../generated/swagger-typescript-api/Api";
import { baseUrl, directory, headers, type Options, provider, Refused, run } from "./steps";

const api = new Api({ baseUrl, baseApiParams: { headers } });

const refuse = (answer: HttpResponse<unknown, Problem>) => {
  throw answer.error ? new Refused(answer.error) : answer;
};

export const oauth2 = async (uris: string, { key, validate_only }: Options) => {
  const headers: HeadersInit = key ? { "Idempotency-Key": key } : {};
  const answer = api.providers.providersOauth2Create(provider(uris), { validate_only }, { headers });
  return (await answer.catch(refuse)).data;
};

export const workspace = async () => (await api.providers.providersWorkspaceDirectoryCreate(directory)).data;

await run(oauth2, workspace);

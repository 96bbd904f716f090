import { Configuration, ProvidersApi } from "../generated/generator-typescript";
import { baseUrl, directory, type Options, provider, Refused, run, token } from "./steps";

const api = new ProvidersApi(new Configuration({ basePath: baseUrl, accessToken: token, fetchApi: fetch }));

const refuse = async (response: Response) => {
  throw response instanceof Response ? new Refused(await response.json()) : response;
};

export const oauth2 = (uris: string, { key, validate_only }: Options) => {
  const { name, authorization_flow: authorizationFlow, redirect_uris: redirectUris } = provider(uris);
  return api
    .providersOauth2Create({
      oAuth2ProviderRequest: { name, authorizationFlow, redirectUris },
      idempotencyKey: key,
      validateOnly: validate_only,
    })
    .catch(refuse);
};

export const workspace = () => {
  const { delegated_subject: delegatedSubject, default_group_email_domain: defaultGroupEmailDomain, ...rest } = directory;
  return api
    .providersWorkspaceDirectoryCreate({
      workspaceDirectoryProviderRequest: { delegatedSubject, defaultGroupEmailDomain, ...rest },
    })
    .catch(refuse);
};

await run(oauth2, workspace);

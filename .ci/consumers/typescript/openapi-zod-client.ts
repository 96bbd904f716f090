import { isErrorFromAlias } from "@zodios/core";
import { api, createApiClient } from "../generated/openapi-zod-client/client";
import { baseUrl, directory, headers, type Options, provider, Refused, run } from "./steps";

const client = createApiClient(baseUrl, { axiosConfig: { headers } });

export const oauth2 = (uris: string, { key, validate_only }: Options) =>
  client
    .providers_oauth2_create(provider(uris), { headers: { "Idempotency-Key": key }, queries: { validate_only } })
    .catch((error: Error) => {
      throw isErrorFromAlias(api.api, "providers_oauth2_create", error) ? new Refused(error.response.data) : error;
    });

export const workspace = () => client.providers_workspace_directory_create(directory);

await run(oauth2, workspace);

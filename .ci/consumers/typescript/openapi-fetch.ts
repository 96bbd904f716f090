import createClient from "openapi-fetch";
import type { paths } from "../generated/openapi-fetch/schema";
import { baseUrl, directory, headers, type Options, provider, Refused, run } from "./steps";

const client = createClient<paths>({ baseUrl, headers });

export const oauth2 = async (uris: string, { key, validate_only }: Options) => {
  const { data, error } = await client.POST("/providers/oauth2/", {
    body: provider(uris),
    params: { header: { "Idempotency-Key": key }, query: { validate_only } },
  });
  if (error) throw new Refused(error);
  return data;
};

export const workspace = async () => {
  const { data, error } = await client.POST("/providers/workspace_directory/", { body: directory });
  if (error) throw new Refused(error);
  return data;
};

await run(oauth2, workspace);

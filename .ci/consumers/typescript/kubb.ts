import { setConfig } from "@kubb/plugin-client/clients/axios";
import { isAxiosError } from "axios";
import { providersOauth2Create, providersWorkspaceDirectoryCreate, type Problem } from "../generated/kubb";
import { baseUrl, directory, headers, type Options, provider, Refused, run } from "./steps";

setConfig({ baseURL: baseUrl, headers });

export const oauth2 = (uris: string, { key, validate_only }: Options) =>
  providersOauth2Create(provider(uris), { validate_only }, { "Idempotency-Key": key }).catch((error: unknown) => {
    throw isAxiosError<Problem>(error) && error.response ? new Refused(error.response.data) : error;
  });

export const workspace = () => providersWorkspaceDirectoryCreate(directory);

await run(oauth2, workspace);

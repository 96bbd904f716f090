import "@angular/compiler";
import { HttpClient, HttpErrorResponse, type HttpRequest, HttpResponse } from "@angular/common/http";
import { from } from "rxjs";
import { Api } from "../generated/ng-openapi-gen/api";
import { providersOauth2Create, providersWorkspaceDirectoryCreate } from "../generated/ng-openapi-gen/functions";
import { baseUrl, directory, headers, type Options, provider, Refused, run } from "./steps";

/** Sends a request as Angular does in an application. */
async function send(request: HttpRequest<unknown>) {
  const own = Object.fromEntries(request.headers.keys().map((name) => [name, request.headers.get(name) ?? ""]));
  const response = await fetch(request.urlWithParams, {
    method: request.method,
    headers: { "Content-Type": "application/json", ...own, ...headers },
    body: JSON.stringify(request.body),
  });
  const { status } = response;
  const body: unknown = await response.json();
  if (!response.ok) throw new HttpErrorResponse({ error: body, status });
  return new HttpResponse({ body, status });
}

const api = new Api({ rootUrl: baseUrl }, new HttpClient({ handle: (request) => from(send(request)) }));

export const oauth2 = (uris: string, { key, validate_only }: Options) =>
  api
    .invoke(providersOauth2Create, { body: provider(uris), "Idempotency-Key": key, validate_only })
    .catch((answer: unknown) => {
      throw answer instanceof HttpErrorResponse ? new Refused(answer.error) : answer;
    });

export const workspace = () => api.invoke(providersWorkspaceDirectoryCreate, { body: directory });

await run(oauth2, workspace);

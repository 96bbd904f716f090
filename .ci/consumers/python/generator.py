"""Makes the client that OpenAPI Generator writes for Python do what every generated client is made to do."""

import json
import os
import uuid
from types import SimpleNamespace

import openapi_client as api

configuration = api.Configuration(host=os.environ["PROVIDERD_SERVER"] + "/api/v3")
configuration.access_token = os.environ["PROVIDERD_TOKEN"]
client = api.ApiClient(configuration)
providers = api.ProvidersApi(client)
flow = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"
key = str(uuid.uuid4())


def oauth2(uris="https://intranet.example.com/callback", **options):
    body = api.OAuth2ProviderRequest(name="Intranet", authorization_flow=flow, redirect_uris=uris)
    return providers.providers_oauth2_create(body, **options)


def workspace():
    directory = {"name": "Staff", "credentials": {"key": "example"}}
    directory |= {"delegated_subject": "admin@example.com", "default_group_email_domain": "example.com"}
    return providers.providers_workspace_directory_create(api.WorkspaceDirectoryProviderRequest(**directory))


def result(call):
    try:
        return call().to_dict()
    except api.ApiException as error:
        return client.deserialize(SimpleNamespace(data=error.body), "Problem").to_dict()
    except Exception as error:
        return {"failed": repr(error)}


steps = {
    "oauth2": oauth2,
    "workspace": workspace,
    "refused": lambda: oauth2("javascript:alert(1)"),
    "first": lambda: oauth2(idempotency_key=key),
    "again": lambda: oauth2(idempotency_key=key),
    "validated": lambda: oauth2(validate_only=True),
}
print(json.dumps({name: result(step) for name, step in steps.items()}))

"""Creates providers with the client that OpenAPI Generator wrote, and prints what was acknowledged."""

import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import openapi_client as api

url, token, first, callers, rounds = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
configuration = api.Configuration(host=url + "/api/v3")
configuration.access_token = token
providers = api.ProvidersApi(api.ApiClient(configuration))
created, refused = {}, []


def call(caller):
    for n in range(rounds):
        name = f"{caller}-{n}"
        body = api.OAuth2ProviderRequest(name=name, authorization_flow="3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01")
        options = {"idempotency_key": name} if caller % 2 else {}
        while True:
            try:
                created[name] = providers.providers_oauth2_create(body, **options).pk
            except (api.ApiException, OSError, api.rest.urllib3.exceptions.HTTPError) as error:
                refused.append(str(error))
            if name in created or not options:
                break
            time.sleep(0.02)
        time.sleep(random.uniform(0.49, 0.51))


with ThreadPoolExecutor(callers) as pool:
    list(pool.map(call, range(first, first + callers)))
print(json.dumps({"created": created, "refused": len(refused)}))
print([error[:60] for error in refused[-3:]], file=sys.stderr)

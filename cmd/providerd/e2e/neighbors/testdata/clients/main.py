"""Creates providers with the client that OpenAPI Generator wrote, and prints what was acknowledged."""

import json
import random
import sys
import threading
import time

import openapi_client as api

url, token, first, callers, rounds = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
configuration = api.Configuration(host=url + "/api/v3")
configuration.access_token = token
providers = api.ProvidersApi(api.ApiClient(configuration))
created, refused = {}, []


def create(name, **options):
    body = api.OAuth2ProviderRequest(name=name, authorization_flow="3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01")
    try:
        created[name] = providers.providers_oauth2_create(body, **options).pk
    except (api.ApiException, OSError, api.rest.urllib3.exceptions.HTTPError) as error:
        refused.append(str(error))


def call(caller):
    for n in range(rounds):
        name = f"{caller}-{n}"
        options = {"idempotency_key": name} if caller % 2 else {}
        create(name, **options)
        while options and name not in created:
            time.sleep(0.02)
            create(name, **options)
        time.sleep(random.uniform(0.49, 0.51))


threads = [threading.Thread(target=call, args=[first + n]) for n in range(callers)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"created": created, "refused": len(refused)}))
print([error[:60] for error in refused[-3:]], file=sys.stderr)

// Creates providers with the TypeScript SDK, and prints what was acknowledged.
import { createClient } from "providerd-client";

const [url, token, ...numbers] = process.argv.slice(2);
const [first, callers, rounds] = numbers.map(Number);
const providers = createClient(url, token);
const created = {};
let refused = 0;

async function call(caller) {
  for (let n = 0; n < rounds; n++) {
    const request = { name: `${caller}-${n}`, authorization_flow: "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01" };
    await providers.createOAuth2(request).then(
      ({ pk }) => { created[request.name] = pk; },
      (error) => { refused++; console.error(error); },
    );
    await new Promise((resolve) => setTimeout(resolve, 490 + 20 * Math.random()));
  }
}

await Promise.all(Array.from({ length: callers }, (_, n) => call(first + n)));
console.log(JSON.stringify({ created, refused }));

const response = await fetch("/openapi.json");
const contract = JSON.parse((await response.text()).replaceAll("http://127.0.0.1:8080", location.origin));
contract.info.description = contract.info.description.replace(/## [^]*/, `For servers and tools, not browsers: there is no CORS.
[Conventions](/conventions/): how bodies are read, requests refused and retries handled.`);
delete contract.tags;
for (const { post } of Object.values(contract.paths)) {
  delete post.tags;
  // A 200 has the fields of the 201, and is shown with it.
  const { 200: validated, 201: created } = post.responses;
  const [body, examples] = [created, validated].map(({ content }) => content["application/json"]);
  created.description += `\n\nStatus 200: ${validated.description}`;
  Object.assign(created.headers, validated.headers);
  Object.assign(body.examples, examples.examples);
  delete post.responses[200];
  // The form validates until the reader switches it off. A default would override the example.
  post.parameters.find(({ name }) => name === "validate_only").schema = { type: "boolean", example: true };
}

Scalar.createApiReference("#reference", {
  content: contract,
  layout: "modern",
  hideModels: true,
  expandAllSchemaProperties: true,
  orderSchemaPropertiesBy: "preserve",
  orderRequiredPropertiesFirst: true,
  // The samples of the contract are the only ones.
  hiddenClients: true,
  documentDownloadType: "none",
  // The settings below keep the page from loading from, or linking to, other servers.
  withDefaultFonts: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
});

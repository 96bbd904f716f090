const response = await fetch("/openapi.yaml");
const contract = await response.text();

// JavaScript puts members named by an integer first, in ascending order: 2XX instead of 200 puts the record, 201, before
// the result of a validation. YAML, unlike /openapi.json, keeps the order of the fields.
const page = contract
  .replaceAll("http://127.0.0.1:8080", location.origin)
  .replace(/ {4}## [^]*?(?=  license:)/, "    [Conventions](/conventions/): how bodies are read, requests refused and retries handled.\n")
  .replace(/^tags:\n(?:  .*\n)+/m, "")
  .replaceAll(/^      tags: .*\n/gm, "")
  .replaceAll("'200':", "'2XX':");

Scalar.createApiReference("#reference", {
  content: page,
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

const response = await fetch("/openapi.yaml");
const contract = await response.text();

const page = contract
  .replaceAll("http://127.0.0.1:8080", location.origin)
  .replace(/ {4}## [^]*?(?=  license:)/, "    [Conventions](/conventions/): how bodies are read, requests refused and retries handled.\n")
  // The form validates until the reader switches it off. A default would override the example.
  .replace("schema: {type: boolean, default: false}", "schema: {type: boolean, example: true}")
  .replace(/^tags:\n(?:  .*\n)+/m, "")
  .replaceAll(/^      tags: .*\n/gm, "");

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

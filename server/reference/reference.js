const response = await fetch("/openapi.yaml");
const contract = await response.text();

// YAML keeps the order of the fields. The samples name the server that the reader is on.
Scalar.createApiReference("#reference", {
  content: contract.replaceAll("http://127.0.0.1:8080", location.origin),
  layout: "classic",
  hideModels: true,
  expandAllSchemaProperties: true,
  orderSchemaPropertiesBy: "preserve",
  orderRequiredPropertiesFirst: true,
  // The samples of the contract are the only ones.
  hiddenClients: true,
  documentDownloadType: "none",
  // What follows would load from, or lead to, other servers.
  withDefaultFonts: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
});

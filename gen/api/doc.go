// Package api is generated from openapi.yaml: the models of requests and responses, and the strict server over Echo
// whose interface server.Server implements. The text of openapi.yaml is in gen/contract, the rules of bodies in
// server/contract. Start with StrictServerInterface in api.gen.go.
package api

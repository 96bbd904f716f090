// Package api is generated from openapi.yaml, whose text is in gen/contract: the models of requests and responses, and
// the strict server over Echo that server.Server implements. Start with StrictServerInterface in api.gen.go.
package api

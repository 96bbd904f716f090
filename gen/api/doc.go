// Package api is generated from openapi.yaml, whose text is in gen/contract: the strict server over Echo that
// server.Server implements. The models of requests and responses are in gen/model. Start with StrictServerInterface in
// api.gen.go.
package api

// Package model is generated from openapi.yaml, whose text is in gen/contract: the models of requests and responses.
// The Echo server over them is in gen/api.
package model

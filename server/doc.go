// Package server answers the two operations of openapi.yaml over HTTP, from the bytes of a request to the record that
// the store made of it. It is the only package that knows Echo.
//
// A request goes one way: request id, log, route, authenticate, authorize, negotiate, limit, validate, handler, store.
// Errors go up as Go errors and become problem documents (RFC 9457) in one place, Server.handleError.
package server

// Package store keeps providers, applications and access tokens in a database. It knows nothing of HTTP.
//
// A change that is reported as done is on disk. The errors that a function returns stand in its comment and are told
// apart with errors.Is.
package store

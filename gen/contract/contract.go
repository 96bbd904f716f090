// Package contract holds openapi.yaml as it was when gen/ was generated, and nothing else. Package server/contract
// parses it.
package contract

import _ "embed"

//go:embed openapi.gen.yaml
var text string

// YAML returns openapi.yaml, byte for byte.
func YAML() []byte { return []byte(text) }

package api

import "example.com/providerd/gen/contract"

// Contract is contract.YAML.
func Contract() []byte { return contract.YAML() }

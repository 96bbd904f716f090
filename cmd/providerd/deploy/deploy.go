// Package deploy contains the files that an operator copies, which the manual links to.
package deploy

import "embed"

// Files has each file under its name.
//
//go:embed Caddyfile* Dockerfile *.conf *.json *.service *.timer *.yaml
var Files embed.FS

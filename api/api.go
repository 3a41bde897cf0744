// Package api holds the contract of the REST interface: an OpenAPI 3.1 document that describes exactly what is served.
package api

import _ "embed"

// OpenAPI is the document, as it is served at /openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte

package agent

import (
	"fmt"
	"strings"
)

// Namespace is the name of a namespace. Everything that is stored belongs to exactly one: sessions, tools, artifacts,
// calls, the policy and the audit trail. Nothing of one can be read or changed through another.
type Namespace string

// DefaultNamespace is the namespace of a daemon without access tokens, and of data that was stored before there were
// namespaces.
const DefaultNamespace Namespace = "default"

// Validate returns an error unless the name has 1 to 63 characters of a-z, 0-9 and -, and does not begin or end with -.
func (n Namespace) Validate() error {
	const longest = 63
	valid := len(n) > 0 && len(n) <= longest && strings.Trim(string(n),
		"abcdefghijklmnopqrstuvwxyz0123456789-") == "" && n[0] != '-' && n[len(n)-1] != '-'
	if !valid {
		return fmt.Errorf("%q is not a namespace: 1 to %d characters of a-z, 0-9 and -, not - at either end", string(n),
			longest)
	}
	return nil
}

// Owner identifies the owner of data. Equal names in different namespaces are different owners.
type Owner struct {
	Namespace Namespace // of the access token, "local" without tokens
	Name      string    // of the access token, "local" without
}

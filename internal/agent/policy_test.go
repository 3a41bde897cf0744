package agent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// The error of an invalid policy names the field in JSON terms.
func TestPolicyOfTheWrongKind(t *testing.T) {
	t.Parallel()
	whole, err := json.Marshal(DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ member, field, reason string }{
		{`"repair_enabled":5`, "/repair_enabled", "must be true or false, not number"},
		{`"delegation_depth":2.5`, "/delegation_depth", "must be a whole number, not 2.5"},
		{`"degraded":5`, "/degraded", "must be an object, not number"},
		{`"redact_keys":"x"`, "/redact_keys", "must be a list of texts, not string"},
		{`"redact_keys":[1]`, "/redact_keys", "must be a text, not number"},
		{`"zzz":1`, "/zzz", "is not a known name"},
	} {
		_, err := DecodePolicy([]byte(strings.TrimSuffix(string(whole), "}") + "," + c.member + "}"))
		var bad *PolicyError
		// From Go 1.27 on, encoding/json also names the element of a list.
		if !errors.As(err, &bad) || strings.TrimSuffix(bad.Field, "/0") != c.field ||
			!strings.HasPrefix(bad.Reason, c.reason) {
			t.Errorf("%s: got %v", c.member, err)
		}
	}
}

package disk

import (
	"slices"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

// A policy of an older daemon gains the patterns of secret names that were added later. Patterns that a person removed
// stay removed, also from a current policy.
func TestStoredPolicyGainsPatterns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		stored string
		with   []string
		out    []string
	}{
		{`{"redact_keys":["password","token","secret","api_key","authorization"]}`, mask.Defaults(), nil},
		{`{"redact_keys":["password","pin"]}`, []string{"password", "pin", "passwd", "key?"}, []string{"token"}},
		{`{"redact_keys":["pin"],"redact_version":2}`, []string{"pin"}, []string{"password", "passwd"}},
		{`{"redact_keys":[]}`, nil, []string{"password", "passwd"}},
		{`{}`, mask.Defaults(), nil},
	} {
		p, err := decodePolicy([]byte(tt.stored))
		if err != nil {
			t.Fatal(err)
		}
		has := func(name string) bool { return slices.Contains(p.RedactKeys, name) }
		if i := slices.IndexFunc(tt.with,
			func(name string) bool {
				return !has(
					name)
			}); i >= 0 || slices.ContainsFunc(tt.out, has) || p.RedactVersion != mask.Edition {
			t.Errorf("%s became edition %d, %q", tt.stored, p.RedactVersion, p.RedactKeys)
		}
	}
	var held policies
	held.apply(&agent.Policy{RedactKeys: []string{"password"}}) // as in the journal of an older daemon
	if !slices.Contains(held.policy.RedactKeys, "passwd") {
		t.Errorf("a policy of a journal became %q", held.policy.RedactKeys)
	}
}

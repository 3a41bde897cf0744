package forge

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Which programs may answer another call than the one they were written for.
func TestCacheability(t *testing.T) {
	t.Parallel()
	p := agent.DefaultPolicy()
	purpose := &agent.Contract{Purpose: "adds"}
	tests := []struct {
		name     string
		call     *call.Call
		contract *agent.Contract
		facts    report.Facts
		want     bool
		why      string
	}{
		{"it uses its arguments", &call.Call{Args: []json.RawMessage{json.RawMessage("7")}}, nil, report.Facts{UsesArgs: true,
			Literals: []string{"7"}},
			true, CacheStable},
		{"there are none", &call.Call{}, nil, report.Facts{}, true, CacheStable},
		{"it ignores them", &call.Call{Args: []json.RawMessage{json.RawMessage("7")}}, nil, report.Facts{Literals: []string{"8"}}, false,
			CacheIgnored},
		{"it ignores keywords", &call.Call{Kwargs: json.RawMessage(`{"n":7}`)}, nil, report.Facts{}, false,
			CacheIgnored},
		{"it declares to take none", &call.Call{Args: []json.RawMessage{json.RawMessage("7")}}, nil, report.Facts{Literals: []string{"7"}}, true,
			CacheStable},
		{"an argument stands in it", &call.Call{Args: []json.RawMessage{json.RawMessage(`"Ada"`)}}, nil, report.Facts{Literals: []string{`"Ada"`}},
			false, cacheBaked},
		{"a keyword's value stands in it", &call.Call{Kwargs: json.RawMessage(`{"n":7}`)}, nil,
			report.Facts{Literals: []string{"7"}}, false, cacheBaked},
		{"a dispatch method", &call.Call{Method: "ask"}, nil, report.Facts{UsesArgs: true}, false, CacheDispatch},
		{"delegated with a contract", &call.Call{Depth: 1}, purpose, report.Facts{}, true, cacheDelegated},
		{"delegated without", &call.Call{Depth: 1}, nil, report.Facts{}, true, CacheStable},
		{"a contract of a client's", &call.Call{}, purpose, report.Facts{}, true, CacheStable},
	}
	for _, tt := range tests {
		tt.call.Policy = &p
		if tt.call.Kwargs == nil {
			tt.call.Kwargs = json.RawMessage("{}")
		}
		s := &call.Selection{Call: tt.call,
			Terms: call.Terms{Contract: tt.contract}}
		takes := &agent.Interface{Origin: agent.OriginInferred}
		if strings.Contains(tt.name, "declares") {
			takes.Origin = agent.OriginDeclared
		}
		if got, why := cacheable(s, &tt.facts, takes); got != tt.want || why != tt.why {
			t.Errorf("%s: %v (%s), want %v (%s)", tt.name, got, why, tt.want, tt.why)
		}
	}
}

// Scalars are looked for in arrays and objects, to a depth.
func TestBaked(t *testing.T) {
	t.Parallel()
	literals := []string{"7", `"x"`, `"\u003cé\u003e"`} // an earlier version kept them with escapes
	for raw, want := range map[string]bool{"7": true, `"x"`: true, "8": false, `"7"`: false, "[1,7]": true,
		`{"a":"x"}`: true, `{"x":1}`: false, `{"a":[{"b":7}]}`: true,
		"[[[[7]]]]": true, "[[[[[7]]]]]": false, `{"a":{"a":{"a":{"a":{"a":7}}}}}`: false, "null": false, "true": false,
		`"<é>"`: true, `"<\u00e9\u003e"`: true, "7.0": true} {
		if got := baked(literals, []json.RawMessage{json.RawMessage(raw)}, json.RawMessage("{}")); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
	}
}

package evolve

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// strengthen recommends a constraint for each field that is often returned empty.
func strengthen(m Method, p agent.RecommendPolicy) []Recommendation {
	fields := map[string]*tally{} // by reason
	ok := m.Plain
	for _, c := range m.Calls {
		if c.Status != agent.StatusOK {
			continue
		}
		ok++
		if c.Passed {
			continue // the cause is a weak nested call
		}
		for _, reason := range c.Weak {
			if _, _, isEmpty := emptyField(reason); !isEmpty {
				continue
			}
			if fields[reason] == nil {
				fields[reason] = &tally{}
			}
			fields[reason].add(c)
		}
	}
	var out []Recommendation
	var proposed []proposedContract
	for _, reason := range slices.Sorted(maps.Keys(fields)) {
		t := fields[reason]
		if !t.enough(ok, p) {
			continue
		}
		key, whole, _ := emptyField(reason)
		proposal, schema, err := constrain(m.Deliverable, key, whole)
		if err != nil {
			continue // the contract demands it already, or a constraint cannot be added to it
		}
		what := "the value"
		if !whole {
			what = fmt.Sprintf("%q", key)
		}
		out = append(out, Recommendation{Role: m.Role, Method: m.Method, Kind: StrengthenContract, Score: t.score(ok),
			Evidence: t.evidence(), Proposal: proposal,
			Reason: fmt.Sprintf("%d of %d ok calls returned %s empty, and %d of them were asked again: let the contract demand at least one item", len(t.ids), ok, what, t.corrected)})
		proposed = append(proposed, proposedContract{reason, schema})
	}
	for i, s := range simulate(m, proposed) {
		out[i].Simulation = s
	}
	return out
}

// Text around a member's name in Proposal.Constraint.
const (
	constraintOf = "deliverable.constraints.properties."
	demandsOne   = ".min_items"
)

// errAlready means that the deliverable already contains the proposed constraint.
var errAlready = errors.New("the deliverable demands it already")

// constrain adds min_items: 1 to a deliverable, for a key or for the whole value, and compiles the result.
func constrain(deliverable json.RawMessage, key string, whole bool) (Proposal, *contract.Schema, error) {
	d := map[string]any{}
	if raw := strings.TrimSpace(string(deliverable)); raw != "" && raw != "null" {
		v, err := contract.Decode(deliverable)
		if err != nil {
			return Proposal{}, nil, err
		}
		object, ok := v.(map[string]any)
		if !ok {
			return Proposal{}, nil, errors.New("the deliverable is no object")
		}
		d = object
	}
	p := Proposal{Value: 1, Action: "put_contract"}
	if whole {
		constraints, _ := d["constraints"].(map[string]any)
		if atLeastOne(d) || atLeastOne(constraints) {
			return Proposal{}, nil, errAlready
		}
		demandOne(d)
		p.Constraint = "deliverable" + demandsOne
	} else {
		properties := within(within(d, "constraints"), "properties")
		field := within(properties, key)
		declared, _ := d["properties"].(map[string]any)
		schema, _ := declared[key].(map[string]any)
		if atLeastOne(field) || atLeastOne(schema) {
			return Proposal{}, nil, errAlready
		}
		demandOne(field)
		if _, ok := d["type"]; !ok {
			d["type"] = "object"
		}
		p.Constraint = constraintOf + key + demandsOne
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return Proposal{}, nil, err
	}
	compiled, err := contract.CompileStored(raw)
	if err != nil {
		return Proposal{}, nil, err
	}
	p.Deliverable = raw
	return p, compiled, nil
}

// demandOne adds the constraint. It keeps an existing type, so a schema that allows null still does.
func demandOne(schema map[string]any) {
	if _, ok := schema["type"]; !ok {
		schema["type"] = "array"
	}
	schema["min_items"] = 1
}

// within returns the object under a key, which it creates if there is none.
func within(m map[string]any, key string) map[string]any {
	if o, ok := m[key].(map[string]any); ok {
		return o
	}
	o := map[string]any{}
	m[key] = o
	return o
}

// atLeastOne reports whether a schema demands at least one item already, in either spelling.
func atLeastOne(schema map[string]any) bool {
	for _, name := range []string{"min_items", "minItems"} {
		if n, ok := schema[name].(json.Number); ok && n != "0" && !strings.HasPrefix(string(n), "-") {
			return true
		}
	}
	return false
}

// proposedContract is a proposed deliverable with the reason that it should catch.
type proposedContract struct {
	reason string
	schema *contract.Schema
}

// simulate applies each proposed deliverable to the method's recorded ok calls. It checks a call's value if it is kept,
// and otherwise relies on the noted reasons. Each value is looked up once.
func simulate(m Method, proposed []proposedContract) []*Simulation {
	out := make([]*Simulation, len(proposed))
	for i := range out {
		out[i] = &Simulation{}
	}
	if len(proposed) == 0 {
		return out
	}
	for i := range out {
		out[i].Calls = m.Plain - len(m.PlainIDs) // calls whose IDs are not kept; none of them was weak
	}
	calls := slices.Clone(m.Calls)
	for _, id := range m.PlainIDs {
		calls = append(calls, Call{CallID: id, Status: agent.StatusOK})
	}
	for _, c := range calls {
		if c.Status != agent.StatusOK {
			continue
		}
		var value json.RawMessage
		if m.Value != nil {
			value = m.Value(c.CallID)
		}
		for i, t := range proposed {
			out[i].add(c, value, t)
		}
	}
	return out
}

// add counts an ok call and whether the proposed contract would accept its value, which is nil if it is not kept.
func (s *Simulation) add(c Call, value json.RawMessage, proposed proposedContract) {
	s.Calls++
	fails := slices.Contains(c.Weak, proposed.reason)
	if value != nil {
		s.Checked++
		fails = proposed.schema.Check(value) != nil
	}
	switch {
	case fails && c.CorrectedBy != "":
		s.WouldFail++
		s.WouldFailReasked++
	case fails:
		s.WouldFail++
		s.WouldFailAccepted++
	}
}

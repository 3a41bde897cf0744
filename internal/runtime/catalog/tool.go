package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A Tool is a method as agents see it. It is shared and must not be changed.
type Tool struct {
	Name         string // as models call it
	Role, Method string
	Signature    string // the call in one line, such as add(a: number, b: number) -> number
	Description  string
	Parameters   json.RawMessage // JSON Schema of the arguments, an object
	Returns      json.RawMessage // JSON Schema of the value; nil where nothing is known
	FreeForm     bool            // nothing is known of the arguments: they are {"args": [...], "kwargs": {...}}

	ReadOnly  bool // the program has no effects: it fetches nothing, writes no memory, calls no tools, asks no model
	OpenWorld bool // the program may reach the network, itself or by tools that it calls

	takes   *agent.Interface // nil where nothing is known
	returns *contract.Schema // compiled Returns
}

// CheckValue returns nil where the value is what Returns says, or nothing is said.
func (t *Tool) CheckValue(value json.RawMessage) error {
	if v := t.returns.Check(value); v != nil {
		return errors.New(v.Message)
	}
	return nil
}

func (t *Tool) same(u *Tool) bool {
	if t == nil || u == nil {
		return t == u
	}
	return t.Description == u.Description && t.Signature == u.Signature && t.FreeForm == u.FreeForm && (t.takes == u.takes || t.takes != nil && u.takes != nil && bytes.Equal(agent.Encoded(t.takes), agent.Encoded(u.takes))) && t.ReadOnly == u.ReadOnly && t.OpenWorld == u.OpenWorld &&
		bytes.Equal(t.Parameters, u.Parameters) && bytes.Equal(t.Returns, u.Returns)
}

// freeForm is the schema of arguments of which nothing is known.
var freeForm = json.RawMessage(`{"type":"object","properties":{"args":{"type":"array","description":"The arguments by position."},` +
	`"kwargs":{"type":"object","description":"The arguments by name."}},"additionalProperties":false}`)

// describe makes the tool of a method from the generation that answers. Its name is toolName's, until the table gives another.
func describe(m Method, g *agent.Generation, p purposes) *Tool {
	t := &Tool{Name: toolName(m), Role: m.Role, Method: m.Name, Parameters: freeForm, FreeForm: true, Signature: g.Interface.Signature(m.Name)}
	summary := ""
	if f := g.Interface; f != nil {
		summary, t.takes = f.Summary, f
		if _, err := contract.Compile(f.JSONSchema()); err == nil { // one that does not compile would make clients fail
			t.Parameters, t.FreeForm = f.JSONSchema(), false
		}
		if compiled, err := contract.Compile(f.Returns); err == nil && f.Returns != nil {
			t.Returns, t.returns = f.Returns, compiled
		}
	}
	t.Description = description(m, summary, p)
	facts := report.Facts{}
	if len(g.Facts) > 0 && json.Unmarshal(g.Facts, &facts) == nil {
		writes := len(facts.ContextWrites) > 0 || facts.UsesTools || facts.UsesDelegate
		asks := strings.Contains(g.Code, "Ask") || strings.Contains(g.Code, "Predict") // the facts do not say
		t.OpenWorld = facts.UsesFetch || facts.UsesTools || facts.UsesDelegate || asks
		t.ReadOnly = !writes && !t.OpenWorld
	} else {
		t.OpenWorld = true // nothing is known
	}
	return t
}

// description says what the method does, and whose it is: names of tools may be cut.
func description(m Method, summary string, p purposes) string {
	text := cmp.Or(p.methods[m.Name], summary)
	title := m.Role + "." + m.Name
	switch {
	case text != "":
		return title + ": " + text
	case p.role != "":
		return title + ", of " + m.Role + ": " + p.role
	}
	return title
}

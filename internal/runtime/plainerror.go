package runtime

import (
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// typedErrors is the first prompt version whose programs know that an error without a type is a failure.
const typedErrors = "2026-11-30.v7"

// heldToTypes reports whether an error without a type is a failure of the program, to be repaired. Programs of before author it.
func heldToTypes(g *agent.Generation) bool { return g.PromptVersion >= typedErrors }

// unlike says which of the call's arguments is not what its program declares of the parameter, "" if they all are.
func (c *opened) unlike(takes *agent.Interface) string {
	if !c.binds(takes) {
		return ""
	}
	for i := range takes.Parameters {
		p := &takes.Parameters[i]
		value := member(c.kwargs, p.Name)
		if value == nil && i < len(c.args) {
			value = c.args[i]
		}
		if p.Variadic || value == nil || agent.Kind(value) == "null" && !p.Required {
			continue
		}
		schema := p.Schema
		if schema == nil && p.Type != "" {
			schema = agent.Encoded(map[string]string{"type": p.Type})
		}
		s, err := contract.CompileStored(schema)
		if err != nil {
			continue // it was accepted as it is
		}
		if v := s.Check(value); v != nil {
			return fmt.Sprintf("%s is not what the method takes: %s", p.Name, v.Message)
		}
	}
	return ""
}

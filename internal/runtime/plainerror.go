package runtime

import (
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
)

// typedErrors is the first prompt version whose programs know that an error without a type is a failure.
const typedErrors = "2026-11-30.v7"

// untyped reports whether the program returned an error without a type, which is a failure of it and to be repaired. Programs of before author it, and one of
// a nested call is passed on.
func (a *attempted) untyped() bool {
	return a.result.Authored.Plain && a.program.PromptVersion >= typedErrors &&
		a.failed[agent.ErrTool].class == agent.ClassNone && !a.authored[agent.ErrTool]
}

// untyped is the outcome of a program's error without a type.
func (c *opened) untyped(takes *agent.Interface, message string) agent.Outcome {
	wrong := c.unlike(takes)
	if wrong == "" {
		return agent.Failed(agent.ErrTool, message)
	}
	o := agent.Failed(agent.ErrInvalidInput, wrong)
	o.Authored = true
	return o
}

// unlike describes the first argument of the call that breaks the declared parameter's schema, or returns "".
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
		s, err := contract.CompileStored(p.Takes())
		if err != nil {
			continue // it was accepted as it is
		}
		if v := s.Check(value); v != nil {
			return fmt.Sprintf("%s is not what the method takes: %s", p.Name, v.Message)
		}
	}
	return ""
}

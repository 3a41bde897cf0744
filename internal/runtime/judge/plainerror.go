package judge

import (
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
)

// untypedOutcome returns the outcome of an error without a type: invalid_input if an argument breaks the interface,
// otherwise a failure of the program.
func untypedOutcome(c *call.Call, takes *agent.Interface, message string) agent.Outcome {
	wrong := unlikeDeclared(c, takes)
	if wrong == "" {
		return agent.Failed(agent.ErrTool, message)
	}
	o := agent.Failed(agent.ErrInvalidInput, wrong)
	o.Authored = true
	return o
}

// unlikeDeclared describes the call's first argument that breaks its parameter's schema, or returns "".
func unlikeDeclared(c *call.Call, takes *agent.Interface) string {
	if !c.Binds(takes) {
		return ""
	}
	for i := range takes.Parameters {
		p := &takes.Parameters[i]
		value := call.Member(c.Kwargs, p.Name)
		if value == nil && i < len(c.Args) {
			value = c.Args[i]
		}
		if p.Variadic || value == nil || agent.Kind(value) == "null" && !p.Required {
			continue
		}
		s, err := contract.CompileStored(p.Takes())
		if err != nil {
			continue // an unusable schema was accepted with the program
		}
		if v := s.Check(value); v != nil {
			return fmt.Sprintf("%s is not what the method takes: %s", p.Name, v.Message)
		}
	}
	return ""
}

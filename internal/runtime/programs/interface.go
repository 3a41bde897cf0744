package programs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Inferred returns the interface that the gate inferred, as it is used without a declaration.
func Inferred(f *report.Facts) *agent.Interface { return readFrom(f).Undeclared() }

// readFrom returns the interface that the gate inferred, including the further positions that an open one reads. It
// validates the facts, because they come from a confined process that is not trusted. Without a usable interface, it
// returns one that is open and reads any position.
func readFrom(f *report.Facts) *agent.Interface {
	unknown := &agent.Interface{Parameters: agent.AnyPosition(), Origin: agent.OriginInferred, Open: true}
	var out agent.Interface
	if f == nil || f.Interface == "" || len(f.Interface) > 2*agent.MaxInterfaceBytes ||
		json.Unmarshal([]byte(f.Interface), &out) != nil {
		return unknown
	}
	out.Origin, out.Summary = agent.OriginInferred, ""
	if out.Parameters == nil {
		out.Parameters = []agent.Parameter{}
	}
	for i := range out.Parameters { // keywords are kept in normal form
		p := &out.Parameters[i]
		p.Name = agent.NormalForm(p.Name)
		for j := range p.Aliases {
			p.Aliases[j] = agent.NormalForm(p.Aliases[j])
		}
	}
	// the further positions that an open interface reads may stand before parameters that it does not read by name
	if out.Undeclared().Validate() != nil || usable(&out) != nil {
		return unknown
	}
	return &out
}

// InterfaceOf returns the generation's interface. If the generation has none yet, it is inferred from the facts of a
// run.
func InterfaceOf(g *agent.Generation, f *report.Facts) *agent.Interface {
	if g.Interface != nil || f == nil {
		return g.Interface
	}
	return Inferred(f)
}

// Declared returns the interface of a program whose author may have declared one, or an error for the author to act on.
// The interface accompanies an *agent.OrderError.
func Declared(d agent.Declaration, f *report.Facts) (*agent.Interface, error) {
	out, err := d.Against(readFrom(f))
	if out == nil || d.Empty() {
		return out, err
	}
	if fault := usable(out); fault != nil {
		return nil, fault
	}
	return out, err
}

// usable returns an error that names a schema of the interface that cannot be used, or nil.
func usable(f *agent.Interface) error {
	if fault := schemaFault(f.Returns); fault != "" {
		return errors.New("returns: not a usable JSON Schema: " + fault)
	}
	for i := range f.Parameters {
		if fault := schemaFault(f.Parameters[i].Schema); fault != "" {
			return fmt.Errorf("the schema of %s is not a usable JSON Schema: %s", f.Parameters[i].Name, fault)
		}
	}
	return nil
}

// schemaFault describes why and where the schema is invalid, or returns "" if it is valid.
func schemaFault(schema json.RawMessage) string {
	if agent.Kind(schema) == "boolean" {
		return "" // valid for an argument, though not for a deliverable
	}
	_, err := contract.CompileStored(schema)
	var bad *contract.InvalidError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &bad):
		return strings.TrimSpace(bad.Pointer + " " + bad.Reason)
	}
	return err.Error()
}

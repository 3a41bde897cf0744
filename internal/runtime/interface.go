package runtime

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// inferred returns the interface that the gate inferred, as it is used without a declaration.
func inferred(f *report.Facts) *agent.Interface { return readFrom(f).Undeclared() }

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

// interfaceOf returns the generation's interface. If the generation has none yet, it is inferred from the facts of a
// run.
func interfaceOf(g *agent.Generation, f *report.Facts) *agent.Interface {
	if g.Interface != nil || f == nil {
		return g.Interface
	}
	return inferred(f)
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

// interfaceHint accompanies every refusal of an interface.
const interfaceHint = "Declare in parameters exactly what the program reads, in positional order, or change the program."

// describe determines the interface of a program that passed the gate. A declaration that does not fit the program is
// refused while the call has a retry left. After that the inferred interface is used, because a correct program is not
// given up for its description. own means that the program was written for this call, whose arguments it must accept. A
// successor that would break callers is refused unless a person asked for the change.
func (w *writer) describe(q forgeRequest, reply provider.Reply, facts *report.Facts,
	own bool) (*agent.Interface, *sandbox.Failure) {
	out, err := Declared(reply.Declaration, facts)
	var order *agent.OrderError
	if errors.As(err, &order) {
		if own && len(w.args) > order.Place { // nobody knows which parameter the argument is for
			return nil, refusedInterface(err)
		}
		err = nil
	}
	var beyond error
	if err == nil {
		w.suit(out, facts)
		if own {
			beyond = w.untaken(q, out)
		}
	}
	switch wrong := cmp.Or(err, beyond); {
	case wrong != nil && w.guardrails > 0:
		return nil, refusedInterface(wrong)
	case err != nil, beyond != nil && !facts.UsesArgs: // the call may not need arguments that the program never reads
		out = inferred(facts)
		w.suit(out, facts)
	}
	if q.predecessor == nil || !facts.UsesArgs || w.personAsked() {
		return out, nil
	}
	out.Succeed(q.predecessor.Interface)
	if broken := out.Breaks(q.predecessor.Interface); broken != "" {
		return nil, refusedInterface(errors.New(broken + "; callers of the program that it replaces rely on " +
			q.predecessor.Interface.Signature(w.method)))
	}
	return out, nil
}

// refusedInterface returns the gate's failure for an interface that does not fit.
func refusedInterface(err error) *sandbox.Failure {
	return &sandbox.Failure{Type: agent.ErrInvalidCode, Message: "interface: " + err.Error(), Hint: interfaceHint,
		Detail: "interface"}
}

// shownParameters returns the parameters as an outcome lists them, without long schemas.
func shownParameters(f *agent.Interface) []agent.Parameter {
	out := make([]agent.Parameter, len(f.Parameters))
	for i, p := range f.Parameters {
		out[i] = agent.Parameter{Name: p.Name, Type: p.Type, Description: p.Description, Required: p.Required,
			Default: p.Default, Schema: p.Schema, Aliases: p.Aliases, Variadic: p.Variadic}
		if len(p.Schema) > maxShownSchema {
			out[i].Schema = nil
		}
	}
	return out
}

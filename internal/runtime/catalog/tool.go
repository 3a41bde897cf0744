package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// A Tool is a method as shown to agents. It is shared and must not be changed.
type Tool struct {
	Name         string // the name that models call
	Title        string // role and method as identifiers
	Role, Method string
	Signature    string // the call in one line, such as add(a: number, b: number) -> number
	Description  string
	Parameters   json.RawMessage // JSON Schema of the arguments, an object
	Returns      json.RawMessage // JSON Schema of the value; nil if nothing is known
	FreeForm     bool            // nothing is known: the arguments are {"args": [...], "kwargs": {...}}

	ReadOnly  bool // the program has no effects: it fetches nothing, writes no memory, calls no tools, asks no model
	OpenWorld bool // the program may reach the network, directly or through tools that it calls

	takes   *agent.Interface // nil if nothing is known
	shape   *shape           // the shape that Parameters encodes
	gives   string           // the type of Returns; "" if it has no single type
	returns *contract.Schema // compiled Returns
	// named are the words of the name. described are the words of the description that concern the method, not its
	// author.
	named, described []string
	texts            bool // a model wrote descriptions of the parameters or of the value
	// keys maps properties to the parameters whose names cannot be keys of a schema. It is nil if there are none.
	keys map[string]string
}

// CheckValue returns an error if the value violates Returns. It returns nil if Returns is unknown or ctx ends before
// the check does.
func (t *Tool) CheckValue(ctx context.Context, value json.RawMessage) error {
	if v, _ := t.returns.CheckUntil(ctx, value); v != nil {
		return errors.New(v.Message)
	}
	return nil
}

// same reports whether both look the same to agents. Their names may differ.
func (t *Tool) same(u *Tool) bool {
	if t == nil || u == nil {
		return t == u
	}
	return t.Description == u.Description && t.Signature == u.Signature && t.FreeForm == u.FreeForm &&
		(t.takes == u.takes || t.takes != nil && u.takes != nil &&
			bytes.Equal(agent.Encoded(t.takes), agent.Encoded(u.takes))) && t.ReadOnly == u.ReadOnly &&
		t.OpenWorld == u.OpenWorld &&
		bytes.Equal(t.Parameters, u.Parameters) && bytes.Equal(t.Returns, u.Returns)
}

// freeForm is the shape of unknown arguments.
var freeForm = &shape{kind: "object",
	properties: []property{{name: "args", of: &shape{kind: "array", description: "The arguments by position.",
		items: &shape{}}},
		{name: "kwargs", of: &shape{kind: "object", description: "The arguments by name."}}}}

// freeFormSchema is encoded once, because many tools share it.
var freeFormSchema = freeForm.schema()

// describe returns the tool for a method that the generation serving answers, as d describes it. Its name is that of
// toolName until the table assigns another.
func describe(m Method, d agent.Description, serving *agent.Generation, p purposes) *Tool {
	t := &Tool{Name: toolName(m), Title: agent.Identifier(m.Role) + "." + agent.Identifier(m.Name), Role: m.Role,
		Method: m.Name, Parameters: freeFormSchema, FreeForm: true, shape: freeForm}
	if d.Generation != nil {
		t.take(d.Generation, d.Generation == serving)
	}
	facts := report.Facts{}
	if g := serving; g.Keeps(agent.FingerprintNone) && len(g.Facts) > 0 && json.Unmarshal(g.Facts, &facts) == nil {
		writes := len(facts.ContextWrites) > 0 || facts.UsesTools || facts.UsesDelegate
		asks := strings.Contains(g.Code, "Ask") || strings.Contains(g.Code, "Predict") // the facts do not cover these
		t.OpenWorld = facts.UsesFetch || facts.UsesTools || facts.UsesDelegate || asks
		t.ReadOnly = !writes && !t.OpenWorld
	} else {
		t.OpenWorld = true // nothing is known
	}
	t.Signature = t.takes.Signature(m.Name)
	says := p.describe(m, d)
	t.Description = t.describedBy(says)
	t.named, t.described = words(m.Role+" "+m.Name),
		words(agent.OneLine(says.words, maxPurpose)+" "+clipped(t.Signature))
	return t
}

// take uses the generation's interface. Its return schema is used only if the generation serves, because it does not
// bind later programs.
func (t *Tool) take(g *agent.Generation, serves bool) {
	f := g.Interface
	if f == nil {
		return
	}
	t.takes, t.FreeForm = f, false
	if t.shape, t.keys, t.texts = parameters(f); t.byName() {
		t.shape, t.keys = freeForm, nil
	}
	t.Parameters = t.shape.schema()
	if serves && f.Returns != nil {
		if of, texts := shapeOf(f.Returns, false); !of.any() || of.description != "" {
			t.Returns, t.gives, t.texts = of.schema(), of.kind, t.texts || texts
			t.returns, _ = contract.CompileStored(t.Returns) // a shape always compiles
		}
	}
	t.texts = t.texts && f.Origin == agent.OriginDeclared && !g.ByPerson()
}

// byName reports whether the program reads keywords whose names are not known, and no others.
func (t *Tool) byName() bool { return t.takes != nil && t.takes.Open && len(t.takes.Parameters) == 0 }

// parameters returns the shape of the arguments by name, in positional order, the keys of Tool.keys, and whether there
// are descriptions.
func parameters(f *agent.Interface) (s *shape, keys map[string]string, texts bool) {
	s = &shape{kind: "object"}
	taken := map[string]bool{}
	for i := range f.Parameters {
		taken[f.Parameters[i].Name] = true
	}
	for i := range f.Parameters {
		p := &f.Parameters[i]
		of, described := shapeOf(p.JSONSchema(), true)
		key := propertyKey(p.Name, taken)
		if key != p.Name {
			if keys == nil {
				keys = map[string]string{}
			}
			keys[key] = p.Name
			named := *of
			named.description = sentences("The argument "+strconv.Quote(p.Name)+".", of.description)
			of = &named
		}
		if of.any() && of.description == "" {
			of = &shape{description: "Any value."}
		}
		s.properties, texts = append(s.properties, property{key, p.Required, of}), texts || described
	}
	return s, keys, texts
}

// clipped returns the searched beginning of a signature.
func clipped(signature string) string { return signature[:min(len(signature), maxPurpose)] }

// Bounds in characters. Some versions of OpenAI's API reject longer tool descriptions.
const (
	maxPurpose     = 1000 // the searched part of a person's text
	maxDescription = 1024 // of a tool's description
)

// A text is a description of a method.
type text struct {
	words   string // may be empty
	ofRole  bool   // it describes the whole role
	byModel bool   // a model or a client's call provided it
}

// describedBy returns the tool's description from x. It includes the role and method, because tool names may be cut,
// and marks text that no person wrote.
func (t *Tool) describedBy(x text) string {
	title := t.Title
	if x.ofRole {
		title += ", of " + agent.Identifier(t.Role)
	}
	known := ""
	if x.words == "" || x.ofRole { // nobody described the method
		known = ". " + t.known()
	}
	switch {
	case x.byModel:
		return strings.TrimSuffix(title+known, ".") + ". Described by a language model, parameters included: " +
			agent.OneLine(x.words, maxText)
	case x.ofRole:
		title += ": " + strings.TrimSuffix(agent.OneLine(x.words, maxDescription/2), ".")
	case x.words != "":
		title += ": " + x.words
	}
	title += known
	const ofParameters = ". A language model described the parameters."
	if t.texts {
		return strings.TrimSuffix(agent.OneLine(title, maxDescription-len(ofParameters)), ".") + ofParameters
	}
	return agent.OneLine(title, maxDescription)
}

// known returns a description derived from the interface, for a method that nobody described.
func (t *Tool) known() string {
	var takes []string
	for _, p := range t.shape.properties {
		one := p.name
		if kind := p.of.kind; kind != "" {
			one += " (" + kind + ")"
		}
		if !p.required {
			one += ", optional"
		}
		takes = append(takes, one)
	}
	text := "It takes " + strings.Join(takes, "; ") + "."
	switch {
	case t.FreeForm:
		text = "What it takes is not known."
	case t.byName():
		text = "It takes arguments by name."
	case len(takes) == 0:
		text = "It takes nothing."
	}
	if t.gives != "" {
		text += " It returns: " + t.gives + "."
	}
	if t.ReadOnly {
		text += " It has no effects."
	} else if t.OpenWorld {
		text += " It may reach the network."
	}
	return agent.OneLine(text, maxText)
}

// purposes holds the purposes in a role's contract: the role's and those of its methods.
type purposes struct {
	role    string
	methods map[string]string
	to      agent.Audience // who may read it
}

// describe returns the best description of the method that the audience d.To may read.
func (p purposes) describe(m Method, d agent.Description) text {
	of := p
	if !p.to.All && p.to != d.To {
		of = purposes{}
	}
	summary, byPerson := "", false
	if g := d.Generation; g != nil && g.Interface != nil {
		summary, byPerson = g.Interface.Summary, g.ByPerson()
	}
	switch purpose := of.methods[m.Name]; {
	case purpose != "":
		return text{words: purpose, byModel: !p.to.All}
	case summary != "":
		return text{words: summary, byModel: !byPerson}
	}
	return text{words: of.role, ofRole: of.role != "", byModel: of.role != "" && !p.to.All}
}

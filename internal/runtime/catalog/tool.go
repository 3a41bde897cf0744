package catalog

import (
	"bytes"
	"context"
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
	Title        string // role and method as identifiers
	Role, Method string
	Signature    string // the call in one line, such as add(a: number, b: number) -> number
	Description  string
	Parameters   json.RawMessage // JSON Schema of the arguments, an object
	Returns      json.RawMessage // JSON Schema of the value; nil where nothing is known
	FreeForm     bool            // nothing is known of the arguments: they are {"args": [...], "kwargs": {...}}

	ReadOnly  bool // the program has no effects: it fetches nothing, writes no memory, calls no tools, asks no model
	OpenWorld bool // the program may reach the network, itself or by tools that it calls

	takes   *agent.Interface // nil where nothing is known
	shape   *shape           // of Parameters
	gives   string           // the type of Returns; "" where it is not one
	returns *contract.Schema // compiled Returns
	// words of the name, and of what Description says of the method and not of the author
	named, described []string
	texts            bool // a model described the parameters or the value
}

// CheckValue returns nil where the value is what Returns says, or nothing is said, or ctx ends before that is known.
func (t *Tool) CheckValue(ctx context.Context, value json.RawMessage) error {
	if v, _ := t.returns.CheckUntil(ctx, value); v != nil {
		return errors.New(v.Message)
	}
	return nil
}

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

var freeFormSchema = freeForm.schema()

// describe makes the tool of a method that the generation serving answers, as the description shows it. Its name is toolName's, until the table gives
// another.
func describe(m Method, d agent.Description, serving *agent.Generation, p purposes) *Tool {
	t := &Tool{Name: toolName(m), Title: agent.Identifier(m.Role) + "." + agent.Identifier(m.Name), Role: m.Role,
		Method: m.Name, Parameters: freeFormSchema, FreeForm: true, shape: freeForm}
	if d.Generation != nil {
		t.take(d.Generation, d.Generation == serving)
	}
	facts := report.Facts{}
	if g := serving; g.Keeps(agent.FingerprintNone) && len(g.Facts) > 0 && json.Unmarshal(g.Facts, &facts) == nil {
		writes := len(facts.ContextWrites) > 0 || facts.UsesTools || facts.UsesDelegate
		asks := strings.Contains(g.Code, "Ask") || strings.Contains(g.Code, "Predict") // the facts do not say
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

// take reads the generation's interface. What a program returned does not bind those that replaced it.
func (t *Tool) take(g *agent.Generation, serves bool) {
	f := g.Interface
	if f == nil {
		return
	}
	t.takes, t.FreeForm = f, false
	t.shape, t.texts = parameters(f)
	t.Parameters = t.shape.schema()
	if serves && f.Returns != nil {
		if of, texts := shapeOf(f.Returns, false); !of.any() || of.description != "" {
			t.Returns, t.gives, t.texts = of.schema(), of.kind, t.texts || texts
			t.returns, _ = contract.CompileStored(t.Returns) // a shape compiles
		}
	}
	t.texts = t.texts && f.Origin == agent.OriginDeclared && !g.ByPerson()
}

// parameters returns the shape of the arguments by name, in positional order.
func parameters(f *agent.Interface) (s *shape, texts bool) {
	s = &shape{kind: "object"}
	for i := range f.Parameters {
		p := &f.Parameters[i]
		of, described := shapeOf(p.JSONSchema(), true)
		if of.any() && of.description == "" {
			of = &shape{description: "Any value."}
		}
		s.properties, texts = append(s.properties, property{p.Name, p.Required, of}), texts || described
	}
	return s, texts
}

// clipped is the beginning of a signature, as far as it is searched.
func clipped(signature string) string { return signature[:min(len(signature), maxPurpose)] }

// Bounds in characters. Some versions of OpenAI's interface refuse longer descriptions of tools.
const (
	maxPurpose     = 1000 // of a person's text, as it is searched
	maxDescription = 1024 // of a tool's description
)

// A text describes a method.
type text struct {
	words   string // "" for none
	ofRole  bool   // it is about the whole role
	byModel bool   // a model wrote it, or a client's call brought it
}

// describedBy describes the method and names its role: names of tools may be cut. What no person wrote is marked.
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

// known describes a method from its interface if nobody described it.
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
	case len(takes) == 0 && t.takes.Open:
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

// purposes is what a role's contract says its methods are for.
type purposes struct {
	role    string
	methods map[string]string
	to      agent.Audience // who may read it
}

// describe returns what is known of the method to those for whom it is described.
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

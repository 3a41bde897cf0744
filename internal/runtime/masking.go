package runtime

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/equal"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A shownInput is a call's input as it is stored and shown, with secrets masked.
type shownInput struct {
	args    []json.RawMessage
	kwargs  json.RawMessage
	masked  bool
	takes   *agent.Interface // interface whose parameter names were considered; nil if none
	secrets []string         // secrets of the input and of the calls above
	known   *mask.Known      // finds the secrets
}

// maskInput masks the input according to the method's parameters. It is called again when the interface becomes known.
func (c *Call) maskInput(takes *agent.Interface) {
	in := &c.first
	if c.input.Load() != nil {
		in = &shownInput{}
	}
	named := takes
	if !c.namesSecret(takes) {
		named = nil
	}
	m := c.rules.Call(c.args, c.kwargs, c.positionalNames(named), c.keywordNames(named))
	in.args, in.kwargs, in.masked, in.takes = m.Args, m.Kwargs, m.Changed, takes
	in.secrets = append(slices.Clip(c.inherited), m.Secrets...)
	in.known = mask.NewKnown(in.secrets...).Until(&c.life)
	if len(c.inherited) > 0 {
		in.args = slices.Clone(in.args)
		for i := range in.args {
			var found bool
			in.args[i], found = in.known.JSON(in.args[i])
			in.masked = in.masked || found
		}
		var found bool
		in.kwargs, found = in.known.JSON(in.kwargs)
		in.masked = in.masked || found
	}
	c.input.Store(in)
}

// shown returns the call's input as it may be shown.
func (c *Call) shown() *shownInput {
	if in := c.input.Load(); in != nil {
		return in
	}
	return &shownInput{args: c.args, kwargs: c.kwargs}
}

// reveal masks the input again if the interface marks an argument as secret.
func (c *Call) reveal(takes *agent.Interface) {
	if takes != c.shown().takes && c.namesSecret(takes) {
		c.maskInput(takes)
	}
}

// namesSecret reports whether any parameter may be a secret.
func (c *Call) namesSecret(takes *agent.Interface) bool {
	if takes == nil {
		return false
	}
	for i := range takes.Parameters {
		if c.rules.Names(c.secretName(&takes.Parameters[i])) {
			return true
		}
	}
	return false
}

// storedInterface returns the interface of the method's current program. It returns nil if the program is unknown, or
// if no positional argument can be a secret.
func (c *Call) storedInterface() *agent.Interface {
	if !slices.ContainsFunc(c.args, func(arg json.RawMessage) bool {
		return len(arg) > 0 &&
			bytes.IndexByte([]byte(`"[{`), arg[0]) >= 0
	}) {
		return nil
	}
	a, err := c.env.Store.Artifact(c.env.Within(), c.role, c.method)
	if err != nil {
		return nil
	}
	return a.Takes()
}

// positionalNames returns the parameter names of the positional arguments.
func (c *Call) positionalNames(takes *agent.Interface) []string {
	if key := setterKey(c.method); key != "" {
		return []string{key}
	}
	if takes == nil || len(c.args) == 0 {
		return nil
	}
	var names []string
	for i := 0; len(names) < len(c.args) && len(takes.Parameters) > 0; i++ {
		p := &takes.Parameters[min(i, len(takes.Parameters)-1)]
		if i >= len(takes.Parameters) && !p.Variadic {
			break
		}
		names = append(names, c.secretName(p))
	}
	return names
}

// keywordNames returns a function that maps a keyword to its parameter's name. It returns nil if the keywords
// themselves suffice.
func (c *Call) keywordNames(takes *agent.Interface) func(string) string {
	if takes == nil || len(c.kwargs) <= len("{}") {
		return nil
	}
	return func(keyword string) string {
		p, _ := takes.Parameter(keyword)
		if p == nil {
			return ""
		}
		return c.secretName(p)
	}
}

// declaredSecret reports whether the schema marks its value as a secret. It runs for every parameter of every call, so
// a schema that cannot mark a secret is not decoded.
func declaredSecret(schema json.RawMessage) bool {
	if !bytes.ContainsAny(schema, `wW\`) { // neither password nor writeOnly occurs, not even escaped
		return false
	}
	var says struct {
		Format    string `json:"format"`
		WriteOnly bool   `json:"writeOnly"`
	}
	return json.Unmarshal(schema, &says) == nil && (says.Format == "password" || says.WriteOnly)
}

// secretName returns the name under which the parameter is checked for secrecy: password if its schema declares a
// secret, an alias if only the alias looks secret, otherwise its own name.
func (c *Call) secretName(p *agent.Parameter) string {
	if declaredSecret(p.Schema) {
		return "password"
	}
	for _, alias := range p.Aliases {
		if c.rules.Names(alias) && !c.rules.Names(p.Name) {
			return alias
		}
	}
	return p.Name
}

// mask masks secrets in text that is stored or shown to a model.
func (c *Call) mask(text string) string {
	return c.shown().known.String(c.rules.Until(&c.life).Text(text))
}

// maskDocument masks secrets in the beginning and the end of a file or a fetched body that are shown to a model.
func (c *Call) maskDocument(beginning, end string) (first, last string) {
	first, last = c.rules.Until(&c.life).Document(beginning, end)
	known := c.shown().known
	return known.String(first), known.String(last)
}

// clip prepares a value for a model. It masks secrets before it cuts, since a cut secret would not be found.
func (c *Call) clip(value string) string { return agent.Clip(c.mask(value), 300) }

// maskJSON masks secrets in a value that is stored or shown to a model.
func (c *Call) maskJSON(raw json.RawMessage) (masked json.RawMessage, changed bool) {
	masked, byRules := c.rules.Until(&c.life).JSON(raw)
	masked, known := c.shown().known.JSON(masked)
	return masked, byRules || known
}

// maskData applies maskJSON to data. It returns nil if the data has no JSON encoding.
func (c *Call) maskData(data map[string]any) map[string]any {
	if len(data) == 0 {
		return data
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	masked, changed := c.maskJSON(raw)
	if !changed {
		return data
	}
	var out map[string]any
	if json.Unmarshal(masked, &out) != nil {
		return nil
	}
	return out
}

// maskFetches masks secrets in the recorded parts of fetches: URLs and the beginnings of bodies.
func (c *Call) maskFetches(all []sandbox.Fetch) {
	for i := range all {
		f := &all[i]
		f.URL, f.Asked = c.mask(f.URL), c.mask(f.Asked)
		f.Sample, _ = c.maskDocument(f.Sample, "")
	}
}

// maskEntry masks secrets in the parts of a log entry other than arguments.
func (c *Call) maskEntry(e *agent.LogEntry) {
	e.OutcomeErrorMessage, e.ContractValidationMismatch = c.mask(e.OutcomeErrorMessage),
		c.mask(e.ContractValidationMismatch)
	e.OutcomeErrorMetadata = c.maskData(e.OutcomeErrorMetadata)
	for i, w := range e.Warnings {
		e.Warnings[i] = c.mask(w)
	}
	known := c.shown().known // for prompts: an interface may have revealed secrets after they were sent
	e.SystemPrompt, e.UserPrompt = known.String(e.SystemPrompt), known.String(e.UserPrompt)
	e.Context, _ = c.maskJSON(e.Context)
}

// maskItself finds the mask in the spellings that a program produces when it was given the mask in place of a secret.
var maskItself = mask.NewKnown(mask.Masked)

// Canonical returns a function that brings a program's request into the form that a journal with masked secrets holds.
func Canonical(rules *mask.Rules) func(json.RawMessage) json.RawMessage {
	return func(asked json.RawMessage) json.RawMessage {
		masked, _ := rules.JSON(asked)
		masked, _ = maskItself.JSON(masked)
		return masked
	}
}

// sameShown compares a value with one that was stored masked.
func (c *Call) sameShown(now, stored json.RawMessage) bool {
	form := Canonical(c.rules)
	return equal.Exact(form(now), form(stored))
}

// shownArgs returns another call's arguments with secrets masked.
func (c *Call) shownArgs(args []json.RawMessage, kwargs json.RawMessage) ([]json.RawMessage, json.RawMessage) {
	m := c.rules.Call(args, kwargs, nil, nil)
	return m.Args, m.Kwargs
}

package call

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/runtime/equal"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// An Input is a call's input as it is stored and shown, with secrets masked.
type Input struct {
	Args    []json.RawMessage
	Kwargs  json.RawMessage
	Masked  bool
	takes   *agent.Interface // interface whose parameter names were considered; nil if none
	Secrets []string         // secrets of the input and of the calls above
	Known   *mask.Known      // finds the secrets
}

// maskInput masks the input according to the method's parameters. It is called again when the interface becomes known.
func (c *Call) maskInput(takes *agent.Interface) {
	in := &c.first
	if c.input.Load() != nil {
		in = &Input{}
	}
	named := takes
	if !c.namesSecret(takes) {
		named = nil
	}
	m := c.Rules.Call(c.Args, c.Kwargs, c.positionalNames(named), c.keywordNames(named))
	in.Args, in.Kwargs, in.Masked, in.takes = m.Args, m.Kwargs, m.Changed, takes
	in.Secrets = append(slices.Clip(c.Inherited), m.Secrets...)
	in.Known = mask.NewKnown(in.Secrets...).Until(&c.Life)
	if len(c.Inherited) > 0 {
		in.Args = slices.Clone(in.Args)
		for i := range in.Args {
			var found bool
			in.Args[i], found = in.Known.JSON(in.Args[i])
			in.Masked = in.Masked || found
		}
		var found bool
		in.Kwargs, found = in.Known.JSON(in.Kwargs)
		in.Masked = in.Masked || found
	}
	c.input.Store(in)
}

// Shown returns the call's input as it may be shown.
func (c *Call) Shown() *Input {
	if in := c.input.Load(); in != nil {
		return in
	}
	return &Input{Args: c.Args, Kwargs: c.Kwargs}
}

// Reveal masks the input again if the interface marks an argument as secret.
func (c *Call) Reveal(takes *agent.Interface) {
	if takes != c.Shown().takes && c.namesSecret(takes) {
		c.maskInput(takes)
	}
}

// namesSecret reports whether any parameter may be a secret.
func (c *Call) namesSecret(takes *agent.Interface) bool {
	if takes == nil {
		return false
	}
	for i := range takes.Parameters {
		if c.Rules.Names(c.secretName(&takes.Parameters[i])) {
			return true
		}
	}
	return false
}

// storedInterface returns the interface of the method's current program. It returns nil if the program is unknown, or
// if no positional argument can be a secret.
func (c *Call) storedInterface() *agent.Interface {
	if !slices.ContainsFunc(c.Args, func(arg json.RawMessage) bool {
		return len(arg) > 0 &&
			bytes.IndexByte([]byte(`"[{`), arg[0]) >= 0
	}) {
		return nil
	}
	a, err := c.Env.Store.Artifact(c.Env.Within(), c.Role, c.Method)
	if err != nil {
		return nil
	}
	return a.Takes()
}

// positionalNames returns the parameter names of the positional arguments.
func (c *Call) positionalNames(takes *agent.Interface) []string {
	if key := SetterKey(c.Method); key != "" {
		return []string{key}
	}
	if takes == nil || len(c.Args) == 0 {
		return nil
	}
	var names []string
	for i := 0; len(names) < len(c.Args) && len(takes.Parameters) > 0; i++ {
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
	if takes == nil || len(c.Kwargs) <= len("{}") {
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
		if c.Rules.Names(alias) && !c.Rules.Names(p.Name) {
			return alias
		}
	}
	return p.Name
}

// Mask masks secrets in text that is stored or shown to a model.
func (c *Call) Mask(text string) string {
	return c.Shown().Known.String(c.Rules.Until(&c.Life).Text(text))
}

// MaskDocument masks secrets in the beginning and the end of a file or a fetched body that are shown to a model.
func (c *Call) MaskDocument(beginning, end string) (first, last string) {
	first, last = c.Rules.Until(&c.Life).Document(beginning, end)
	known := c.Shown().Known
	return known.String(first), known.String(last)
}

// Clip prepares a value for a model. It masks secrets before it cuts, since a cut secret would not be found.
func (c *Call) Clip(value string) string { return agent.Clip(c.Mask(value), 300) }

// MaskJSON masks secrets in a value that is stored or shown to a model.
func (c *Call) MaskJSON(raw json.RawMessage) (masked json.RawMessage, changed bool) {
	masked, byRules := c.Rules.Until(&c.Life).JSON(raw)
	masked, known := c.Shown().Known.JSON(masked)
	return masked, byRules || known
}

// MaskData applies MaskJSON to data. It returns nil if the data has no JSON encoding.
func (c *Call) MaskData(data map[string]any) map[string]any {
	if len(data) == 0 {
		return data
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	masked, changed := c.MaskJSON(raw)
	if !changed {
		return data
	}
	var out map[string]any
	if json.Unmarshal(masked, &out) != nil {
		return nil
	}
	return out
}

// MaskFetches masks secrets in the recorded parts of fetches: URLs and the beginnings of bodies.
func (c *Call) MaskFetches(all []sandbox.Fetch) {
	for i := range all {
		f := &all[i]
		f.URL, f.Asked = c.Mask(f.URL), c.Mask(f.Asked)
		f.Sample, _ = c.MaskDocument(f.Sample, "")
	}
}

// MaskEntry masks secrets in the parts of a log entry other than arguments.
func (c *Call) MaskEntry(e *agent.LogEntry) {
	e.OutcomeErrorMessage, e.ContractValidationMismatch = c.Mask(e.OutcomeErrorMessage),
		c.Mask(e.ContractValidationMismatch)
	e.OutcomeErrorMetadata = c.MaskData(e.OutcomeErrorMetadata)
	for i, w := range e.Warnings {
		e.Warnings[i] = c.Mask(w)
	}
	known := c.Shown().Known // for prompts: an interface may have revealed secrets after they were sent
	e.SystemPrompt, e.UserPrompt = known.String(e.SystemPrompt), known.String(e.UserPrompt)
	e.Context, _ = c.MaskJSON(e.Context)
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

// SameShown compares a value with one that was stored masked.
func (c *Call) SameShown(now, stored json.RawMessage) bool {
	form := Canonical(c.Rules)
	return equal.Exact(form(now), form(stored))
}

// ShownArgs returns another call's arguments with secrets masked.
func (c *Call) ShownArgs(args []json.RawMessage, kwargs json.RawMessage) ([]json.RawMessage, json.RawMessage) {
	m := c.Rules.Call(args, kwargs, nil, nil)
	return m.Args, m.Kwargs
}

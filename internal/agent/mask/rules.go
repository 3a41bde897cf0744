package mask

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
)

// Rules recognize secrets by name, place or shape. They are immutable. Nil Rules mask nothing.
type Rules struct {
	names [256][]pattern // by the last character, in lower case
}

// Compile returns Rules for a list of name patterns:
//
//	token        a value with this name is masked, except null, true and false
//	key?         a value with this name is masked if it looks like a secret: random letters and digits, at least 16
//	!page_token  a value with this name is not masked because of its name
//
// Letter case and separators do not matter. A pattern matches the last words of a name: password matches Password,
// db_password and userPassword; api_key matches apiKey and X-Api-Key; token does not match tokens. The longest matching
// pattern counts. The Rules also mask user information and matching parameters of URLs, headers and assignments in
// texts, and the shapes of well-known secrets.
//
// An empty list gives nil Rules. Consecutive calls with equal lists share one value, as do namespaces with the initial
// policy.
func Compile(patterns []string) *Rules {
	if len(patterns) == 0 {
		return nil
	}
	if c := latest.Load(); c != nil && slices.Equal(c.patterns, patterns) {
		return c.rules
	}
	r := compile(patterns)
	latest.Store(&compiled{slices.Clone(patterns), r})
	return r
}

// compiled pairs rules with the patterns that they were compiled from.
type compiled struct {
	patterns []string
	rules    *Rules
}

// latest is the latest result of Compile.
var latest atomic.Pointer[compiled]

func compile(patterns []string) *Rules {
	r := &Rules{}
	for _, text := range patterns {
		p := newPattern(text)
		if p.name == "" {
			continue
		}
		last := lower(p.name[len(p.name)-1])
		r.names[last] = append(r.names[last], p)
	}
	return r
}

// JSON returns raw with each secret replaced by "[masked]", and reports whether there was one. Without secrets it
// returns raw itself, without allocating unless a string has escapes. A value whose name marks a secret is replaced
// whole. raw must be valid JSON; for other text the result is unspecified.
func (r *Rules) JSON(raw json.RawMessage) (masked json.RawMessage, changed bool) {
	return Ending{rules: r}.JSON(raw)
}

// Text returns text with its secrets masked. JSON in the text, whole or truncated, is also masked by member names.
func (r *Rules) Text(text string) string { return Ending{rules: r}.Text(text) }

// Ending is a set of Rules whose passes end with a context.
type Ending struct {
	rules *Rules
	until context.Context // nil means never
}

// Until returns rules whose pass over more than 64 KiB stops once ctx has ended: texts not scanned by then that may
// hold a secret are masked whole. Call does not stop early, because the secrets that it finds are then looked for
// elsewhere.
func (r *Rules) Until(ctx context.Context) Ending { return Ending{r, ctx} }

// JSON is Rules.JSON, bounded by the context.
func (e Ending) JSON(raw json.RawMessage) (masked json.RawMessage, changed bool) {
	p := pass{rules: e.rules, until: e.until}
	return p.json(raw)
}

// Text is Rules.Text, bounded by the context.
func (e Ending) Text(text string) string {
	p := pass{rules: e.rules, until: e.until}
	masked, changed := p.text([]byte(text))
	if !changed {
		return text
	}
	return string(masked)
}

// Secret reports whether a value with this name is always masked, whatever it looks like.
func (r *Rules) Secret(name string) bool { return r.match([]byte(name)) == always }

// Names reports whether a value with this name may be masked because of it.
func (r *Rules) Names(name string) bool { return r.match([]byte(name)) != never }

// A Call is the input of a call with its secrets masked.
type Call struct {
	Args    []json.RawMessage
	Kwargs  json.RawMessage
	Changed bool     // something was masked
	Secrets []string // the texts that were masked
}

// Call masks the input of a call. names are the known names of the positional arguments. rename, which may be nil,
// returns the parameter name for a keyword; a keyword is masked if either name calls for it.
func (r *Rules) Call(args []json.RawMessage, kwargs json.RawMessage, names []string, rename func(string) string) Call {
	p := pass{rules: r, keep: true}
	c := Call{Args: args}
	for i, arg := range args {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		masked, changed := p.named(name, arg)
		if !changed {
			continue
		}
		if !c.Changed {
			c.Args, c.Changed = append([]json.RawMessage{}, args...), true
		}
		c.Args[i] = masked
	}
	p.rename = rename
	kwargs, changed := p.json(kwargs)
	c.Kwargs, c.Changed, c.Secrets = kwargs, c.Changed || changed, p.secrets
	return c
}

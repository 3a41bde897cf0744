package mask

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
)

// Rules say what is a secret by its name, its place or its form. They do not change. Nil Rules mask nothing.
type Rules struct {
	names [256][]pattern // by the last letter, in lower case
}

// Compile makes Rules of a list of patterns of names:
//
//	token        what is called so is masked, except null, true and false
//	key?         what is called so is masked where it looks like a secret: random letters and digits, at least 16
//	!page_token  what is called so is not masked for its name
//
// Letter case and separators do not matter, and a pattern matches a name by its last words: password matches Password,
// db_password and userPassword, api_key matches apiKey and X-Api-Key; token does not match tokens. Of several patterns that
// match, the longest one counts. Beside these, user information and such parameters of URLs, headers and assignments in texts,
// and the forms of well-known secrets are masked. An empty list makes nil Rules. Those that ask for the same list one after another, as
// namespaces do that have the policy of the start, share one value.
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

// compiled are rules with the list of which they are made.
type compiled struct {
	patterns []string
	rules    *Rules
}

// latest is what Compile made last.
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

// JSON returns raw with "[masked]" in the place of each secret, and whether there was one; without one it returns raw itself, with
// no allocation unless a text has escapes. Of a value under the name of a secret nothing is left. raw must be valid JSON; of other text
// JSON returns something.
func (r *Rules) JSON(raw json.RawMessage) (masked json.RawMessage, changed bool) {
	return Ending{rules: r}.JSON(raw)
}

// Text returns text with the secrets in it masked. JSON in the text, whole or cut, is masked by its names, too.
func (r *Rules) Text(text string) string { return Ending{rules: r}.Text(text) }

// Ending are Rules whose passes end with a context.
type Ending struct {
	rules *Rules
	until context.Context // nil: they do not
}

// Until returns the rules such that a pass over more than 64 KiB ends with ctx: what it has not looked through by then and may hold a secret
// is masked whole. What a Call finds is looked for elsewhere, so its pass does not end.
func (r *Rules) Until(ctx context.Context) Ending { return Ending{r, ctx} }

// JSON is that of Rules.
func (e Ending) JSON(raw json.RawMessage) (masked json.RawMessage, changed bool) {
	p := pass{rules: e.rules, until: e.until}
	return p.json(raw)
}

// Text is that of Rules.
func (e Ending) Text(text string) string {
	p := pass{rules: e.rules, until: e.until}
	masked, changed := p.text([]byte(text))
	if !changed {
		return text
	}
	return string(masked)
}

// Secret reports whether what has this name is masked for it, whatever it looks like.
func (r *Rules) Secret(name string) bool { return r.match([]byte(name)) == always }

// Names reports whether what has this name may be masked for it.
func (r *Rules) Names(name string) bool { return r.match([]byte(name)) != never }

// A Call is the input of a call with its secrets masked.
type Call struct {
	Args    []json.RawMessage
	Kwargs  json.RawMessage
	Changed bool     // something was masked
	Secrets []string // the texts that were masked
}

// Call masks the input of a call. names are those of the positional arguments, as far as they are known. rename gives a keyword
// argument the name of its parameter, which counts beside its own; it may be nil.
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

package provider

import (
	"time"
)

// anHour and aDay are how long lessons are remembered. A server may be restarted with other settings, so what it
// refused is tried again after an hour. Figures that it states for its model last longer.
const (
	anHour = time.Hour
	aDay   = 24 * time.Hour
)

// An aspect is one feature of a server or a model that can be learned.
type aspect int

const (
	aspectTools aspect = iota
	aspectShort        // the short schema of the tool
	aspectSystem
	aspectField
	aspectLimit
	aspectContext
	aspectStream
	aspectUncounted // streams without usage
	aspectText      // replies without response_format
	aspects
)

// A Fact is one member of a Profile. If LearnedFrom is empty, nothing was learned and Value is what is tried first.
type Fact[T any] struct {
	Value       T          `json:"value"`
	LearnedFrom string     `json:"learned_from,omitempty"` // the server's words
	At          *time.Time `json:"at,omitempty"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
}

// A Profile describes how a model at its server must be asked, as far as that is known.
type Profile struct {
	Tools      Fact[string] `json:"tools"`       // forced, auto or none
	System     Fact[string] `json:"system"`      // role or merged
	LimitField Fact[string] `json:"limit_field"` // max_completion_tokens, max_tokens, both or none
	Limit      Fact[int]    `json:"limit"`       // tokens of a reply
	Context    Fact[int]    `json:"context"`     // tokens of prompt and reply; 0 means unknown
	StreamOnly Fact[bool]   `json:"stream_only"`
}

// profile is what was learned of a model. Expired facts are ignored.
type profile struct {
	way   way
	facts [aspects]fact
}

type fact struct {
	from      string // the server's words; "" means that nothing was learned
	at, until time.Time
}

// put copies an aspect of the way from.
func (p *profile) put(a aspect, from way, f fact) {
	p.way.take(a, from)
	p.facts[a] = f
}

// take copies one aspect from another way.
func (w *way) take(a aspect, from way) {
	switch a {
	case aspectTools:
		w.tools = from.tools
	case aspectShort:
		w.plain = from.plain
	case aspectSystem:
		w.merged = from.merged
	case aspectField:
		w.field = from.field
	case aspectLimit:
		w.limit = from.limit
	case aspectContext:
		w.context = from.context
	case aspectStream:
		w.stream = from.stream
	case aspectUncounted:
		w.uncounted = from.uncounted
	case aspectText:
		w.text = from.text
	}
}

// known returns the way learned for the model, and the facts of the learned aspects.
func (p *OpenAI) known(model string) (way, [aspects]fact) {
	w, now := p.firstWay(model), time.Now()
	p.mu.Lock()
	learned := p.profiles[model]
	p.mu.Unlock()
	for a := range learned.facts {
		if f := learned.facts[a]; f.from != "" && now.Before(f.until) {
			w.take(aspect(a), learned.way)
		} else {
			learned.facts[a] = fact{}
		}
	}
	return w, learned.facts
}

// maxProfiles bounds the number of models with a profile, because clients choose the names.
const maxProfiles = 1000

// learn stores an aspect of the way for the model.
func (p *OpenAI) learn(model string, l lesson) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.profiles[model]; !ok && len(p.profiles) >= maxProfiles {
		clear(p.profiles) // they are learned again when needed
	}
	learned := p.profiles[model]
	learned.put(l.aspect, l.way, fact{p.scrub(l.from), now, now.Add(l.lasts)})
	p.profiles[model] = learned
}

// Context returns the size of the model's context in tokens, prompt and reply together, or 0 if it is unknown.
func (p *OpenAI) Context(model string) int {
	w, _ := p.known(model)
	return w.context
}

// Profile returns how the model is asked.
func (p *OpenAI) Profile(model string) Profile {
	w, facts := p.known(model)
	system := "role"
	if w.merged {
		system = "merged"
	}
	return Profile{
		Tools:      factOf(w.tools.String(), facts[aspectTools]),
		System:     factOf(system, facts[aspectSystem]),
		LimitField: factOf(w.field.String(), facts[aspectField]),
		Limit:      factOf(w.limit, facts[aspectLimit]),
		Context:    factOf(w.context, facts[aspectContext]),
		StreamOnly: factOf(w.stream, facts[aspectStream]),
	}
}

func factOf[T any](value T, f fact) Fact[T] {
	out := Fact[T]{Value: value, LearnedFrom: f.from}
	if f.from != "" {
		at, until := f.at.UTC(), f.until.UTC()
		out.At, out.ExpiresAt = &at, &until
	}
	return out
}

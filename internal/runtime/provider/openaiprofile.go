package provider

import (
	"time"
)

// How long something is believed. A server may be started with other settings, so that refusals are tried again within the hour; what
// it states of its model in figures lasts longer.
const (
	anHour = time.Hour
	aDay   = 24 * time.Hour
)

// An aspect is one capability of a server or a model.
type aspect int

const (
	aspectTools aspect = iota
	aspectShort        // of the tool's schema
	aspectSystem
	aspectField
	aspectLimit
	aspectContext
	aspectStream
	aspectUncounted // of streams
	aspectText      // of replies that have a schema
	aspects
)

// A Fact is one member of a Profile. LearnedFrom is empty where nothing was learned, so that Value is what is tried first.
type Fact[T any] struct {
	Value       T          `json:"value"`
	LearnedFrom string     `json:"learned_from,omitempty"` // the server's words
	At          *time.Time `json:"at,omitempty"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
}

// A Profile is what is known of how a model at its server wants to be asked.
type Profile struct {
	Tools      Fact[string] `json:"tools"`       // forced, auto or none
	System     Fact[string] `json:"system"`      // role or merged
	LimitField Fact[string] `json:"limit_field"` // max_completion_tokens, max_tokens, both or none
	Limit      Fact[int]    `json:"limit"`       // tokens of a reply
	Context    Fact[int]    `json:"context"`     // tokens of prompt and reply; 0: unknown
	StreamOnly Fact[bool]   `json:"stream_only"`
}

// profile is what was learned of a model. A fact whose time is over counts no more.
type profile struct {
	way   way
	facts [aspects]fact
}

type fact struct {
	from      string // "": nothing was learned
	at, until time.Time
}

// put takes an aspect of the way.
func (p *profile) put(a aspect, from way, f fact) {
	p.way.take(a, from)
	p.facts[a] = f
}

// take copies one aspect of another way.
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

// known returns the way that was learned for the model, and the aspects that were learned.
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

// maxProfiles bounds how many models something is known of: clients name them.
const maxProfiles = 1000

// learn keeps an aspect of the way for the model.
func (p *OpenAI) learn(model string, l lesson) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.profiles[model]; !ok && len(p.profiles) >= maxProfiles {
		clear(p.profiles) // all of it is learned again where it is needed
	}
	learned := p.profiles[model]
	learned.put(l.aspect, l.way, fact{p.scrub(l.from), now, now.Add(l.lasts)})
	p.profiles[model] = learned
}

// Context is how many tokens the model holds, prompt and reply together; 0: unknown.
func (p *OpenAI) Context(model string) int {
	w, _ := p.known(model)
	return w.context
}

// Profile returns what is known of the model.
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

package provider

import (
	"context"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// A Failure describes a failed request to the model.
type Failure struct {
	At      time.Time
	Status  int    // HTTP status of the reply; 0 without a reply
	Message string // without secrets
}

// Status is the recent state of the model's server.
type Status struct {
	Model, BaseURL string // BaseURL is masked for display
	Profile        Profile
	LastError      *Failure  // nil if there was none
	LastOK         time.Time // zero if no request has succeeded
}

// A health is the state of the server as of its last reply to the daemon's own model, and of faults that concern all
// models: the address and the key.
type health struct {
	failure *Failure
	step    step   // what the failure shows to be wrong
	words   string // the failure's message without variable parts; "" if the last request succeeded
	ok      time.Time
}

// differs matches the variable parts of a message: figures, ids, times.
var differs = lazy.Regexp(`\S*\d\S*`)

// note records how a question ended, and reports a change.
func (p *OpenAI) note(ctx context.Context, model string, err error) {
	var failed *Error
	switch {
	case err == nil:
		p.recovered(model)
	// An invalid payload is the model's fault, not the server's.
	case ctx.Err() == nil && errors.As(err, &failed) && !errors.Is(err, ErrInvalidPayload):
		p.failing(model, failed)
	}
}

// recovered records that the model answered. An answer of another model only shows that address and key are right.
func (p *OpenAI) recovered(model string) {
	p.mu.Lock()
	h := &p.health
	if own := model == p.opts.Model; !own && h.step != stepReached && h.step != stepKey {
		p.mu.Unlock()
		return
	}
	was := h.words != ""
	h.ok, h.words, h.step = time.Now(), "", stepNone
	p.mu.Unlock()
	if was && p.opts.Changed != nil {
		p.opts.Changed(nil)
	}
}

// failing records a failure of the daemon's own model, or one that concerns all models.
func (p *OpenAI) failing(model string, failed *Error) {
	if model != p.opts.Model && failed.step != stepReached && failed.step != stepKey {
		return // clients name models, too
	}
	f := &Failure{At: time.Now(), Status: failed.status, Message: failed.Message}
	words := failed.Reason + " " + differs().ReplaceAllString(failed.Message, "")
	p.mu.Lock()
	h := &p.health
	changed := h.words != words
	h.failure, h.words, h.step = f, words, failed.step
	p.mu.Unlock()
	if changed && p.opts.Changed != nil {
		p.opts.Changed(f)
	}
}

// Status returns the recent state of the server.
func (p *OpenAI) Status() Status {
	s := Status{Model: p.opts.Model, BaseURL: p.BaseURL(), Profile: p.Profile(p.opts.Model)}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.LastError, s.LastOK = p.health.failure, p.health.ok
	return s
}

// Asked reports whether a question has been asked. Its outcome is more significant than a Look.
func (p *OpenAI) Asked() bool { return p.asked.Load() }

// BaseURL returns the address of the server, masked for display.
func (p *OpenAI) BaseURL() string {
	if p.opts.BaseURL == "" {
		return "https://api.openai.com/v1"
	}
	return MaskURL(p.opts.BaseURL)
}

// ServerOf returns the OpenAI provider in p, unwrapping a Record, or nil if there is none.
func ServerOf(p Provider) *OpenAI {
	switch p := p.(type) {
	case *OpenAI:
		return p
	case *Record:
		return ServerOf(p.opts.Inner)
	}
	return nil
}

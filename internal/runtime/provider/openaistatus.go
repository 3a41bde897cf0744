package provider

import (
	"context"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// A Failure is a request to the model that failed.
type Failure struct {
	At      time.Time
	Status  int    // of the HTTP reply; 0: there was none
	Message string // without secrets
}

// Status is how the model's server did of late.
type Status struct {
	Model, BaseURL string // the address as it may be shown
	Profile        Profile
	LastError      *Failure // nil: there was none
	LastOK         time.Time
}

// A health is what is known of the server by what it last said to the daemon's own model, and of what concerns all models: its address and the key.
type health struct {
	failure *Failure
	step    step   // what the failure shows to be wrong, where it lasts
	words   string // of the failure, without what differs from one to the next; "": the last request succeeded
	ok      time.Time
}

// differs matches what differs between two messages that say the same: figures, ids, times.
var differs = lazy.Regexp(`\S*\d\S*`)

// note keeps how a question ended, and reports when that changes.
func (p *OpenAI) note(ctx context.Context, model string, err error) {
	var failed *Error
	switch {
	case err == nil:
		p.recovered(model)
	// that one is the model's fault alone
	case ctx.Err() == nil && errors.As(err, &failed) && !errors.Is(err, ErrInvalidPayload):
		p.failing(model, failed)
	}
}

// recovered notes that the model answered. Another model than the daemon's own says only that address and key are right.
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

// Status returns how the server did of late.
func (p *OpenAI) Status() Status {
	s := Status{Model: p.opts.Model, BaseURL: p.BaseURL(), Profile: p.Profile(p.opts.Model)}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.LastError, s.LastOK = p.health.failure, p.health.ok
	return s
}

// Asked reports whether a model was asked already; what comes of that says more than a look.
func (p *OpenAI) Asked() bool { return p.asked.Load() }

// BaseURL is the address of the server as it may be shown.
func (p *OpenAI) BaseURL() string {
	if p.opts.BaseURL == "" {
		return "https://api.openai.com/v1"
	}
	return MaskURL(p.opts.BaseURL)
}

// ServerOf returns the model's server that the provider asks; nil: it asks none.
func ServerOf(p Provider) *OpenAI {
	switch p := p.(type) {
	case *OpenAI:
		return p
	case *Record:
		return ServerOf(p.opts.Inner)
	}
	return nil
}

package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
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

// lookTime bounds Look.
const lookTime = 10 * time.Second

// maxList bounds how many bytes of a list of models are read.
const maxList = 4 << 20

// Look asks the server for its list of models, which costs nothing. It returns and records an *Error if the server
// cannot be reached, refuses the key, is not an OpenAI-compatible server, or does not have the model. Not every server
// has a list, so nil only means that nothing wrong was found. listed reports whether the model is in the list.
func (p *OpenAI) Look(ctx context.Context) (listed bool, err error) {
	limited, cancel := context.WithTimeout(ctx, min(lookTime, p.opts.Timeout))
	defer cancel()
	names, failed := p.list(limited)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if failed == nil && len(names) > 0 && !parseBase(p.opts.BaseURL).azure {
		if listed = slices.ContainsFunc(names, p.isModel); !listed {
			failed = &Error{Type: agent.ErrProvider, Reason: ReasonRejected, step: stepModel, status: http.StatusOK,
				Message: p.scrub(fmt.Sprintf("the model's server does not list the model %q; it has %s", p.opts.Model,
					some(names)))}
		}
	}
	if failed == nil {
		return listed, nil
	}
	p.failing(p.opts.Model, failed)
	return false, failed
}

// isModel reports whether the name in a server's list is that of the model. Ollama allows the tag to be omitted, Google
// prefixes a folder, and OpenRouter accepts variants after a colon that it does not list.
func (p *OpenAI) isModel(name string) bool {
	base, _, _ := strings.Cut(p.opts.Model, ":")
	name = strings.TrimPrefix(name, "models/")
	return strings.EqualFold(name, p.opts.Model) || strings.EqualFold(name, p.opts.Model+":latest") ||
		strings.EqualFold(name, base)
}

// some returns the first names as a text.
func some(names []string) string {
	const most = 8
	list := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return list
}

// list returns the names of the server's models, or none if it has no list.
func (p *OpenAI) list(ctx context.Context) ([]string, *Error) {
	b := parseBase(p.opts.BaseURL)
	if b.url == "" {
		b.url = "https://api.openai.com/v1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/models", nil)
	if err != nil {
		return nil, p.classify(err, &seen{})
	}
	if b.azure {
		r.Header.Set("Api-Key", p.opts.Key)
	} else if p.opts.Key != "" {
		r.Header.Set("Authorization", "Bearer "+p.opts.Key)
	}
	p.doer.dress(r, &seen{})
	response, err := p.doer.client.Do(r)
	if err != nil {
		return nil, p.classify(err, &seen{})
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxList)) // a partial body is used as it is
	s := &seen{model: p.opts.Model, status: response.StatusCode, header: response.Header,
		location: strings.TrimSuffix(locationOf(response), "/models"), refused: body}
	switch names := modelNames(body); {
	case response.StatusCode < 300 && len(names) > 0:
		return names, nil
	case response.StatusCode < 300 && (isPage(body) || !json.Valid(body)):
		s.head = body
		return nil, p.classify(errRefused, s)
	case response.StatusCode < 300:
		return p.unlisted(body)
	case response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusMethodNotAllowed:
		if versioned(p.opts.BaseURL) {
			return nil, nil // it has no list
		}
	case response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests:
		return nil, nil // the server may recover before it is needed
	}
	return nil, p.classify(errRefused, s)
}

// unlisted handles a success reply without a list. It may contain an error instead, as LM Studio's does if the address
// lacks the version.
func (p *OpenAI) unlisted(body []byte) ([]string, *Error) {
	r := readRefusal(http.StatusOK, body)
	if j := judgementOf(&r); j.step == stepReached || j.step == stepKey {
		e := &Error{Type: agent.ErrProvider}
		p.judge(e, &r, &seen{status: http.StatusOK, header: http.Header{}})
		return nil, e
	}
	return nil, nil
}

// modelNames parses a list of models in the formats of OpenAI, Ollama and Google.
func modelNames(body []byte) (names []string) {
	type model struct{ ID, Name string }
	var list []model
	var object struct{ Data, Models []model }
	if json.Unmarshal(body, &object) == nil {
		list = append(object.Data, object.Models...)
	} else if json.Unmarshal(body, &list) != nil {
		return nil
	}
	for _, m := range list {
		if m.ID == "" {
			m.ID = m.Name
		}
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	return names
}

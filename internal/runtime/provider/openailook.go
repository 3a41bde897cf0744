package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// lookTime bounds a look at the server's list of models.
const lookTime = 10 * time.Second

// maxList bounds how much of a list of models is read.
const maxList = 4 << 20

// Look asks the server for its list of models, which costs nothing, and notes what it shows: that it cannot be reached, refuses the key, is
// no such server, or has no such model. It returns the *Error of that. Not every server has a list: nil means that nothing wrong was seen,
// and listed whether the model was.
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

// isModel reports whether the name in a server's list is that of the model. Ollama leaves out a tag, Google puts a folder before it,
// OpenRouter takes variants after a colon that it does not list.
func (p *OpenAI) isModel(name string) bool {
	base, _, _ := strings.Cut(p.opts.Model, ":")
	name = strings.TrimPrefix(name, "models/")
	return strings.EqualFold(name, p.opts.Model) || strings.EqualFold(name, p.opts.Model+":latest") ||
		strings.EqualFold(name, base)
}

// some names a few models.
func some(names []string) string {
	const most = 8
	list := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return list
}

// list returns the names of the server's models; none where it has no list.
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
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxList)) // what came of it
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
		return nil, nil // it may be better when it is needed
	}
	return nil, p.classify(errRefused, s)
}

// unlisted is a reply without a list: an error in the place of one, as LM Studio sends it where the address lacks its version.
func (p *OpenAI) unlisted(body []byte) ([]string, *Error) {
	r := readRefusal(http.StatusOK, body)
	if j := judgementOf(&r); j.step == stepReached || j.step == stepKey {
		e := &Error{Type: agent.ErrProvider}
		p.judge(e, &r, &seen{status: http.StatusOK, header: http.Header{}})
		return nil, e
	}
	return nil, nil
}

// modelNames reads a list of models in the forms of OpenAI, Ollama and Google.
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

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

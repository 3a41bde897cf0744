// Package apitest checks the REST interface against its document: its transport compares every exchange with
// api/openapi.yaml. A test fails if the document does not describe a reply, or does not allow a request that the
// daemon accepted. A request that the daemon refused may be invalid in any way. Each line of a JSON Lines body is
// checked against the schema that the document names as x-item-schema.
//
// The package is for tests only: checking an exchange costs more than a warm call.
package apitest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	document "github.com/recurgentd/recurgentd/api"
)

// Recorder is an http.RoundTripper that checks every exchange and counts it. It may be used concurrently.
type Recorder struct {
	t    testing.TB
	next http.RoundTripper
	doc  *shared

	mu   sync.Mutex
	seen map[string]map[int]int // operation → status → exchanges; guarded by mu
}

// Validator returns a Recorder over a clone of http.DefaultTransport. It fails t for every exchange that the document
// does not describe, and closes idle connections when t ends.
func Validator(t testing.TB) *Recorder {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return Over(t, transport)
}

// Over is Validator with next as the underlying transport.
func Over(t testing.TB, next http.RoundTripper) *Recorder {
	t.Helper()
	doc, err := loaded()
	if err != nil {
		t.Fatalf("api/openapi.yaml: %v", err)
	}
	return &Recorder{t: t, next: next, doc: doc, seen: map[string]map[int]int{}}
}

// Client returns a client that checks all its exchanges.
func Client(t testing.TB) *http.Client {
	t.Helper()
	return &http.Client{Transport: Validator(t)}
}

// shared is the document. All tests of a process share one copy.
type shared struct {
	*openapi3.T
	bodies *bodies
	mu     sync.Mutex // held during a check, since schemas are compiled on first use
}

var loaded = sync.OnceValues(func() (*shared, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document.OpenAPI)
	if err != nil {
		return nil, err
	}
	b, err := newBodies(document.OpenAPI)
	return &shared{T: doc, bodies: b}, err
})

// Load returns the document after validating it and its examples. All callers share the result and must not change
// it.
func Load() (*openapi3.T, error) { return checked() }

var checked = sync.OnceValues(func() (*openapi3.T, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(document.OpenAPI)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(loader.Context, openapi3.EnableExamplesValidation())
})

// Seen returns the number of exchanges by operation and status. The maps are copies.
func (v *Recorder) Seen() map[string]map[int]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := map[string]map[int]int{}
	for op, statuses := range v.seen {
		seen[op] = maps.Clone(statuses)
	}
	return seen
}

// RoundTrip implements http.RoundTripper. It reads the whole body of a reply, except for an event stream, and reports
// a difference from the document as an error of the test, not of the request.
func (v *Recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	res, err := v.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	// an event stream is passed on unread: its reader checks the events
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		if route, _ := v.find(r); route != nil {
			v.note(route.Operation.OperationID, res.StatusCode)
		}
		return res, nil
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(got))
	v.doc.mu.Lock()
	defer v.doc.mu.Unlock()
	// the console's page is described at /ui, which leads to it, because linters refuse paths that end in a slash
	if r.URL.Path == "/ui/" {
		return res, nil
	}
	if err := v.check(r, sent, res, got); err != nil {
		v.t.Errorf("%s %s → %d differs from api/openapi.yaml: %v\nsent: %.400s\ngot: %.800s", r.Method,
			r.URL.EscapedPath(), res.StatusCode, err, sent, got)
	}
	return res, nil
}

// anyBytes reports whether the document describes the reply as a file of any type.
func anyBytes(o *openapi3.Operation, status int) bool {
	r := o.Responses.Status(status)
	return r != nil && r.Value.Content["*/*"] != nil
}

// check returns an error if the document does not describe the exchange. It gives kin-openapi what that can check,
// and checks JSON bodies against compiled schemas itself.
func (v *Recorder) check(r *http.Request, sent []byte, res *http.Response, got []byte) error {
	route, params := v.find(r)
	if route == nil {
		return v.checkUndescribed(r, res, got)
	}
	op := route.Operation.OperationID
	v.note(op, res.StatusCode)

	asked := r.Clone(context.WithoutCancel(r.Context()))
	asked.Body = io.NopCloser(bytes.NewReader(sent))
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		SkipSettingDefaults: true, IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true}
	in := &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route, Options: options}
	if res.StatusCode < 400 {
		if body := route.Operation.RequestBody; body != nil && body.Value.Content["*/*"] != nil {
			// kin-openapi would parse tables in uploaded files and refuse valid ones
			options.ExcludeRequestBody = true
		} else if media := r.Header.Get("Content-Type"); len(sent) > 0 && isJSON(media) {
			options.ExcludeRequestBody = true
			if err := v.doc.bodies.checkSent(route.Path, r.Method, media, sent); err != nil {
				return fmt.Errorf("the daemon took a request that the document does not allow: %w", err)
			}
		}
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
			return fmt.Errorf("the daemon took a request that the document does not allow: %w", err)
		}
		if route.Operation.Responses.Status(res.StatusCode) == nil {
			return fmt.Errorf("the status is not described")
		}
	}
	if res.Header.Get("Content-Type") == mediaLines {
		if err := v.checkLines(route.Operation, res.StatusCode, got); err != nil {
			return err
		}
		options.ExcludeResponseBody = true // kin-openapi would read it as one value
	}
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if slices.Contains([]string{"text/html", "text/markdown", "text/javascript", "text/css", "image/svg+xml",
		"application/yaml"}, media) || anyBytes(route.Operation, res.StatusCode) {
		options.ExcludeResponseBody = true // kin-openapi cannot parse it, but compares status and headers
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode,
		Header: res.Header, Options: options}
	out.SetBodyBytes(got)
	if r.Method == http.MethodHead {
		if len(got) > 0 {
			return fmt.Errorf("the reply to HEAD has a body")
		}
		options.ExcludeResponseBody = true
	} else if res.StatusCode >= 400 {
		if err := v.checkProblem(res, got); err != nil {
			return err
		}
		options.ExcludeResponseBody = true
	} else if media := res.Header.Get("Content-Type"); isJSON(media) && !options.ExcludeResponseBody {
		options.ExcludeResponseBody = true
		if err := v.doc.bodies.checkGot(route.Path, r.Method, res.StatusCode, media, got); err != nil {
			return err
		}
	}
	return openapi3filter.ValidateResponse(r.Context(), out)
}

// checkUndescribed checks the reply to a request that matches no operation. Only an error or a CORS preflight may
// match none.
func (v *Recorder) checkUndescribed(r *http.Request, res *http.Response, got []byte) error {
	if res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusMethodNotAllowed ||
		res.StatusCode == http.StatusMisdirectedRequest {
		if r.Method == http.MethodHead {
			return nil // a reply to HEAD has no body
		}
		return v.checkProblem(res, got)
	}
	if preflight := r.Method == http.MethodOptions &&
		r.Header.Get("Access-Control-Request-Method") != ""; preflight && res.StatusCode == http.StatusNoContent &&
		len(got) == 0 {
		return nil // preflights of all paths are described in the document's introduction
	}
	return fmt.Errorf("no operation is described")
}

const mediaLines = "application/jsonl"

// checkLines checks each line of a JSON Lines reply against the schema of its items.
func (v *Recorder) checkLines(op *openapi3.Operation, status int, got []byte) error {
	described := op.Responses.Status(status)
	if described == nil || described.Value.Content[mediaLines] == nil {
		return fmt.Errorf("a reply of %s is not described", mediaLines)
	}
	at, _ := described.Value.Content[mediaLines].Extensions["x-item-schema"].(string)
	schema := strings.TrimPrefix(at, "#")
	if v.doc.Components.Schemas[strings.TrimPrefix(schema, "/components/schemas/")] == nil {
		return fmt.Errorf("the reply of %s has no x-item-schema that is in the document: %q", mediaLines, at)
	}
	if len(got) > 0 && got[len(got)-1] != '\n' {
		return fmt.Errorf("the last line does not end")
	}
	n := 0
	for line := range bytes.Lines(got) {
		n++
		if err := v.doc.bodies.check(schema, line); err != nil {
			return fmt.Errorf("line %d, %.200s: %w", n, line, err)
		}
	}
	return nil
}

// note counts an exchange for Seen.
func (v *Recorder) note(op string, status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen[op] == nil {
		v.seen[op] = map[int]int{}
	}
	v.seen[op][status]++
}

// checkProblem checks the body of an error against the schema of problems, or of JSON-RPC errors for /mcp. The
// operation need not list the status.
func (v *Recorder) checkProblem(res *http.Response, got []byte) error {
	if res.Request.URL.Path == "/mcp" { // its clients read JSON-RPC
		return v.doc.bodies.check("/components/schemas/RPCFault", got)
	}
	if media := res.Header.Get("Content-Type"); media != "application/problem+json" {
		return fmt.Errorf("a fault has the type %q, not application/problem+json", media)
	}
	return v.doc.bodies.check("/components/schemas/Problem", got)
}

// find returns the operation of a request and its path parameters, or nil if there is none. It matches the escaped
// path segment by segment; patterns with fewer parameters win.
func (v *Recorder) find(r *http.Request) (*routers.Route, map[string]string) {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	patterns := slices.SortedFunc(maps.Keys(v.doc.Paths.Map()), func(a, b string) int {
		return strings.Count(a, "{") - strings.Count(b, "{")
	})
	for _, pattern := range patterns {
		params, ok := match(strings.Split(pattern, "/"), parts)
		if !ok {
			continue
		}
		item, method := v.doc.Paths.Value(pattern), r.Method
		if method == http.MethodHead { // the document describes HEAD once, for all GET operations
			method = http.MethodGet
		}
		if op := item.GetOperation(method); op != nil {
			return &routers.Route{Spec: v.doc.T, Path: pattern, PathItem: item, Method: r.Method, Operation: op}, params
		}
	}
	return nil, nil
}

func match(pattern, parts []string) (map[string]string, bool) {
	if len(pattern) != len(parts) {
		return nil, false
	}
	params := map[string]string{}
	for i, p := range pattern {
		if !strings.HasPrefix(p, "{") {
			if p != parts[i] {
				return nil, false
			}
			continue
		}
		plain, err := url.PathUnescape(parts[i])
		if err != nil || plain == "" {
			return nil, false
		}
		params[strings.Trim(p, "{}")] = plain
	}
	return params, true
}

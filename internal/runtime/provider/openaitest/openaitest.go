// Package openaitest is a scripted OpenAI-compatible server for tests. It reads role and method from the last user
// message, as recordings do, and answers from a list by role and method; the last answer of a list repeats. It can also
// refuse, break off, send garbage, or hang. It records every request.
package openaitest

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
)

// Reply is one scripted answer. The first field that is set determines it, after Wait.
type Reply struct {
	Wait    <-chan struct{} // the answer waits until this is closed, or the client or server is gone
	Hang    bool            // never answer
	Abort   bool            // close the connection without an answer
	Status  int             // sent with Body, or with an error object if Body is empty
	Body    string          // without Status: a 200 with exactly this body
	Message map[string]any  // the assistant's message, verbatim
	Content string          // text, without a tool call
	Code    string          // a program, by submit_program if tools were offered, otherwise as a JSON object

	Declared map[string]any // with Code: summary, parameters, returns

	Prompt, Completion int // reported tokens; 10 and 5 if both are 0

	Header map[string]string // further headers
	Finish string            // finish_reason; "" means "stop"
}

// Code returns a Reply with a program.
func Code(source string) Reply { return Reply{Code: source} }

// Request is a request that the server received.
type Request struct {
	Path, Query  string
	Header       http.Header
	Body         map[string]any
	Text         string // all messages, joined
	Role, Method string // contents of the last elements of these names in Text
	Repair       bool   // Text contains a failed_code element
}

// Server is a running server. Its methods may be called concurrently.
type Server struct {
	URL string // for OPENAI_BASE_URL; ends in /v1

	http *httptest.Server
	done chan struct{}
	once sync.Once

	mu       sync.Mutex
	answers  map[[2]string][]Reply
	fallback func(Request) Reply
	used     map[[2]string]int
	requests []Request
	models   []string      // listed models; nil means that there is no list
	looks    int           // requests for the list
	arrived  chan struct{} // closed and replaced at each request
}

// New starts a server on 127.0.0.1. The caller must close it.
func New() *Server {
	s := &Server{done: make(chan struct{}), answers: map[[2]string][]Reply{}, used: map[[2]string]int{},
		arrived: make(chan struct{})}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL + "/v1"
	return s
}

// Close stops the server and all hanging requests.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.done)
		s.http.CloseClientConnections()
		s.http.Close()
	})
}

// Answer scripts the answers for a role and method; an empty one matches any. It replaces earlier answers for the same
// pair.
func (s *Server) Answer(role, method string, replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[[2]string{role, method}] = replies
	delete(s.used, [2]string{role, method})
}

// Default scripts the answers to requests that no Answer matches. Without it they get a 500.
func (s *Server) Default(f func(Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fallback = f
}

// Requests returns the requests received so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Count returns the number of requests for a role and method; an empty one matches any.
func (s *Server) Count(role, method string) int {
	n := 0
	for _, r := range s.Requests() {
		if (role == "" || r.Role == role) && (method == "" || r.Method == method) {
			n++
		}
	}
	return n
}

// Arrived waits until n requests have been received, or the server is closed.
func (s *Server) Arrived(n int) {
	for {
		s.mu.Lock()
		have, next := len(s.requests), s.arrived
		s.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-next:
		case <-s.done:
			return
		}
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.list(w, r)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		return
	}
	in := Request{Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: map[string]any{}}
	if err := json.Unmarshal(raw, &in.Body); err != nil {
		writeJSON(w, http.StatusBadRequest, errorBody("not JSON"))
		return
	}
	in.Text = text(in.Body)
	in.Role, in.Method = Tag(in.Text, "role"), Tag(in.Text, "method")
	in.Repair = strings.Contains(in.Text, "<failed_code>")
	reply, n := s.next(in)
	s.send(w, r, in, reply, n)
}

// List makes the server list the models. Before, it has no list.
func (s *Server) List(models ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = models
}

// Looks returns the number of requests for the list, which Requests omits.
func (s *Server) Looks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.looks++
	models := s.models
	s.mu.Unlock()
	if models == nil || r.URL.Path != "/v1/models" {
		writeJSON(w, http.StatusNotFound, errorBody("no list"))
		return
	}
	var data []any
	for _, id := range models {
		data = append(data, map[string]any{"id": id, "object": "model"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// next records the request and returns its scripted reply and its number. Answers for the exact role and method precede
// those for any.
func (s *Server) next(in Request) (Reply, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.requests)
	s.requests = append(s.requests, in)
	close(s.arrived)
	s.arrived = make(chan struct{})
	for _, key := range [][2]string{{in.Role, in.Method}, {"", in.Method}, {in.Role, ""}, {"", ""}} {
		if replies := s.answers[key]; len(replies) > 0 {
			i := min(s.used[key], len(replies)-1)
			s.used[key]++
			return replies[i], n
		}
	}
	if s.fallback != nil {
		return s.fallback(in), n
	}
	return Reply{Status: http.StatusInternalServerError,
		Body: errorText(fmt.Sprintf("no scripted answer for %s.%s", in.Role, in.Method))}, n
}

func (s *Server) send(w http.ResponseWriter, r *http.Request, in Request, reply Reply, n int) {
	if reply.Wait != nil {
		select {
		case <-reply.Wait:
		case <-r.Context().Done():
			return
		case <-s.done:
			return
		}
	}
	if reply.Hang {
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		return
	}
	if reply.Abort {
		panic(http.ErrAbortHandler)
	}
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	if reply.Status != 0 || reply.Body != "" {
		status, body := reply.Status, reply.Body
		if status == 0 {
			status = http.StatusOK
		}
		if body == "" {
			body = errorText(fmt.Sprintf("scripted %d", status))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return
	}
	writeJSON(w, http.StatusOK, completion(reply, in, n))
}

func completion(reply Reply, in Request, n int) map[string]any {
	message := reply.Message
	offered, _ := in.Body["tools"].([]any)
	switch {
	case message != nil:
	case reply.Content != "":
		message = map[string]any{"role": "assistant", "content": reply.Content}
	case len(offered) > 0:
		message = map[string]any{"role": "assistant", "content": nil,
			"tool_calls": []any{ToolCall("submit_program", encode(reply.program()))}}
	default:
		message = map[string]any{"role": "assistant", "content": encode(reply.program())}
	}
	finish := reply.Finish
	if finish == "" {
		finish = "stop"
	}
	prompt, completion := reply.Prompt, reply.Completion
	if prompt+completion == 0 {
		prompt, completion = 10, 5
	}
	return map[string]any{"id": fmt.Sprintf("c%d", n), "object": "chat.completion", "created": 0, "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "finish_reason": finish, "message": message}},
		"usage": map[string]any{"prompt_tokens": prompt, "completion_tokens": completion,
			"total_tokens": prompt + completion}}
}

// program returns the arguments of submit_program.
func (r Reply) program() map[string]any {
	out := map[string]any{"code": r.Code}
	maps.Copy(out, r.Declared)
	return out
}

// ToolCall returns an element of a message's tool_calls.
func ToolCall(name, arguments string) map[string]any {
	return map[string]any{"id": "t0", "type": "function", "function": map[string]any{"name": name,
		"arguments": arguments}}
}

// Tag returns the content of the last element name in text, unescaped and trimmed, or "".
func Tag(text, name string) string {
	all := regexp.MustCompile(`(?s)<`+name+`>(.*?)</`+name+`>`).FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	return strings.TrimSpace(html.UnescapeString(all[len(all)-1][1]))
}

func text(body map[string]any) string {
	messages, _ := body["messages"].([]any)
	var parts []string
	for _, m := range messages {
		object, _ := m.(map[string]any)
		switch c := object["content"].(type) {
		case string:
			parts = append(parts, c)
		case []any:
			for _, p := range c {
				part, _ := p.(map[string]any)
				t, _ := part["text"].(string)
				parts = append(parts, t)
			}
		}
	}
	return strings.Join(parts, "\n")
}

func errorBody(message string) map[string]any {
	return map[string]any{"error": map[string]any{"message": message, "type": "server_error"}}
}

func errorText(message string) string { return encode(errorBody(message)) }

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a script that is not JSON is a bug of the test
	}
	return string(b)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, encode(v))
}

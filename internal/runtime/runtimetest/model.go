// Package runtimetest provides stand-ins for tests of calls and operations: a scripted model, whose programs run in
// real runners; a sandbox of Go functions; and compilers.
package runtimetest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt/prompttest"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// Model is a provider that answers requests for a (role, method) with its programs in order. The last one repeats.
type Model struct {
	mu       sync.Mutex
	Programs map[string][]string // by "role.method"
	asked    []provider.Request
	Block    chan struct{} // if set, answers wait until it is closed or sends
	Hang     string        // a "role.method" whose requests are never answered
	Err      error
}

// Name implements provider.Provider.
func (s *Model) Name() string { return "scripted" }

// Chat always returns a provider error: scripted programs do not ask the model.
func (s *Model) Chat(context.Context, provider.ChatRequest) (provider.ChatReply, error) {
	return provider.ChatReply{}, &provider.Error{Type: agent.ErrProvider, Reason: "no_answer",
		Message: "scripted: no chat"}
}

// Program returns the next program of the method. It waits for Block or Hang first, then returns Err if that is set, or
// a provider error if the method has no programs.
func (s *Model) Program(ctx context.Context, q provider.Request) (provider.Reply, error) {
	s.mu.Lock()
	s.asked = append(s.asked, q)
	block, err := s.Block, s.Err
	key := q.Role + "." + q.Method
	if key == s.Hang {
		block = make(chan struct{})
	}
	answers := s.Programs[key]
	if len(answers) > 1 {
		s.Programs[key] = answers[1:]
	}
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return provider.Reply{}, context.Cause(ctx)
		}
	}
	switch {
	case err != nil:
		return provider.Reply{}, err
	case len(answers) == 0:
		return provider.Reply{}, &provider.Error{Type: agent.ErrProvider, Reason: "no_answer",
			Message: "scripted: nothing for " + key}
	}
	return provider.Reply{Code: answers[0], Model: "scripted",
		Usage: agent.Usage{ModelRequests: 1, PromptTokens: 10, CompletionTokens: 5}}, nil
}

// Count returns how many requests of a kind were made for the method. kind "" counts all kinds.
func (s *Model) Count(key, kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, q := range s.asked {
		if q.Role+"."+q.Method == key && (kind == "" || kind == q.Kind) {
			n++
		}
	}
	return n
}

// CheckHistoryGuidance fails the test if a request lacks the guidance on the history that prompts must contain.
func (s *Model) CheckHistoryGuidance(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asked {
		if _, err := prompttest.Check(q.Messages); err != nil {
			t.Errorf("%s of %s.%s: %v", q.Kind, q.Role, q.Method, err)
		}
	}
}

// Requests returns the requests made so far, in order.
func (s *Model) Requests() []provider.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

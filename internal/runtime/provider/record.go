package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// RecordOptions configures a Record. Inner and Path are required.
type RecordOptions struct {
	Inner   Provider
	Path    string      // the file to append to; created if it is missing
	Secrets []string    // texts replaced wherever they occur
	OnError func(error) // called if a line cannot be written; the request still succeeds
}

// Record passes requests to another provider and writes the answers to a recording file that Replay reads. It is safe
// for concurrent use. The caller must close it.
type Record struct {
	opts RecordOptions

	mu   sync.Mutex
	file *os.File // guarded by mu
}

// NewRecord opens the recording file to append to it.
func NewRecord(o RecordOptions) (*Record, error) {
	if o.Inner == nil || o.Path == "" {
		return nil, errors.New("provider: Inner and Path are required")
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	f, err := os.OpenFile(o.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return &Record{opts: o, file: f}, nil
}

// Name implements Provider.
func (p *Record) Name() string { return "record" }

// Program implements Provider.
func (p *Record) Program(ctx context.Context, r Request) (Reply, error) {
	reply, err := p.opts.Inner.Program(ctx, r)
	if err == nil {
		p.add(Line{Role: r.Role, Method: r.Method, Kind: r.Kind, Code: reply.Code, Unchanged: reply.Unchanged,
			Notes: reply.Notes, SolverShape: reply.SolverShape, Declaration: reply.Declaration, Model: reply.Model,
			Usage: &reply.Usage})
	}
	return reply, err
}

// Chat implements Provider.
func (p *Record) Chat(ctx context.Context, r ChatRequest) (ChatReply, error) {
	reply, err := p.opts.Inner.Chat(ctx, r)
	if err == nil {
		p.add(Line{Kind: kindChat, Prompt: digest(r.Messages), Content: reply.Content, Usage: &reply.Usage})
	}
	return reply, err
}

// Close closes the file, but not the inner provider. It may be called more than once.
func (p *Record) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return err
}

// add writes a line in a single write, so a crash cannot tear it and lines of two daemons do not mix.
func (p *Record) add(l Line) {
	text, err := json.Marshal(l)
	if err == nil {
		line := Scrub(string(text), p.opts.Secrets)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.file == nil {
			err = os.ErrClosed
		} else {
			_, err = p.file.WriteString(line + "\n")
		}
	}
	if err != nil {
		p.opts.OnError(fmt.Errorf("recording %s: %w", p.opts.Path, err))
	}
}

// serverKey matches a key of a model's server.
var serverKey = lazy.Regexp(`\b(sk|pk|gsk|xai|hf|ghp|gho)[-_][A-Za-z0-9_\-]{16,}`)

// Scrub replaces, in text, the secrets and everything that looks like a key of a model's server.
func Scrub(text string, secrets []string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[secret]")
		}
	}
	return serverKey().ReplaceAllString(text, "[secret]")
}

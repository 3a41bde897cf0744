package provider

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// kindChat is the kind of a recorded Chat, which is keyed by the digest of its messages.
const kindChat = "chat"

// Line is one line of a recording file. Lines of the same role, method and kind answer in order; the last one repeats.
type Line struct {
	Role   string `json:"role,omitempty"`
	Method string `json:"method,omitempty"`
	Kind   string `json:"kind"` // forge, repair or chat
	Code   string `json:"code,omitempty"`
	// Unchanged replaces code: the program that was shown is kept.
	Unchanged   bool            `json:"unchanged,omitempty"`
	Notes       string          `json:"notes,omitempty"`
	SolverShape json.RawMessage `json:"solver_shape,omitempty"`
	Model       string          `json:"model,omitempty"`
	Origin      string          `json:"origin,omitempty"`  // "written" if no model wrote the code
	Prompt      string          `json:"prompt,omitempty"`  // digest of a chat's messages
	Content     string          `json:"content,omitempty"` // answer of a chat
	Usage       *agent.Usage    `json:"usage,omitempty"`   // cost of the reply when it was recorded
	agent.Declaration
}

const (
	maxRecording     = 256 << 20 // bytes read of a recording
	maxRecordingLine = 8 << 20   // bytes of one line
)

// Replay answers from a recording. It is safe for concurrent use.
type Replay struct {
	source string

	mu    sync.Mutex
	lines map[[3]string][]Line // by key; immutable
	next  map[[3]string]int    // guarded by mu
}

// NewReplay reads a recording. Errors name it by source.
func NewReplay(r io.Reader, source string) (*Replay, error) {
	p := &Replay{source: source, lines: map[[3]string][]Line{}, next: map[[3]string]int{}}
	s := bufio.NewScanner(io.LimitReader(r, maxRecording))
	s.Buffer(make([]byte, 64<<10), maxRecordingLine)
	for n := 1; s.Scan(); n++ {
		text := strings.TrimSpace(s.Text())
		if text == "" {
			continue
		}
		var l Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return nil, fmt.Errorf("recording %s, line %d: %w", source, n, err)
		}
		if reason := l.invalid(); reason != "" {
			return nil, fmt.Errorf("recording %s, line %d: %s", source, n, reason)
		}
		p.lines[l.key()] = append(p.lines[l.key()], l)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("recording %s: %w", source, err)
	}
	return p, nil
}

// OpenReplay reads the recording file at path.
func OpenReplay(path string) (*Replay, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	defer f.Close()
	return NewReplay(f, path)
}

// invalid returns what is wrong with the line, or "".
func (l Line) invalid() string {
	if u := l.used(); min(u.ModelRequests, u.PromptTokens, u.CompletionTokens) < 0 {
		return "usage must not be negative"
	}
	switch l.Kind {
	case KindForge, KindRepair:
		if l.Role == "" || l.Method == "" || strings.TrimSpace(l.Code) == "" && !l.Unchanged {
			return "role, method and code must not be empty"
		}
	case kindChat:
		if l.Prompt == "" || l.Content == "" {
			return "prompt and content must not be empty"
		}
	default:
		return fmt.Sprintf("kind must be forge, repair or chat, not %q", l.Kind)
	}
	return ""
}

func (l Line) key() [3]string {
	if l.Kind == kindChat {
		return [3]string{kindChat, l.Prompt, ""}
	}
	return [3]string{l.Kind, l.Role, l.Method}
}

// Name implements Provider.
func (p *Replay) Name() string { return "replay" }

// Program implements Provider.
func (p *Replay) Program(ctx context.Context, r Request) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, context.Cause(ctx)
	}
	if err := free(ctx, r.Charge); err != nil {
		return Reply{}, err
	}
	usage := agent.Usage{ModelRequests: 1}
	l, ok := p.take([3]string{r.Kind, r.Role, r.Method})
	if !ok {
		return Reply{}, &Error{Type: agent.ErrProvider, Reason: ReasonNoAnswer, Usage: usage, final: true,
			Message: fmt.Sprintf("no model is asked, and the recording %s has no %s of %s.%s; start the daemon with OPENAI_API_KEY or OPENAI_BASE_URL to have a model write it, or add a line to the recording", p.source, map[string]string{KindForge: "program", KindRepair: "repair"}[r.Kind], r.Role, r.Method)}
	}
	model := l.Model
	if model == "" {
		model = r.Model
	}
	if l.Unchanged && strings.TrimSpace(l.Code) == "" && !r.MayKeep {
		return Reply{}, &Error{Type: agent.ErrInvalidCode, Reason: ReasonInvalidPayload, Usage: l.used(),
			Message: fmt.Sprintf("the recording %s says unchanged for %s.%s, and there is no program that could be kept", p.source, r.Role, r.Method)}
	}
	return Reply{Code: l.Code, Unchanged: l.Unchanged && strings.TrimSpace(l.Code) == "", Notes: l.Notes,
		SolverShape: l.SolverShape, Declaration: l.Declaration, Model: model, Usage: l.used()}, nil
}

// Chat implements Provider.
func (p *Replay) Chat(ctx context.Context, r ChatRequest) (ChatReply, error) {
	if ctx.Err() != nil {
		return ChatReply{}, context.Cause(ctx)
	}
	if err := free(ctx, r.Charge); err != nil {
		return ChatReply{}, err
	}
	usage := agent.Usage{ModelRequests: 1}
	l, ok := p.take([3]string{kindChat, digest(r.Messages), ""})
	if !ok {
		return ChatReply{}, &Error{Type: agent.ErrProvider, Reason: ReasonNoAnswer, Usage: usage, final: true,
			Message: fmt.Sprintf("the recording %s has no answer to this conversation; start the daemon with OPENAI_API_KEY or OPENAI_BASE_URL to ask a model", p.source)}
	}
	return ChatReply{Content: l.Content, Model: r.Model, Usage: l.used()}, nil
}

// used returns the recorded cost of the reply, or one request without tokens if none was recorded. It is reported only;
// the Charge is settled with zero cost.
func (l Line) used() agent.Usage {
	if l.Usage == nil {
		return agent.Usage{ModelRequests: 1}
	}
	return *l.Usage
}

// free asks the charge for a request that costs nothing, and settles it.
func free(ctx context.Context, charge Charge) error {
	if charge == nil {
		return nil
	}
	settle, err := charge(ctx, Estimate{})
	if err != nil {
		return &ChargeError{Err: err}
	}
	settle(Bill{Reported: true})
	return nil
}

// take returns the next line of the key, or false if there is none.
func (p *Replay) take(key [3]string) (Line, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := p.lines[key]
	if len(lines) == 0 {
		return Line{}, false
	}
	i := min(p.next[key], len(lines)-1)
	p.next[key] = i + 1
	return lines[i], true
}

func digest(messages []Message) string {
	h := sha256.New()
	for _, m := range messages {
		fmt.Fprintf(h, "%d:%s%d:%s", len(m.Role), m.Role, len(m.Content), m.Content)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

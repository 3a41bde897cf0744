package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
)

// A CallRequest is the body of a call. Role defaults to the session's.
type CallRequest struct {
	Role   string            `json:"role,omitempty"`
	Method string            `json:"method"`
	Args   []json.RawMessage `json:"args"`   // nil means []
	Kwargs json.RawMessage   `json:"kwargs"` // nil means {}
}

func (r CallRequest) filled() CallRequest {
	if r.Args == nil {
		r.Args = []json.RawMessage{}
	}
	if r.Kwargs == nil {
		r.Kwargs = json.RawMessage("{}")
	}
	return r
}

func callsPath(session string) string { return "/v1/sessions/" + url.PathEscape(session) + "/calls" }

// CallPath returns the path of a call.
func CallPath(id string) string { return "/v1/calls/" + url.PathEscape(id) }

// CreateSession creates a session with that default role and returns its id.
func (c *Client) CreateSession(ctx context.Context, role string) (id string, err error) {
	var s struct {
		ID string `json:"id"`
	}
	if err := c.JSON(ctx, http.MethodPost, "/v1/sessions", map[string]any{"role": role}, &s); err != nil {
		return "", err
	}
	return s.ID, nil
}

// Call makes a call and waits for its end. It returns the reply decoded and as received. An error outcome is a reply,
// not an error.
func (c *Client) Call(ctx context.Context, session string, r CallRequest) (runtime.Reply, []byte, error) {
	data, err := c.Do(ctx, http.MethodPost, callsPath(session), r.filled())
	if err != nil {
		return runtime.Reply{}, nil, err
	}
	return readReply(data)
}

// readReply decodes a reply and returns it together with its bytes.
func readReply(data []byte) (runtime.Reply, []byte, error) {
	var reply runtime.Reply
	if err := json.Unmarshal(data, &reply); err != nil {
		return reply, nil, fmt.Errorf("the reply of the call is not in recurgentd's format: %w", err)
	}
	return reply, data, nil
}

// Progress receives the progress of a running call, from one goroutine.
type Progress interface {
	Started(callID string)
	// Connected reports that the stream was connected (nil) or lost.
	Connected(gone error)
	// Event receives each event except the last one, which reports the end of the call.
	Event(e Event)
}

// CallWithProgress makes a call and reports its progress. It starts the call asynchronously, follows its events to the
// end, and then fetches the reply by repeating the request with the same idempotency key. The reply is byte for byte
// the one that Call gets. If ctx ends, the call is canceled.
func (c *Client) CallWithProgress(ctx context.Context, session string, r CallRequest,
	p Progress) (runtime.Reply, []byte, error) {
	r = r.filled()
	header := http.Header{"Idempotency-Key": {rand.Text()}, "Prefer": {"respond-async"}}
	resp, err := c.send(ctx, http.MethodPost, callsPath(session), header, r)
	if err != nil {
		return runtime.Reply{}, nil, err
	}
	data, err := c.read(resp, "the call")
	if err != nil {
		return runtime.Reply{}, nil, err
	}
	if resp.StatusCode == http.StatusAccepted {
		var accepted struct {
			CallID string `json:"call_id"`
		}
		if err := json.Unmarshal(data, &accepted); err != nil {
			return runtime.Reply{}, nil, fmt.Errorf("the reply of the call is not in recurgentd's format: %w", err)
		}
		if err := c.followCall(ctx, accepted.CallID, p); err != nil {
			return runtime.Reply{}, nil, err
		}
		header.Del("Prefer")
		if data, err = c.replyOfEnded(ctx, session, header, r); err != nil {
			return runtime.Reply{}, nil, err
		}
	}
	return readReply(data)
}

// followCall follows a call's events to its end.
func (c *Client) followCall(ctx context.Context, id string, p Progress) error {
	p.Started(id)
	err := c.Follow(ctx, CallPath(id)+"/events", "", p.Connected, func(e Event) error {
		if e.Type == progress.Finished {
			return ErrStop
		}
		p.Event(e)
		return nil
	})
	if errors.Is(err, ErrStop) {
		return nil
	}
	if ctx.Err() != nil {
		// The cancel request outlives ctx, but only briefly.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_, _ = c.Do(end, http.MethodPost, CallPath(id)+"/cancel", nil) // the call may have ended meanwhile
	}
	return err
}

// replyOfEnded fetches the reply of a call that has ended. It retries conflicts, because the key stays busy for a
// moment after the end is reported.
func (c *Client) replyOfEnded(ctx context.Context, session string, header http.Header, r CallRequest) ([]byte, error) {
	for try := 0; ; try++ {
		resp, err := c.send(ctx, http.MethodPost, callsPath(session), header, r)
		if err == nil {
			return c.read(resp, "the call")
		}
		var no *Refusal
		if !errors.As(err, &no) || no.Status != http.StatusConflict || try == 100 {
			return nil, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

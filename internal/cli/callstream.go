package cli

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

// streamed makes a call that tells its stages on stderr. The call is started, its events are followed to their end, and then
// the same request, with the same idempotency key, brings the reply that the call left: byte for byte what call gets.
func (t *callErrand) streamed(ctx context.Context, session string, body callBody) (runtime.Reply, []byte, error) {
	header := http.Header{"Idempotency-Key": {rand.Text()}, "Prefer": {"respond-async"}}
	resp, err := t.c.send(ctx, http.MethodPost, callsURL(session), header, body)
	if err != nil {
		return runtime.Reply{}, nil, err
	}
	data, err := t.c.read(resp, "the call")
	if err != nil {
		return runtime.Reply{}, nil, err
	}
	if resp.StatusCode == http.StatusAccepted {
		var accepted struct {
			CallID string `json:"call_id"`
		}
		if err := json.Unmarshal(data, &accepted); err != nil {
			return runtime.Reply{}, nil, fmt.Errorf("the reply of the call is not what a recurgentd answers: %w", err)
		}
		if err := t.stages(ctx, accepted.CallID, body); err != nil {
			return runtime.Reply{}, nil, err
		}
		header.Del("Prefer")
		if data, err = t.left(ctx, session, header, body); err != nil {
			return runtime.Reply{}, nil, err
		}
	}
	reply, err := readReply(data)
	return reply, data, err
}

// left fetches the reply of a call that has ended. The key is held for a moment after the end is told.
func (t *callErrand) left(ctx context.Context, session string, header http.Header, body callBody) ([]byte, error) {
	for try := 0; ; try++ {
		resp, err := t.c.send(ctx, http.MethodPost, callsURL(session), header, body)
		if err == nil {
			return t.c.read(resp, "the call")
		}
		var no *refusal
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

// stages follows the call to its end: one line that changes on a terminal, a line a stage elsewhere. When ctx ends, the
// call is canceled.
func (t *callErrand) stages(ctx context.Context, id string, body callBody) error {
	what := clean(body.Role+"."+body.Method, 40)
	spin := startSpinner(t.sh, what+": started")
	defer spin.stop()
	_, terminal := t.sh.terminal(t.sh.Stderr)
	say := func(text string) {
		if spin.say(what + ": " + text); !terminal {
			fmt.Fprintf(t.sh.Stderr, "%s: %s\n", what, text)
		}
	}
	say("started as " + clean(id, 0))
	err := t.c.follow(ctx, "/v1/calls/"+url.PathEscape(id)+"/events", "", func(gone error) {
		if gone != nil {
			say("connecting again: " + clean(gone.Error(), 0))
		}
	}, func(e serverEvent) error {
		if e.Type == progress.Finished {
			return errStop
		}
		if text := stage(e); text != "" {
			say(text)
		}
		return nil
	})
	switch {
	case errors.Is(err, errStop):
		return nil
	case ctx.Err() != nil:
		// The request outlives the interrupted context, but not for long.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_, _ = t.c.do(end, http.MethodPost, "/v1/calls/"+url.PathEscape(id)+"/cancel", nil) // it may have ended meanwhile
	}
	return err
}

// stage tells an event in words, or "" for one that is not known.
func stage(e serverEvent) string {
	var d struct {
		Kind, Trigger, Decision, Reason string
		Stage                           string
		Ahead                           int
		ErrorType                       string `json:"error_type"`
		ErrorMessage                    string `json:"error_message"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	trigger := " (" + clean(d.Trigger, 40) + ")"
	switch e.Type {
	case progress.Queued:
		return "queued behind " + plural(d.Ahead, "call")
	case progress.Gate:
		return "the program is at the gate"
	case progress.Selected:
		return clean("selected: "+d.Decision+" ("+d.Reason+")", 0)
	case progress.Forging:
		if d.Kind == "repair" {
			return "repairing" + trigger
		}
		return "forging" + trigger
	case progress.Running:
		return "running a new program" + trigger
	case progress.AttemptFailed:
		return clean("failed in "+d.Stage+": "+d.ErrorType+": "+d.ErrorMessage, 0)
	}
	return ""
}

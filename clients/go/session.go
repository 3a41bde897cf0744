package recurgent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/clients/go/api"
)

// A call that answers asynchronously goes on when its client's connection breaks; any other is canceled.
const (
	goOn        = "respond-async, wait=600"
	async       = "respond-async"
	firstLook   = 20 * time.Millisecond // until a running call is asked for again
	longestLook = time.Second
)

// A Session is a conversation: a default role, a context, a history. Its calls run in order.
type Session struct {
	ID     string
	Role   string
	client *Client
}

// Session creates a session.
func (c *Client) Session(ctx context.Context, role string) (*Session, error) {
	return c.NewSession(ctx, api.SessionRequest{Role: role})
}

// NewSession creates a session with a context, a contract or a model.
func (c *Client) NewSession(ctx context.Context, s api.SessionRequest) (*Session, error) {
	r, err := c.API.CreateSessionWithResponse(ctx, s)
	if err != nil {
		return nil, err
	}
	if r.JSON201 == nil {
		return nil, strange(r.HTTPResponse)
	}
	return c.Resume(r.JSON201.ID, r.JSON201.Role), nil
}

// Resume is a session that was created before.
func (c *Client) Resume(id, role string) *Session { return &Session{ID: id, Role: role, client: c} }

// Delete erases the session, its arguments and its values.
func (s *Session) Delete(ctx context.Context) error {
	_, err := s.client.API.DeleteSessionWithResponse(ctx, s.ID)
	return err
}

// A Reply is how a call ended. An error outcome is a reply, too.
type Reply struct {
	api.CallReply
	Replayed bool // it is the reply of an earlier request with the same key
}

// A CallError is the error outcome of a call.
type CallError struct {
	api.ErrorOutcome
	CallID string
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%s.%s: %s: %s", e.ToolRole, e.MethodName, e.ErrorType, e.ErrorMessage)
}

// Into reads the value into v, a pointer; an error outcome is a *CallError. A *json.RawMessage gets the value as it was sent.
func (r *Reply) Into(v any) error {
	ok, err := r.Outcome.AsOkOutcome()
	if err != nil {
		return err
	}
	if ok.Status == api.OkOutcomeStatusOk {
		return json.Unmarshal(ok.Value, v)
	}
	failed := &CallError{CallID: r.CallID}
	if failed.ErrorOutcome, err = r.Outcome.AsErrorOutcome(); err != nil {
		return err
	}
	return failed
}

// Call calls a method of the session's role with arguments that encoding/json can write, and returns the reply.
func (s *Session) Call(ctx context.Context, method string, args ...any) (*Reply, error) {
	r, err := Request(method, args...)
	if err != nil {
		return nil, err
	}
	return s.Send(ctx, r)
}

// Request is the request of a call, for Send and Stream; role, kwargs, contract and timeout may be set in it.
func Request(method string, args ...any) (api.CallRequest, error) {
	r := api.CallRequest{Method: method}
	for _, a := range args {
		data, err := json.Marshal(a)
		if err != nil {
			return r, err
		}
		r.Args = append(r.Args, data)
	}
	return r, nil
}

// Send makes a call and returns its reply. A lost connection does not end the call: the request is sent again with the same
// idempotency key until the call has ended or ctx has. The call goes on when ctx ends.
func (s *Session) Send(ctx context.Context, r api.CallRequest) (*Reply, error) {
	return s.await(ctx, r, rand.Text())
}

func (s *Session) await(ctx context.Context, r api.CallRequest, key string) (*Reply, error) {
	for look := firstLook; ; look = min(2*look, longestLook) {
		resp, err := s.send(ctx, r, key, goOn)
		var p *Problem
		switch {
		case err == nil && resp.JSON200 != nil:
			return &Reply{*resp.JSON200, resp.HTTPResponse.Header.Get("Idempotent-Replayed") == "true"}, nil
		case err == nil && resp.JSON202 == nil:
			return nil, strange(resp.HTTPResponse)
		case err != nil && !(errors.As(err, &p) && p.Code == api.ProblemCodeIdempotencyKeyInUse):
			return nil, err
		}
		if err := sleep(ctx, look); err != nil {
			return nil, err
		}
	}
}

func (s *Session) send(ctx context.Context, r api.CallRequest, key, prefer string) (*api.CreateCallResponse, error) {
	return s.client.API.CreateCallWithResponse(ctx, s.ID, &api.CreateCallParams{IdempotencyKey: &key, Prefer: &prefer}, r)
}

// History iterates over the session's calls, oldest first. It ends with the first error.
func (s *Session) History(ctx context.Context) iter.Seq2[api.HistoryRecord, error] {
	return pages(func(after *string) ([]api.HistoryRecord, *string, error) {
		params := &api.GetHistoryParams{}
		if after != nil {
			seq, err := strconv.Atoi(*after)
			if err != nil {
				return nil, nil, err
			}
			params.After = &seq
		}
		r, err := s.client.API.GetHistoryWithResponse(ctx, s.ID, params)
		if err != nil {
			return nil, nil, err
		}
		if r.JSON200 == nil {
			return nil, nil, strange(r.HTTPResponse)
		}
		return r.JSON200.Data, r.JSON200.NextCursor, nil
	})
}

// A Stream is a call whose events can be read.
type Stream struct {
	CallID  string
	session *Session
	request api.CallRequest
	key     string
	reply   *Reply // where the call has ended
}

// Stream starts a call, which goes on when ctx ends: see Cancel.
func (s *Session) Stream(ctx context.Context, r api.CallRequest) (*Stream, error) {
	st := &Stream{session: s, request: r, key: rand.Text()}
	resp, err := s.send(ctx, r, st.key, async)
	switch {
	case err != nil:
		return nil, err
	case resp.JSON200 != nil:
		st.CallID, st.reply = resp.JSON200.CallID, &Reply{CallReply: *resp.JSON200}
	case resp.JSON202 != nil:
		st.CallID = resp.JSON202.CallID
	default:
		return nil, strange(resp.HTTPResponse)
	}
	return st, nil
}

// Events iterates over the events from the first one to call.finished, whatever connections break. It ends with the first error.
func (st *Stream) Events(ctx context.Context) iter.Seq2[Event, error] {
	events := follow(ctx, "", func(ctx context.Context, last *string) (*http.Response, error) {
		return st.session.client.API.GetCallEvents(ctx, st.CallID, &api.GetCallEventsParams{LastEventID: last})
	})
	return func(yield func(Event, error) bool) {
		for e, err := range events {
			if !yield(e, err) || e.Type == "call.finished" {
				return
			}
		}
	}
}

// Reply waits for the end of the call and returns what Send would have returned.
func (st *Stream) Reply(ctx context.Context) (*Reply, error) {
	if st.reply != nil {
		return st.reply, nil
	}
	r, err := st.session.await(ctx, st.request, st.key)
	if err == nil {
		st.reply = r
	}
	return r, err
}

// Cancel asks the call to end.
func (st *Stream) Cancel(ctx context.Context) error { return st.session.client.Cancel(ctx, st.CallID) }

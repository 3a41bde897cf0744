package recurgent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/recurgentd/recurgentd/clients/go/api"
)

// Values of the Prefer header and intervals of polling. An asynchronous call goes on when the connection of its client
// breaks. Other calls are canceled.
const (
	goOn        = "respond-async, wait=600"
	async       = "respond-async"
	firstLook   = 20 * time.Millisecond // initial interval of polling for a running call
	longestLook = time.Second
)

// A Session is a conversation: a default role, a context, a history. Its calls run in order.
type Session struct {
	ID     string
	Role   string
	client *Client
}

// Session creates a session with that default role.
func (c *Client) Session(ctx context.Context, role string) (*Session, error) {
	return c.NewSession(ctx, api.SessionRequest{Role: role})
}

// NewSession creates a session from a full request, for example with a context, a contract or a model.
func (c *Client) NewSession(ctx context.Context, s api.SessionRequest) (*Session, error) {
	var made api.Session
	if err := c.Do(ctx, http.MethodPost, "/v1/sessions", s, &made); err != nil {
		return nil, err
	}
	return c.Resume(made.ID, made.Role), nil
}

// Resume returns an existing session. It sends no request.
func (c *Client) Resume(id, role string) *Session { return &Session{ID: id, Role: role, client: c} }

// Delete erases the session with its arguments and values.
func (s *Session) Delete(ctx context.Context) error {
	return s.client.Do(ctx, http.MethodDelete, s.path(), nil, nil)
}

func (s *Session) path() string { return "/v1/sessions/" + url.PathEscape(s.ID) }

// A Reply is the result of a call. An error outcome is also a Reply, not an error.
type Reply struct {
	api.CallReply
	Replayed bool // the reply to an earlier request with the same key
}

// A CallError is the error outcome of a call.
type CallError struct {
	api.ErrorOutcome
	CallID string
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%s.%s: %s: %s", e.ToolRole, e.MethodName, e.ErrorType, e.ErrorMessage)
}

// Into decodes the value into v, a pointer. An error outcome gives a *CallError. A *json.RawMessage gets the value as
// it was sent.
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

// Call calls a method of the session's role and waits for the reply. args must be encodable by encoding/json.
func (s *Session) Call(ctx context.Context, method string, args ...any) (*Reply, error) {
	r, err := Request(method, args...)
	if err != nil {
		return nil, err
	}
	return s.Send(ctx, r)
}

// Request returns a request for Send or Stream. Its role, kwargs, contract and timeout may be set before sending.
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

// Send makes a call and returns its reply. If the connection is lost, it sends the request again with the same
// idempotency key, until the call or ctx has ended. The call itself goes on when ctx ends.
func (s *Session) Send(ctx context.Context, r api.CallRequest) (*Reply, error) {
	return s.await(ctx, r, rand.Text())
}

// await repeats the request with its key until the call has ended. A conflict means that another request with the key
// is being served, and is retried.
func (s *Session) await(ctx context.Context, r api.CallRequest, key string) (*Reply, error) {
	for look := firstLook; ; look = min(2*look, longestLook) {
		reply, _, err := s.send(ctx, r, key, goOn)
		var p *Problem
		switch {
		case err == nil && reply != nil:
			return reply, nil
		case err != nil && !(errors.As(err, &p) && p.Code == api.ProblemCodeIdempotencyKeyInUse):
			return nil, err
		}
		if err := sleep(ctx, look); err != nil {
			return nil, err
		}
	}
}

// send makes the call with that key, or asks for it again. While the call runs, reply is nil and callID its id.
func (s *Session) send(ctx context.Context, r api.CallRequest, key,
	prefer string) (reply *Reply, callID string, err error) {
	resp, err := s.client.send(ctx, http.MethodPost, s.path()+"/calls",
		map[string]string{"Idempotency-Key": key, "Prefer": prefer}, r)
	if err != nil {
		return nil, "", err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		reply = &Reply{Replayed: resp.Header.Get("Idempotent-Replayed") == "true"}
		err = read(resp, &reply.CallReply)
		return reply, reply.CallID, err
	case http.StatusAccepted:
		var running api.Accepted
		err = read(resp, &running)
		return nil, running.CallID, err
	}
	defer resp.Body.Close()
	return nil, "", strange(resp)
}

// History iterates over the session's calls, oldest first. It ends with the first error.
func (s *Session) History(ctx context.Context) iter.Seq2[api.HistoryRecord, error] {
	return pages(func(cursor *string) ([]api.HistoryRecord, *string, error) {
		var list api.HistoryList
		err := s.client.Do(ctx, http.MethodGet, s.path()+"/history"+after(cursor), nil, &list)
		return list.Data, list.NextCursor, err
	})
}

// A Stream is a call whose events can be read. Only one goroutine may use it.
type Stream struct {
	CallID  string
	session *Session
	request api.CallRequest
	key     string
	reply   *Reply // set once the call has ended
}

// Stream starts a call and returns at once. The call goes on when ctx ends; Cancel ends it.
func (s *Session) Stream(ctx context.Context, r api.CallRequest) (*Stream, error) {
	st := &Stream{session: s, request: r, key: rand.Text()}
	var err error
	if st.reply, st.CallID, err = s.send(ctx, r, st.key, async); err != nil {
		return nil, err
	}
	return st, nil
}

// Events iterates over all events of the call up to call.finished, across lost connections. It ends with the first
// error.
func (st *Stream) Events(ctx context.Context) iter.Seq2[Event, error] {
	events := follow(ctx, "", func(ctx context.Context, last *string) (*http.Response, error) {
		return st.session.client.stream(ctx, callPath(st.CallID)+"/events", last)
	})
	return func(yield func(Event, error) bool) {
		for e, err := range events {
			if !yield(e, err) || e.Type == "call.finished" {
				return
			}
		}
	}
}

// Reply waits for the end of the call and returns the same as Send.
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

package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxEvent    = 16 << 20         // bytes of one event
	silence     = 45 * time.Second // three pings missed: the connection is taken for dead
	firstRetry  = 100 * time.Millisecond
	retryAtMost = 30 * time.Second
)

var errEventTooLong = fmt.Errorf("an event is over %d bytes", maxEvent)

// errSilent ends a connection that nothing comes from.
var errSilent = errors.New("nothing has come for a while")

// An Event is one event of a stream of server-sent events.
type Event struct {
	ID, Type string
	Data     []byte
}

// An eventReader reads a stream of server-sent events (the HTML standard, section 9.2).
type eventReader struct {
	r     *bufio.Reader
	id    string        // the last one given
	retry time.Duration // what the server asks for; 0 when it did not
	heard func()        // called for each line, comments too
}

// next returns the next event that has data, or the error that ended the stream.
func (e *eventReader) next() (Event, error) {
	var ev Event
	var data [][]byte
	size := 0
	for {
		line, err := e.line(maxEvent - size)
		if err != nil {
			return ev, err
		}
		e.heard()
		size += len(line)
		if len(line) == 0 {
			if data == nil {
				ev, size = Event{}, 0
				continue
			}
			ev.ID, ev.Data = e.id, bytes.Join(data, []byte("\n"))
			return ev, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			data = append(data, bytes.Clone(value))
		case "event":
			ev.Type = string(value)
		case "id":
			if !bytes.ContainsAny(value, "\x00") {
				e.id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = min(time.Duration(ms)*time.Millisecond, retryAtMost)
			}
		}
	}
}

// line reads a line without its end, which may be \n, \r\n or, in an old stream, \r, of at most so many bytes.
func (e *eventReader) line(most int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, errEventTooLong
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err // an event that was not ended by an empty line does not count
		default:
			return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
		}
	}
}

// events hands one connection's events to on, from the one after the id last ("" from now on), until the stream ends, which is
// io.EOF, or on fails. connected is called once the daemon streams. A *refusal is the daemon's answer.
func (c *Client) events(ctx context.Context, path, last string, connected func(),
	on func(Event) error) (retry time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watchdog.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if last != "" {
		header.Set("Last-Event-ID", last)
	}
	resp, err := c.send(ctx, http.MethodGet, path, header, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return 0, io.EOF
	}
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return 0, &Refusal{Status: resp.StatusCode, Title: "not a stream of events",
			Hint: "is " + c.base + " a recurgentd?"}
	}
	connected()
	r := &eventReader{r: bufio.NewReaderSize(resp.Body, 64<<10), heard: func() { watchdog.Reset(silence) }}
	for {
		ev, err := r.next()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return r.retry, err
		}
		if err := on(ev); err != nil {
			return r.retry, err
		}
	}
}

// ErrStop is returned by a handler of follow that has seen enough.
var ErrStop = errors.New("enough")

// Follow hands the events of the path to on, without gaps: it connects again and again, each time behind the last event that on
// took, until ctx ends or on fails. The first connection must succeed; later, only a refusal that a retry cannot change ends
// it. state is called with nil when a connection is made, and with the error when it is lost.
func (c *Client) Follow(ctx context.Context, path, last string, state func(error), on func(Event) error) error {
	var taken error
	once, wait := false, firstRetry
	for {
		retry, err := c.events(ctx, path, last, func() { once, wait = true, firstRetry; state(nil) },
			func(ev Event) error {
				if taken = on(ev); taken == nil && ev.ID != "" {
					last = ev.ID
				}
				return taken
			})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var no *Refusal
		if taken != nil || !once || errors.As(err, &no) && !no.passing() {
			return err
		}
		state(err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		if retry == 0 {
			retry = 2 * time.Second
		}
		wait = min(2*wait, max(retry, firstRetry))
	}
}

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
	silence     = 45 * time.Second // three missed pings: the connection counts as dead
	firstRetry  = 100 * time.Millisecond
	retryAtMost = 30 * time.Second
)

var errEventTooLong = fmt.Errorf("an event is over %d bytes", maxEvent)

// errSilent is the cause for closing a connection that delivers nothing.
var errSilent = errors.New("nothing has come for a while")

// An Event is a server-sent event.
type Event struct {
	ID, Type string
	Data     []byte
}

// An eventReader reads a stream of server-sent events (the HTML standard, section 9.2).
type eventReader struct {
	r     *bufio.Reader
	id    string        // the last one received
	retry time.Duration // requested by the server; 0 if it requested none
	heard func()        // called for each line, including comments
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

// line reads a line of at most most bytes, without its end, which may be \n or \r\n.
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
			return nil, err // an event without a terminating empty line does not count
		default:
			return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
		}
	}
}

// events passes the events of one connection to on, beginning after the event with the id last; "" begins with new
// ones. It returns when the stream ends, with io.EOF, or when on fails. It calls connected once the daemon streams. A
// *Refusal is the daemon's error response.
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

// ErrStop may be returned by the handler of Follow to stop it.
var ErrStop = errors.New("enough")

// Follow passes the events of the path to on, without gaps. It reconnects after each lost connection, behind the last
// event that on accepted, until ctx ends or on fails; it then returns the cause or on's error. It gives up if the first
// connection fails, or later if the daemon refuses for good. state is called with nil for each connection, and with the
// error when it is lost.
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

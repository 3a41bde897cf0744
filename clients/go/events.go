package recurgent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
)

const (
	maxEvent = 16 << 20         // bytes
	silence  = 45 * time.Second // three missed pings: the connection counts as dead
)

var errTooLong = fmt.Errorf("an event is over %d bytes", maxEvent)

// An Event is a server-sent event. Data is JSON.
type Event struct {
	ID, Type string
	Data     json.RawMessage
}

// Events iterates over the calls that end from now on, or after the event with the id after, without gaps. It
// reconnects as needed and ends when ctx ends, with its cause, or when the loop does.
func (c *Client) Events(ctx context.Context, after string) iter.Seq2[Event, error] {
	return follow(ctx, after, func(ctx context.Context, last *string) (*http.Response, error) {
		return c.stream(ctx, "/v1/events", last)
	})
}

// stream opens a stream of events that follow the one with the id last; nil means new events only.
func (c *Client) stream(ctx context.Context, path string, last *string) (*http.Response, error) {
	header := map[string]string{"Accept": "text/event-stream"}
	if last != nil {
		header["Last-Event-ID"] = *last
	}
	return c.send(ctx, http.MethodGet, path, header, nil)
}

// follow iterates over the events that follow the one with the id last. A lost connection is made again behind the last
// event. It ends with an error if the first connection fails or the daemon refuses for good.
func follow(ctx context.Context, last string, open func(ctx context.Context, last *string) (*http.Response,
	error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		connected, left, pause := false, false, firstPause
		for {
			err := connection(ctx, last, open, func() { connected, pause = true, firstPause }, func(e Event) bool {
				if e.ID != "" {
					last = e.ID
				}
				left = !yield(e, nil)
				return !left
			})
			if left {
				return
			}
			var p *Problem
			switch {
			case ctx.Err() != nil:
				yield(Event{}, context.Cause(ctx))
				return
			case !connected, errors.Is(err, errTooLong), errors.As(err, &p) && !p.passing():
				yield(Event{}, err)
				return
			}
			if err := sleep(ctx, pause); err != nil {
				yield(Event{}, err)
				return
			}
			pause = min(2*pause, longestPause)
		}
	}
}

// connection passes the events of one connection to on until the connection ends or on returns false. It calls
// connected once the stream is open.
func connection(ctx context.Context, last string, open func(context.Context, *string) (*http.Response, error),
	connected func(), on func(Event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Each line resets the watchdog. The daemon sends pings, so silence means a dead connection.
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	var after *string
	if last != "" {
		after = &last
	}
	resp, err := open(ctx, after)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return strange(resp)
	}
	connected()
	return readEvents(resp.Body, func() { watchdog.Reset(silence) }, on)
}

// readEvents reads a stream of server-sent events (the HTML standard, section 9.2) until it ends or on returns false.
// It ignores an incomplete last event. It calls heard for each line.
func readEvents(body io.Reader, heard func(), on func(Event) bool) error {
	lines := bufio.NewReaderSize(body, 64<<10)
	id, kind, size := "", "", 0
	var data []string
	for {
		line, err := readLine(lines, maxEvent-size)
		if err != nil {
			return err
		}
		heard()
		size += len(line)
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil && !on(Event{id, kind, json.RawMessage(strings.Join(data, "\n"))}) {
				return nil
			}
			kind, data, size = "", nil, 0
		case name == "data":
			data = append(data, value)
		case name == "event":
			kind = value
		case name == "id" && !strings.Contains(value, "\x00"):
			id = value
		}
	}
}

// readLine reads a line of at most most bytes, without its end.
func readLine(r *bufio.Reader, most int) (string, error) {
	var line strings.Builder
	for {
		part, err := r.ReadSlice('\n')
		line.Write(part)
		if line.Len() > most {
			return "", errTooLong
		}
		if err == nil {
			return strings.TrimSuffix(strings.TrimSuffix(line.String(), "\n"), "\r"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
}

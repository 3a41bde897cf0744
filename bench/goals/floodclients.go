package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// floodClients runs the clients of a flood in this process. It prints one line once all of them have sent something,
// and a summary of what they got when it is interrupted.
func floodClients(args []string) error {
	flags := flag.NewFlagSet("flood", flag.ContinueOnError)
	url, token := flags.String("url", "", ""), flags.String("token", "", "")
	kind, clients, rude := flags.String("kind", "", ""), flags.Int("clients", 1, ""), flags.Bool("rude", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt)
	defer end()
	d := &daemon{url: *url, token: func(string) string { return *token },
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *clients}}}
	// With this many sessions, the queue of a single session is not what refuses calls.
	targets := make([]target, min(*clients, 500))
	method, body := "leaf", ""
	switch *kind {
	case "bodies", "trickle":
		method, body = "same", `{"method":"same","args":["`+strings.Repeat("x", 4<<20-100)+`"]}`
	case "replies":
		method = "big"
	case "chains":
		for n := range 6 { // each is forged separately and needs the previous one
			if _, err := d.target(attacker, "theirs2", fmt.Sprintf("deep%d", n+1)); err != nil {
				return err
			}
		}
		method = "deep6"
	}
	err := each(len(targets), func(i int) (err error) {
		targets[i], err = d.target(attacker, "theirs2", method)
		if body != "" {
			targets[i].body = []byte(body)
		}
		return err
	})
	if err != nil {
		return err
	}
	w := wave{ctx: ctx, d: d, kind: *kind, rude: *rude}
	w.begun.Add(*clients)
	for i := range *clients {
		w.all.Go(func() { w.client(i, targets[i%len(targets)]) })
	}
	w.begun.Wait()
	fmt.Println("on")
	<-ctx.Done()
	w.all.Wait()
	fmt.Println(w.got())
	return nil
}

// A wave is the set of clients of a flood.
type wave struct {
	ctx        context.Context // of the process
	d          *daemon
	kind       string
	rude       bool
	begun, all sync.WaitGroup
	status     [6]atomic.Int64 // replies by class of status; 0 counts requests without a reply
}

// got returns a summary of the replies so far.
func (w *wave) got() string {
	return fmt.Sprintf("%d calls and %d refusals", w.status[2].Load(), w.status[4].Load()+w.status[5].Load())
}

// client sends one request after another until the flood ends.
func (w *wave) client(number int, t target) {
	first := sync.OnceFunc(w.begun.Done)
	defer first()
	for w.kind == "busy" && w.ctx.Err() == nil {
		first()
	}
	for n := 0; w.ctx.Err() == nil; n++ {
		if w.kind == "forging" {
			t.body = fmt.Appendf(nil, `{"method":"new%d_%d_%d","args":[1]}`, os.Getpid(), number, n)
		}
		req, err := w.request(number, t)
		if err != nil {
			return
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+w.d.token(""))
		time.AfterFunc(time.Second, first) // the request is sent by then
		resp, err := w.d.http.Do(req)
		first()
		if err != nil {
			w.status[0].Add(1)
			w.pause("1")
			continue
		}
		w.status[resp.StatusCode/100].Add(1)
		if w.kind == "streams" && number >= callers && resp.StatusCode == http.StatusOK {
			<-w.ctx.Done() // nobody reads the stream
		}
		w.read(resp.Body)
		_ = resp.Body.Close() // it was only read
		if resp.StatusCode/100 != 2 && !w.rude {
			w.pause(resp.Header.Get("Retry-After"))
		}
	}
}

// callers is the number of clients of the flood streams that make calls. The others read the events of these.
const callers = 8

// request returns the next request of a client.
func (w *wave) request(number int, t target) (*http.Request, error) {
	switch {
	case w.kind == "streams" && number >= callers:
		return http.NewRequestWithContext(w.ctx, http.MethodGet, w.d.url+"/v1/events", nil)
	case w.kind == "trickle":
		return http.NewRequestWithContext(w.ctx, http.MethodPost, w.d.url+t.path, &trickle{w, bytes.NewReader(t.body)})
	}
	return http.NewRequestWithContext(w.ctx, http.MethodPost, w.d.url+t.path, bytes.NewReader(t.body))
}

// A trickle is a request body that is sent at 64 KiB per second.
type trickle struct {
	w    *wave
	left *bytes.Reader
}

func (t *trickle) Read(p []byte) (int, error) {
	t.w.pause("1")
	if err := t.w.ctx.Err(); err != nil {
		return 0, err
	}
	return t.left.Read(p[:min(len(p), 64<<10)])
}

// read reads a reply: at full speed, or for the flood replies as slowly as a client may without being cut off.
func (w *wave) read(body io.Reader) {
	for w.kind == "replies" {
		if n, err := io.CopyN(io.Discard, body, 64<<10); err != nil || n == 0 {
			return
		}
		w.pause("1")
	}
	_, _ = io.Copy(io.Discard, body) // a reply that breaks off counts too
}

// pause waits for a number of seconds, as in Retry-After, or until the flood ends.
func (w *wave) pause(seconds string) {
	n, err := strconv.Atoi(seconds)
	if err != nil {
		n = 1
	}
	select {
	case <-time.After(time.Duration(n) * time.Second):
	case <-w.ctx.Done():
	}
}

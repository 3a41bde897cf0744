package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	document "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// bulky is a runtime with large replies.
type bulky struct {
	*fake
	body    []byte
	records []json.RawMessage
}

func (b *bulky) Call(context.Context, runtime.CallRequest) (runtime.CallResult, error) {
	return runtime.CallResult{Body: b.body, CallID: knownCall, OK: true}, nil
}

func (b *bulky) History(context.Context, string, store.HistoryQuery) (store.HistoryPage, error) {
	return store.HistoryPage{Records: b.records}, nil
}

// pipes is a listener whose connections have no buffer, so a write waits for the reader.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (l *pipes) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// overPipes serves a runtime with replies of size bytes. limit bytes of them may be written at once. It must be called
// in a bubble; stop ends what it started.
func overPipes(t *testing.T, size int, limit int64) (l *pipes, s *server, stop func()) {
	t.Helper()
	f := &bulky{fake: &fake{}, body: bytes.Repeat([]byte("x"), size)}
	for range 40 {
		f.records = append(f.records, json.RawMessage(`"`+strings.Repeat("r", size/40)+`"`))
	}
	o := DefaultOptions()
	reg := telemetry.NewRegistry()
	o.MaxReplies = limit
	o.Namespaces, o.Registry, o.Metrics, o.OpenAPI = only(t, f), reg, telemetry.New(reg, telemetry.Build{}),
		document.OpenAPI
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	l = &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	hs := &http.Server{Handler: s.table.router}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = hs.Serve(l)
	}()
	return l, s, func() {
		_ = hs.Close()
		<-ended
	}
}

const callRequest = "POST /v1/sessions/" + knownSession +
	"/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"method\":\"a\"}"

// A hundred clients that request 4 MiB and do not read hold no more than the bound and what waits for a turn. The
// others get a Retry-After, and stuck ones are disconnected.
func TestUnreadRepliesAreBounded(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"a call":    callRequest,
		"a history": "GET /v1/sessions/" + knownSession + "/history HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"lines": "GET /v1/sessions/" + knownSession +
			"/history HTTP/1.1\r\nHost: localhost\r\nAccept: application/jsonl\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { unread(t, request) }) })
	}
}

func unread(t *testing.T, request string) {
	const clients, size, limit = 100, 4 << 20, 32 << 20
	l, s, stop := overPipes(t, size, limit)
	defer stop()
	var mu sync.Mutex
	status := map[int]int{} // number of replies by status; guarded by mu
	var conns []net.Conn
	var all sync.WaitGroup
	for range clients {
		conn := l.dial()
		conns = append(conns, conn)
		all.Go(func() {
			_, _ = io.WriteString(conn, request)
			res, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
			if err != nil {
				return // it waits for its turn until the test ends
			}
			mu.Lock()
			defer mu.Unlock()
			status[res.StatusCode]++
			if res.StatusCode == http.StatusServiceUnavailable {
				var p Problem
				_ = json.NewDecoder(res.Body).Decode(&p)
				if p.Code != codeRepliesFull || res.Header.Get("Retry-After") == "" {
					t.Errorf("got %s and Retry-After %q", p.Code, res.Header.Get("Retry-After"))
				}
			}
		})
	}
	synctest.Wait()
	waiting, _ := s.replies.waiting.Used()
	writing, _ := s.replies.writing.Used()
	mu.Lock()
	got := fmt.Sprint(status)
	n := status[http.StatusOK]
	mu.Unlock()
	// a reply counts with its buffer, which is up to twice its size
	if n < 1 || n > limit/size || waiting > limit || writing < limit/2 || writing > limit {
		t.Errorf("%s and %d bytes wait; want at most %d of %d written at once", got, waiting, limit/size, clients)
	}
	time.Sleep(replyTurn + DefaultOptions().Stall + time.Second)
	synctest.Wait()
	waiting, _ = s.replies.waiting.Used()
	writing, _ = s.replies.writing.Used()
	if writing != 0 || waiting != 0 {
		t.Error("the replies of clients that are cut off are still held")
	}
	for _, c := range conns {
		_ = c.Close()
	}
	all.Wait()
	if status[http.StatusOK]+status[http.StatusServiceUnavailable] != clients {
		t.Errorf("%v, want an answer for each of %d", status, clients)
	}
}

// A client that reads slowly gets the whole reply. One that stops is disconnected. The next request on a connection has
// its own deadline.
func TestSlowReaderGetsItsReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		stall := DefaultOptions().Stall
		l, _, stop := overPipes(t, size, DefaultOptions().MaxReplies)
		defer stop()
		conn := l.dial()
		defer conn.Close()
		from := bufio.NewReaderSize(conn, 4<<10)
		for range 2 {
			_, _ = io.WriteString(conn, callRequest)
			res, err := http.ReadResponse(from, nil)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for piece := make([]byte, writePiece); ; time.Sleep(stall * 2 / 3) {
				m, err := io.ReadFull(res.Body, piece)
				n += m
				if err != nil {
					break
				}
			}
			if n != size+1 {
				t.Errorf("a slow reader got %d bytes of %d", n, size+1)
			}
			time.Sleep(2 * stall) // idle for longer than a deadline
		}
		_, _ = io.WriteString(conn, callRequest)
		res, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * stall)
		if n, err := io.Copy(io.Discard, res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a reader that stopped got %d bytes and %v, want a broken connection", n, err)
		}
	})
}

// A client that writes a large body before it reads gets its problem, and its connection can be reused.
func TestLargeBodyIsReadBeforeItIsRefused(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	body := strings.Repeat("x", 9<<20)
	path := "/v1/sessions/" + knownSession + "/calls"
	for _, c := range []struct {
		name, header string
		chunked      bool
		status       int
	}{
		{"by its length", "Content-Type: application/json", false, 413},
		{"by its bytes", "Content-Type: application/json", true, 413},
		{"of another type", "Content-Type: text/plain", false, 413},
		{"to another host", "Host: example.org", false, 421},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			head := "POST " + path + " HTTP/1.1\r\n" + c.header + "\r\n"
			if !strings.HasPrefix(c.header, "Host") {
				head += "Host: localhost\r\n"
			}
			if c.chunked {
				head += fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
			} else {
				head += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
			}
			if _, err := io.WriteString(conn, head); err != nil {
				t.Fatalf("writing the body: %v", err)
			}
			from := bufio.NewReader(conn)
			res, err := http.ReadResponse(from, nil)
			if err != nil || res.StatusCode != c.status {
				t.Fatalf("got %v, %v, want %d", res, err, c.status)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if res, err = http.ReadResponse(from, nil); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("the next request on the connection: %v, %v", res, err)
			}
		})
	}
	// A body beyond what is drained is refused at once.
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, 4*DefaultOptions().MaxBody+1)
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 413 {
		t.Errorf("got %v, %v, want 413 before the body is there", res, err)
	}
}

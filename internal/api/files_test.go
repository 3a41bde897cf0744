package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/telemetry"

	document "github.com/recurgentd/recurgentd/api"
)

// uploadTo serves the interface at the listener, with a request timeout that is over before any of the body arrives.
func uploadTo(t *testing.T, l net.Listener) (stop func()) {
	t.Helper()
	reg := telemetry.NewRegistry()
	o := DefaultOptions()
	o.Namespaces, o.Registry, o.Metrics, o.OpenAPI = only(t, &fake{}), reg, telemetry.New(reg, telemetry.Build{}),
		document.OpenAPI
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadTimeout: time.Nanosecond, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	return func() {
		_ = server.Close()
		<-ended
	}
}

func answerOn(t *testing.T, conn *bufio.Reader) (status int, body map[string]any) {
	t.Helper()
	resp, err := http.ReadResponse(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return resp.StatusCode, body
}

// An upload may take longer than other requests.
func TestUploadOutlastsTheRequestsTime(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer uploadTo(t, l)()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/files HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	answers := bufio.NewReader(conn)
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} { // the handler reads
		if line, err := answers.ReadString('\n'); err != nil || line != want {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	fmt.Fprint(conn, "text")
	if status, body := answerOn(t, answers); status != http.StatusCreated || body["bytes"] != float64(4) {
		t.Errorf("got %d %v", status, body)
	}
}

// An upload ends if its client sends nothing for too long.
func TestUploadEndsByIdleness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		defer uploadTo(t, l)()
		conn := l.dial()
		defer conn.Close()
		fmt.Fprint(conn, "POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nte")
		if status, body := answerOn(t,
			bufio.NewReader(conn)); status != http.StatusRequestTimeout || body["code"] != "upload_idle" {
			t.Errorf("got %d %v", status, body)
		}
	})
}

package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/telemetry"

	document "github.com/recurgentd/recurgentd/api"
)

// uploadServer serves the interface with a time for whole requests that is over before any body has come.
func uploadServer(t *testing.T, stall time.Duration) net.Conn {
	t.Helper()
	reg := telemetry.NewRegistry()
	o := DefaultOptions()
	o.Namespaces, o.Registry, o.Metrics, o.OpenAPI, o.Stall = only(t, &fake{}), reg, telemetry.New(reg, telemetry.Build{}), document.OpenAPI, stall
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.Config.ReadTimeout, server.Config.ReadHeaderTimeout = time.Nanosecond, time.Minute
	server.Start()
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
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
	conn := uploadServer(t, time.Minute)
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

// One whose client sends nothing any more ends.
func TestUploadEndsByIdleness(t *testing.T) {
	t.Parallel()
	conn := uploadServer(t, time.Second) // in which the reply is to be written, too
	fmt.Fprint(conn, "POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nte")
	if status, body := answerOn(t, bufio.NewReader(conn)); status != http.StatusRequestTimeout || body["code"] != "upload_idle" {
		t.Errorf("got %d %v", status, body)
	}
}

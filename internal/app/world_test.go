package app_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/app"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
)

// A daemon on simulated parts lives in a bubble: it answers calls, keeps what it acknowledged over a restart, follows
// the clock of the bubble, and touches neither a process nor the disk.
func TestSimulatedWorld(t *testing.T) {
	dir := t.TempDir() + "/none"
	synctest.Test(t, func(t *testing.T) {
		files := vfstest.New()
		o := app.DefaultOptions()
		o.DataDir = dir
		o.World = app.World{Files: files,
			Model: &runtimetest.Model{Programs: map[string][]string{"oracle.answer": {"answer"}}},
			Sandbox: &runtimetest.Box{Programs: map[string]runtimetest.Run{
				"answer": runtimetest.Returns("42")}}}
		var session string
		for _, source := range []string{"generated", "persisted"} {
			wire := apptest.NewWire()
			o.World.Listener = wire
			a, err := app.New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			a.Start()
			client := &http.Client{Transport: &http.Transport{DialContext: wire.Dial}}
			if session == "" {
				session = postBy(t, client, a, "/v1/sessions", map[string]any{"role": "oracle"})["id"].(string)
			}
			reply := postBy(t, client, a, "/v1/sessions/"+session+"/calls", map[string]any{"method": "answer"})
			if got := reply["outcome"].(map[string]any)["value"]; got != 42.0 {
				t.Errorf("got %v, want 42", got)
			}
			if got := reply["program"].(map[string]any)["source"]; got != source {
				t.Errorf("the program is %v, want %s", got, source)
			}
			time.Sleep(24 * time.Hour) // of the bubble's clock
			client.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(t.Context(), app.StopTime)
			if err := a.Stop(ctx); err != nil {
				t.Errorf("stop: %v", err)
			}
			cancel()
		}
		if !strings.Contains(files.Text(), session) {
			t.Errorf("the simulated disk lacks the session:\n%s", files.Text())
		}
	})
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the real directory was made: %v", err)
	}
}

package api

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
)

// Large replies over MCP count against the bound until their request has ended. What a task holds is released when its
// call has ended.
func TestHostOfMCP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, nil)
		ann := agent.Owner{Namespace: agent.DefaultNamespace, Name: "ann"}
		w := &reply{held: held{shares: c.server.shares, owner: ann}}
		h := &mcpHost{s: c.server, w: w}
		used := func() int64 {
			n, _ := c.server.replies.writing.Used()
			return n
		}
		for range 2 {
			if !h.room(1 << 20) {
				t.Fatal("no room for a reply in an idle daemon")
			}
		}
		if !h.room(c.server.replies.limit-2<<20) || used() != c.server.replies.limit {
			t.Errorf("%d bytes are in use of %d", used(), c.server.replies.limit)
		}
		other := &mcpHost{s: c.server,
			w: &reply{held: held{shares: c.server.shares, owner: agent.Owner{Namespace: agent.DefaultNamespace,
				Name: "ben"}}}}
		if h.room(1<<20) || !other.room(1<<20) {
			t.Error("one owner has room beside all that it may have, or another one has none")
		}
		other.leave()
		h.leave()
		h.leave()
		if used() != 0 || !h.room(1<<20) {
			t.Errorf("%d bytes are in use after the request", used())
		}
		h.leave()

		if !c.server.shares.calls.Try(ann, 1) {
			t.Fatal("no call is admitted")
		}
		w.held.call = true
		release := h.hold()
		w.held.release()
		if n, _ := c.server.shares.calls.Used(); n != 1 {
			t.Errorf("%d calls count while the task goes on", n)
		}
		release()
		if n, _ := c.server.shares.calls.Used(); n != 0 {
			t.Errorf("%d calls count after it", n)
		}
	})
}

// The endpoint of MCP has the same answers with a slash at its end, and for a message with a byte order mark.
func TestAddressAndMarkOfMCP(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, func(o *Options) {
		o.Namespaces.(*one).mcp = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
		})
	})
	c.people.all["reader"] = access.Principal{Name: "reader", Scopes: access.Scopes(access.Read),
		Namespace: "default"}
	const list, call = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`
	for _, path := range []string{"/mcp", "/mcp/"} {
		for _, mark := range []string{"", "\ufeff"} {
			got := c.send(t.Context(), "reader", "POST", path, strings.NewReader(mark+list))
			if got.Code != http.StatusOK || got.Body.String() != list {
				t.Errorf("%q to %s: %d %s", mark+list, path, got.Code, got.Body)
			}
		}
		got := c.send(t.Context(), "reader", "POST", path, strings.NewReader(call))
		if got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), `"jsonrpc":"2.0"`) {
			t.Errorf("%s to %s: %d %s", call, path, got.Code, got.Body)
		}
	}
}

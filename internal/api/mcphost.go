package api

import (
	"context"
	"net/http"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/mcp"
)

// An mcpHost implements mcp.Host for the request that w answers. The messages of one request are handled concurrently.
type mcpHost struct {
	s *server
	w *reply
	r *http.Request

	mu    sync.Mutex
	rooms []func() // release the space of large replies; guarded by mu
}

// asked returns the mcp.Host. Without a cluster, there are no calls elsewhere.
func (h *mcpHost) asked() mcp.Host {
	out := mcp.Host{Hold: h.hold, Room: h.room}
	if h.s.o.Cluster != nil {
		out.Elsewhere = h.elsewhere
	}
	return out
}

// hold transfers what the request holds to the caller, who must call release.
func (h *mcpHost) hold() (release func()) {
	kept := h.w.held
	h.w.held = held{owner: kept.owner}
	return kept.release
}

// room waits for space for a reply of n bytes, which leave returns. It reports false if there is none in time.
func (h *mcpHost) room(n int64) bool {
	done, err := h.s.enterReplies(h.w, n)
	if err != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rooms = append(h.rooms, done)
	return true
}

// leave returns all space that room has taken.
func (h *mcpHost) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, done := range h.rooms {
		done()
	}
	h.rooms = nil
}

// elsewhere returns the calls that run at other replicas.
func (h *mcpHost) elsewhere(ctx context.Context) ([]agent.LogEntry, error) {
	const all = "/v1/calls?status=" + agent.StatusRunning + "&limit=1000"
	there, err := h.s.callsElsewhere(h.w, h.r.WithContext(ctx), all)
	return there.calls, err
}

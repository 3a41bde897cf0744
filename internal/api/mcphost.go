package api

import (
	"context"
	"net/http"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/mcp"
)

// An mcpHost answers what the server of MCP asks of the request w answers. A request may have several messages, which are answered at the same time.
type mcpHost struct {
	s *server
	w *reply
	r *http.Request

	mu    sync.Mutex
	rooms []func() // give room of replies back; guarded by mu
}

func (h *mcpHost) asked() mcp.Host {
	out := mcp.Host{Hold: h.hold, Room: h.room}
	if h.s.o.Cluster != nil {
		out.Elsewhere = h.elsewhere
	}
	return out
}

// hold has what the request counts for count until release.
func (h *mcpHost) hold() (release func()) {
	kept := h.w.held
	h.w.held = held{owner: kept.owner}
	return kept.release
}

// room keeps room for a reply of n bytes until leave.
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

package serve

import (
	"encoding/json"
	"io"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// onStream asks the daemon for an operation on an open stream. The result shares memory with the frame.
func (h *host) onStream(op string, p wire.StreamParams, data []byte) ([]byte, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	reply := h.send(wire.Question{Op: op, Params: raw, Data: data})
	if reply.Holds == wire.ReplyRefused {
		return nil, &recurgent.Failure{Type: reply.Type, Message: reply.Message}
	}
	return reply.Body, nil
}

// ReadStream implements recurgent.Host.
func (h *host) ReadStream(stream int, p []byte) (int, error) {
	body, err := h.onStream(wire.OpRead, wire.StreamParams{Stream: stream, Bytes: min(len(p), wire.MaxPiece)}, nil)
	if err == nil && len(body) == 0 {
		err = io.EOF
	}
	return copy(p, body), err
}

// WriteStream implements recurgent.Host.
func (h *host) WriteStream(stream int, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), wire.MaxPiece)
		if _, err := h.onStream(wire.OpWrite, wire.StreamParams{Stream: stream}, p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// CloseStream implements recurgent.Host.
func (h *host) CloseStream(stream int) {
	// Closing a closed stream has no effect.
	_, _ = h.onStream(wire.OpClose, wire.StreamParams{Stream: stream}, nil)
}

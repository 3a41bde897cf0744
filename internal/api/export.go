package api

import (
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// lateWriter writes the header with the first byte, so that a fault before it is still a problem detail.
type lateWriter struct {
	w    *reply
	only agent.Namespace // that the file is named for; "" for all
}

func (l lateWriter) Write(p []byte) (int, error) {
	if l.w.status == 0 {
		l.begin()
	}
	return l.w.Write(p)
}

func (l lateWriter) begin() {
	h, of := l.w.Header(), ""
	if l.only != "" {
		of = string(l.only) + "-"
	}
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="recurgent-`+of+time.Now().UTC().Format("20060102T150405Z")+
		`.tar.gz"`)
	l.w.WriteHeader(http.StatusOK)
}

// export streams an archive of everything or, where the header names a namespace, the principal's own too, of that one. It lasts as long as there is
// to write.
func (s *server) export(w *reply, r *http.Request) error {
	var only agent.Namespace
	if len(r.Header[namespaceHeader]) > 0 {
		only = w.in
	}
	to := lateWriter{w, only}
	if r.Method == http.MethodHead { // an archive that nobody reads is not made
		to.begin()
		return nil
	}
	err := w.run.Export(r.Context(), to, only, w.owner)
	if err != nil && w.status != 0 {
		s.log.Error().Err(err).Str("request_id", w.requestID).Msg("an export broke off")
		panic(http.ErrAbortHandler) // a clean end would pass for a whole archive
	}
	return err
}

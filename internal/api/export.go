package api

import (
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// lateWriter sends the header with the first byte, so that an earlier error can still be a problem detail.
type lateWriter struct {
	w    *reply
	only agent.Namespace // namespace in the file's name; "" for an archive of all
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

// export streams an archive. It contains everything, or one namespace if the request names it in the header, even if
// that is the principal's own. It has no time limit.
func (s *server) export(w *reply, r *http.Request) error {
	var only agent.Namespace
	if len(r.Header[namespaceHeader]) > 0 {
		only = w.in
	}
	to := lateWriter{w, only}
	if r.Method == http.MethodHead { // do not build an archive that nobody reads
		to.begin()
		return nil
	}
	err := w.run.Export(r.Context(), to, only, w.owner)
	if err != nil && w.status != 0 {
		s.log.Error().Err(err).Str("request_id", w.requestID).Msg("an export broke off")
		panic(http.ErrAbortHandler) // a regular end would make a truncated archive look complete
	}
	return err
}

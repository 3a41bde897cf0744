package api

import (
	"net/http"
	"strconv"
	"time"
)

// lateWriter writes the header with the first byte, so that a fault before it is still a problem detail.
type lateWriter struct{ w *reply }

func (l lateWriter) Write(p []byte) (int, error) {
	if l.w.status == 0 {
		l.begin()
	}
	return l.w.Write(p)
}

func (l lateWriter) begin() {
	h := l.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="recurgent-`+time.Now().UTC().Format("20060102T150405Z")+`.tar.gz"`)
	l.w.WriteHeader(http.StatusOK)
}

// export streams an archive of everything, all namespaces included. It lasts as long as there is to write. Who names another namespace is refused: they would take the
// archive for one of that namespace, and hand everybody's to its people.
func (s *server) export(w *reply, r *http.Request) error {
	if w.in != w.who.Namespace {
		return fault(codeParameter, "an export is of the whole daemon, and not of the namespace "+strconv.Quote(string(w.in)), "Leave the header "+namespaceHeader+" out to export all namespaces; recurgentd tools eject takes the tools of one.").
			in("header:"+namespaceHeader, "an export is of all namespaces")
	}
	if r.Method == http.MethodHead { // an archive that nobody reads is not made
		lateWriter{w}.begin()
		return nil
	}
	err := w.run.Export(r.Context(), lateWriter{w}, w.owner)
	if err != nil && w.status != 0 {
		s.log.Error().Err(err).Str("request_id", w.requestID).Msg("an export broke off")
		panic(http.ErrAbortHandler) // a clean end would pass for a whole archive
	}
	return err
}

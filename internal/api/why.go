package api

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
)

// Media types of an explanation.
const (
	mediaJSON     = "application/json"
	mediaText     = "text/plain"
	mediaMarkdown = "text/markdown"
)

// explainCall explains why a call ended as it did: as JSON, or as a page for people if the Accept header prefers text.
func (s *server) explainCall(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	x, err := w.run.Why(r.Context(), id, why.Asker{Call: w.who.Scopes.Has(access.Call),
		Operate: w.who.Scopes.Has(access.Operate)})
	if err != nil {
		return noCall(err, id)
	}
	// caches must not serve one form for another
	w.Header().Add("Vary", "Accept")
	switch form := preferred(r.Header["Accept"], mediaJSON, mediaText, mediaMarkdown); form {
	case mediaText:
		return s.sendPage(w, form, x.Text(nil))
	case mediaMarkdown:
		return s.sendPage(w, form, x.Markdown())
	}
	return s.send(w, http.StatusOK, x)
}

// sendPage sends a text page, once there is space for it.
func (s *server) sendPage(w *reply, media, page string) error {
	done, err := s.enterReplies(w, int64(len(page)))
	if err != nil {
		return err
	}
	defer done()
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(http.StatusOK)
	_, err = w.Write([]byte(page))
	return err
}

// preferred returns the form with the highest weight in the Accept header. Among equals, and if none is accepted, it is
// the first of forms.
func preferred(accept []string, forms ...string) string {
	best, most := forms[0], 0.0
	for _, form := range forms {
		if q := quality(accept, form); q > most {
			best, most = form, q
		}
	}
	return best
}

// quality returns the weight of a media type in the Accept header, from the most specific range that matches, or 0.
func quality(accept []string, form string) float64 {
	weight, matched := 0.0, -1
	top, _, _ := strings.Cut(form, "/")
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			media, params, err := mime.ParseMediaType(part)
			rank := map[string]int{"*/*": 0, top + "/*": 1, form: 2}
			// a more specific range overrides the weight of a wider one
			if got, matches := rank[media]; err == nil && matches && got > matched {
				matched, weight = got, 1
				if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
					weight = min(max(q, 0), 1)
				}
			}
		}
	}
	return weight
}

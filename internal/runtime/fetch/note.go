package fetch

import (
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch/httpcache"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A Note is what is recorded of one request that the daemon performed for a program.
type Note struct {
	URL       string `json:"url"`                  // final, without user info
	Status    int    `json:"status"`               // 0 when there was no answer
	ErrorKind string `json:"error_kind,omitempty"` // one of the kinds; "" when there was an answer
	FetchedAt string `json:"fetched_at"`
	// a fingerprint of the body's shape (JSON kinds and keys, HTML, CSV header ...)
	Shape string `json:"shape,omitempty"`
	// live, recorded, or where a kept answer came from: cached, revalidated, stale
	Mode       string `json:"mode"`
	Connection string `json:"connection,omitempty"` // whose credential the last hop carried
	Retries    int    `json:"retries,omitempty"`    // how often the request was sent again after 429 or 503

	Asked string `json:"-"` // the URL that the program asked for, where redirects led to another one

	Reached []Reached `json:"-"` // what answered, hop by hop
	Write   bool      `json:"-"` // the program asked for a writing request
	Sent    bool      `json:"-"` // it left the daemon, of a write only
	Missing *Approval `json:"-"` // it was denied for want of a person's approval

	// Evidence for the model, never sent anywhere else.
	Outline     string `json:"-"` // the shape in words
	ContentType string `json:"-"`
	Bytes       int    `json:"-"` // of the body
	Sample      string `json:"-"` // the body's first 2 KiB, valid UTF-8

	json  string  // the structure of a JSON body, cut at maxJSONForm
	names tallies // of markup
}

// Values of Note.Mode.
const (
	ModeLive     = httpcache.Live
	ModeRecorded = "recorded"
)

// Results are all that a fetch can come to: where its answer came from (a write that was sent before has a recorded one), or the kind of what went wrong.
func Results() []string {
	return []string{httpcache.Live, httpcache.Cached, httpcache.Revalidated, httpcache.Stale, ModeRecorded, KindDNS,
		KindRefused, KindTimeout, KindDenied, KindRedirectDenied, KindRedirects,
		KindTooLarge, KindIncomplete, KindEncoding, KindNetwork, KindConnection}
}

// maxSample bounds Note.Sample.
const maxSample = 2 << 10

// describe fills in the properties of the response.
func (n *Note) describe(r *recurgent.Response) {
	n.Status, n.FetchedAt, n.ContentType, n.Bytes = r.Status, r.FetchedAt, r.Header["Content-Type"], len(r.Body)
	n.describeShape(r.Body)
	n.Sample = strings.ToValidUTF8(r.Body[:min(len(r.Body), maxSample)], "")
}

// Denied is the note of a request that was not sent.
func Denied(q recurgent.Request) Note {
	at := SafeURL(q.URL)
	return Note{URL: at, Asked: at, ErrorKind: KindDenied, Mode: ModeLive}
}

// Recorded is the note of a request whose recorded answer is served: its response, or nil and the type of its failure.
func Recorded(q recurgent.Request, r *recurgent.Response, failureType string) Note {
	at := SafeURL(q.URL)
	n := Note{URL: at, Asked: at, Mode: ModeRecorded}
	if r == nil {
		n.ErrorKind = kindOf(failureType)
		return n
	}
	n.describe(r)
	return n
}

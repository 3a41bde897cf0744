package fetch

import (
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch/httpcache"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A Note records one request that the daemon performed for a program.
type Note struct {
	URL       string `json:"url"`                  // the final address, without user information
	Status    int    `json:"status"`               // 0 if there was no answer
	ErrorKind string `json:"error_kind,omitempty"` // one of the kinds; "" if there was an answer
	FetchedAt string `json:"fetched_at"`
	// Shape is a fingerprint of the body's shape (JSON kinds and keys, HTML, CSV header and others).
	Shape string `json:"shape,omitempty"`
	// Mode is live, recorded, or the source of a cached answer: cached, revalidated, stale.
	Mode       string `json:"mode"`
	Connection string `json:"connection,omitempty"` // the connection whose credential the last hop carried
	Retries    int    `json:"retries,omitempty"`    // how often the request was repeated after 429 or 503

	Asked string `json:"-"` // the address that the program asked for, before redirects

	Reached []Reached `json:"-"` // answered requests, hop by hop
	Write   bool      `json:"-"` // the program asked for a writing request
	Sent    bool      `json:"-"` // the write left the daemon; set for writes only
	Missing *Approval `json:"-"` // the approval whose absence denied the request; nil otherwise

	// Evidence for the model. It is not sent anywhere else.
	Outline     string `json:"-"` // the shape in words
	ContentType string `json:"-"`
	Bytes       int    `json:"-"` // length of the body
	Sample      string `json:"-"` // the body's first 2 KiB, valid UTF-8

	json  string  // structure of a JSON body, cut at maxJSONForm
	names tallies // names in markup
}

// Values of Note.Mode.
const (
	ModeLive     = httpcache.Live
	ModeRecorded = "recorded"
)

// Results returns all results of a fetch: the source of its answer (recorded for a write that was sent before), or the
// kind of its failure.
func Results() []string {
	return []string{httpcache.Live, httpcache.Cached, httpcache.Revalidated, httpcache.Stale, ModeRecorded, KindDNS,
		KindRefused, KindTimeout, KindDenied, KindRedirectDenied, KindRedirects,
		KindTooLarge, KindIncomplete, KindEncoding, KindNetwork, KindConnection}
}

// maxSample bounds Note.Sample in bytes.
const maxSample = 2 << 10

// describe fills in the properties of the response.
func (n *Note) describe(r *recurgent.Response) {
	n.Status, n.FetchedAt, n.ContentType, n.Bytes = r.Status, r.FetchedAt, r.Header["Content-Type"], len(r.Body)
	n.describeShape(r.Body)
	n.Sample = strings.ToValidUTF8(r.Body[:min(len(r.Body), maxSample)], "")
}

// Denied returns the note of a request that was not sent.
func Denied(q recurgent.Request) Note {
	at := SafeURL(q.URL)
	return Note{URL: at, Asked: at, ErrorKind: KindDenied, Mode: ModeLive}
}

// Recorded returns the note of a request that is served with a recorded answer: its response, or nil and the type of
// its failure.
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

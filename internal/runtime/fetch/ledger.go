package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A Ledger sends each writing request of a client's call at most once, whatever programs are repaired, replaced and run again for
// the call and for the nested calls below it. A write is known by its method, address, body and connection, and by how many equal ones the run
// made before it: the n-th of a run that is repeated is the n-th of the run before, and has its answer. So two equal writes that a
// program makes on purpose are two, and those of a second attempt are none.
//
// Of a write whose answer was lost the outcome is unknown. It is not sent again either, and an equal one that follows in the same run counts as it:
// programs try again.
//
// A ledger belongs to one client's call, whose programs run one after another: it is used by one goroutine at a time.
type Ledger struct {
	Call string // what Idempotency-Key headers derive from; the same for a call that its client repeats

	made map[string]int    // by digest: how many the run made so far
	sent map[string]Answer // by digest and number: what the program got for those that left the daemon
	held int               // bytes of bodies in sent
}

// maxHeld bounds the bodies that a ledger holds. Beyond it a repeated write gets to know that it was sent, and not what was answered.
const maxHeld = 16 << 20

// answeredKinds are those of failures in which the host answered the write, or refused it: its outcome is known.
var answeredKinds = []string{KindTooLarge, KindDenied, KindRedirectDenied, KindRedirects, KindConnection}

// A Place is a point of a call's run: how many equal writes were made before it, by digest.
type Place map[string]int

// Place returns where the run is now.
func (l *Ledger) Place() Place { return maps.Clone(l.made) }

// Return goes back to the place: what was run from there on is run again.
func (l *Ledger) Return(p Place) { l.made = maps.Clone(p) }

// Writes reports whether requests of the method need a connection that grants it.
func Writes(method string) bool {
	switch strings.ToUpper(method) {
	case "", http.MethodGet, http.MethodHead:
		return false
	}
	return true
}

// do sends the write, with the idempotency key that is its own in every run of the call, unless it was sent before through the same connection: an
// answer that was got with a credential is not for roles which are not granted it.
func (l *Ledger) do(q *recurgent.Request, connection string, send func(key string) Answer) Answer {
	method := strings.ToUpper(q.Method)
	if l == nil {
		a := Answer{Note: Denied(*q), Failure: &recurgent.Failure{Type: agent.ErrDenied,
			Message: "fetch: " + method + " is denied here: proof, try and replay send no writing request"}}
		a.Note.Write = true
		return a
	}
	digest := digestOf(method, q.URL, q.Body, connection)
	number := strconv.Itoa(l.made[digest] + 1)
	if a, known := l.sent[digest+number]; known {
		if !a.unknown() {
			l.count(digest)
		}
		a.Note.Mode = ModeRecorded
		return a
	}
	a := send(digestOf("recurgent", l.Call, digest, number)[:32])
	a.Note.Write = true
	if !a.Note.Sent {
		return a // nothing left the daemon, so the next one is this one
	}
	if f := a.Failure; f != nil && !slices.Contains(answeredKinds, a.Note.ErrorKind) {
		a.Failure = &recurgent.Failure{Type: agent.ErrUnknownOutcome,
			Message: fmt.Sprintf("%s; the request had been sent, so whether %s carried it out is not known. It is not sent again in this call.",
				f.Message, hostOf(q.URL))}
	}
	l.keep(digest, number, a)
	return a
}

// keep notes what was sent. What it keeps holds no place among the large answers.
func (l *Ledger) keep(digest, number string, a Answer) {
	if l.sent == nil {
		l.sent = map[string]Answer{}
	}
	a.large = nil
	if a.Response != nil {
		if l.held += len(a.Response.Body) + len(a.Response.Raw); l.held > maxHeld {
			a.Response, a.Failure = nil, &recurgent.Failure{Type: agent.ErrResourceExhausted,
				Message: "fetch: the request was sent by an earlier attempt of this call, whose answers together were too large to keep. It is not sent again."}
		}
	}
	l.sent[digest+number] = a
	if !a.unknown() {
		l.count(digest)
	}
}

// unknown reports whether the host may have carried out the write or not.
func (a *Answer) unknown() bool { return a.Failure != nil && a.Failure.Type == agent.ErrUnknownOutcome }

func (l *Ledger) count(digest string) {
	if l.made == nil {
		l.made = map[string]int{}
	}
	l.made[digest]++
}

// hostOf names the host of an address in a message.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the host"
	}
	return agent.HostOf(u)
}

// digestOf returns the SHA-256 of the parts, in hex.
func digestOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p) // lengths keep parts apart
	}
	return hex.EncodeToString(h.Sum(nil))
}

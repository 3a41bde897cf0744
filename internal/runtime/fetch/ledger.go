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

// A Ledger sends each write of a client's call at most once, however often programs are repaired, replaced and run
// again for the call and its nested calls. A write is identified by its method, address, body and connection, and by
// the number of equal writes before it in the run. If a run is repeated, its n-th equal write is that of the previous
// run and gets the same answer. So two equal writes that a program makes on purpose are both sent, and those of a
// second attempt are not sent again.
//
// If the answer to a write was lost, its outcome is unknown. It is not sent again, and a following equal write in the
// same run is taken for a retry of it.
//
// A Ledger belongs to one client's call, whose programs run one after another. It must not be used concurrently.
type Ledger struct {
	Call string // input of idempotency keys; the same if the client repeats the call

	made map[string]int    // by digest: number of writes in this run so far
	sent map[string]Answer // by digest and number: answers to writes that left the daemon
	held int               // bytes of bodies in sent
}

// maxHeld bounds the bytes of bodies that a Ledger holds. Beyond it, a repeated write fails with the reason that it was
// already sent.
const maxHeld = 16 << 20

// answeredKinds are kinds of failures with a known outcome: the host answered the write or refused it.
var answeredKinds = []string{KindTooLarge, KindDenied, KindRedirectDenied, KindRedirects, KindConnection}

// A Place is a position in a call's run: the number of writes before it, by digest.
type Place map[string]int

// Place returns the current position of the run.
func (l *Ledger) Place() Place { return maps.Clone(l.made) }

// Return resets the run to p. What ran after p will run again.
func (l *Ledger) Return(p Place) { l.made = maps.Clone(p) }

// writes reports whether method is a writing one, which needs a connection that grants it.
func writes(method string) bool {
	switch strings.ToUpper(method) {
	case "", http.MethodGet, http.MethodHead:
		return false
	}
	return true
}

// do sends the write with its idempotency key, which is the same in every run of the call. A write that was already
// sent through the same connection is not sent again and gets the earlier answer. The connection is part of the
// identity, because an answer obtained with a credential is not meant for roles without it. A nil Ledger denies every
// write.
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
		return a // nothing left the daemon, so the number is not used up
	}
	if f := a.Failure; f != nil && !slices.Contains(answeredKinds, a.Note.ErrorKind) {
		a.Failure = &recurgent.Failure{Type: agent.ErrUnknownOutcome,
			Message: fmt.Sprintf("%s; the request had been sent, so whether %s carried it out is not known. It is not sent again in this call.",
				f.Message, hostOf(q.URL))}
	}
	l.keep(digest, number, a)
	return a
}

// keep stores the answer to a sent write. The stored copy occupies no place among the large answers.
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

// unknown reports whether it is unknown if the host carried out the write.
func (a *Answer) unknown() bool { return a.Failure != nil && a.Failure.Type == agent.ErrUnknownOutcome }

func (l *Ledger) count(digest string) {
	if l.made == nil {
		l.made = map[string]int{}
	}
	l.made[digest]++
}

// hostOf returns the host of an address for a message.
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
		fmt.Fprintf(h, "%d:%s", len(p), p) // lengths separate the parts
	}
	return hex.EncodeToString(h.Sum(nil))
}

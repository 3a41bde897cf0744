// Package chain links the entries of an audit trail, so that an entry that is altered, removed, inserted or swapped with another is found.
//
// Each entry has the hash of the one before it, as in the audit logs of Schneier and Kelsey ("Secure Audit Logs to Support Computer Forensics",
// ACM TISSEC 2(2), 1999). Who can write the whole file can compute a chain anew: that is found only by who has noted a later head elsewhere, to which
// a chain commits everything before it (Crosby and Wallach, "Efficient Data Structures for Tamper-Evident Logging", USENIX Security 2009). There is
// no key: whoever has the entries can check them.
//
// A hash covers a digest of the entry's body, not the body: so a body can be erased, and the chain still holds. The digest is salted, with 128
// random bits that are erased with the body, so that what it said cannot be guessed from it. Each kind of hash begins with a text of its own, so that
// none can stand for one of another kind (RFC 9162, section 2.1.1, does it with a byte).
//
//	start  = SHA-256("recurgentd audit start 1\n" + JSON of {namespace, earlier_entries, earlier_sha256})
//	digest = SHA-256("recurgentd audit body 1\n" + salt + "\n" + JSON of {target, session_id, reason, before, after, undo, undoes})
//	hash   = SHA-256("recurgentd audit entry 1\n" + prev_hash + "\n" + JSON of {seq, id, timestamp, principal, action, digest})
//
// All hashes and salts are lower-case hexadecimal. The JSON is that of encoding/json: members in this order, empty ones of a body left out, no
// white space.
//
// It knows nothing of files.
package chain

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Head is where a chain ends: the last entry's number and hash. The zero value is that of a chain that has not begun.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Begun reports whether the chain has a start.
func (h Head) Begun() bool { return h.Hash != "" }

// Start returns the head of a chain without entries. What an earlier version wrote stands before it unlinked: earlier is the number of these
// entries, and sum the SHA-256 of their lines, "" where there are none.
func Start(name agent.Namespace, earlier int64, sum string) Head {
	return Head{0, hashOf("recurgentd audit start 1\n", struct {
		Namespace agent.Namespace `json:"namespace"`
		Earlier   int64           `json:"earlier_entries"`
		Sum       string          `json:"earlier_sha256"`
	}{name, earlier, sum})}
}

// Link makes e the entry behind the head, and returns the head that it is. It brings e into the form that its line has, so that what is read back
// has the same hash.
func Link(h Head, e *agent.AuditEntry) (Head, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it does not fail
	linked := *e
	linked.Principal, linked.Actor = principalOf(e), principalOf(e)
	linked.Seq, linked.PrevHash, linked.Salt, linked.Digest, linked.Hash, linked.Erased = h.Seq+1, h.Hash,
		hex.EncodeToString(salt), "", "", false
	text, err := json.Marshal(&linked)
	if err != nil {
		return Head{}, err
	}
	*e = agent.AuditEntry{}
	if err := json.Unmarshal(text, e); err != nil {
		return Head{}, err
	}
	e.Digest = digestBody(e)
	e.Hash = hashEntry(e)
	return Head{e.Seq, e.Hash}, nil
}

// principalOf is the principal of an entry: callers set one name or the other.
func principalOf(e *agent.AuditEntry) string {
	if e.Principal != "" {
		return e.Principal
	}
	return e.Actor
}

// aboutSessions are the operations whose entries may name a session, so that their bodies are erased with it. No other entry is ever erased: who
// takes the body out of one has altered it.
var aboutSessions = map[string]bool{"call.cancel": true, "context.patch": true, "verdict.put": true,
	"verdict.delete": true, "file.delete": true}

// AboutSessions reports whether the operation's entries may name a session.
func AboutSessions(action string) bool { return aboutSessions[action] }

// Erase takes the body out of a linked entry. Its place in the chain, when it was, who did what kind of thing, and the digest stay.
func Erase(e agent.AuditEntry) agent.AuditEntry {
	return agent.AuditEntry{ID: e.ID, Timestamp: e.Timestamp, Actor: e.Actor, Principal: e.Principal, Action: e.Action,
		Seq: e.Seq, Digest: e.Digest, PrevHash: e.PrevHash, Hash: e.Hash, Erased: true}
}

func digestBody(e *agent.AuditEntry) string {
	return hashOf("recurgentd audit body 1\n"+e.Salt+"\n", struct {
		Target    string          `json:"target,omitempty"`
		SessionID string          `json:"session_id,omitempty"`
		Reason    string          `json:"reason,omitempty"`
		Before    json.RawMessage `json:"before,omitempty"`
		After     json.RawMessage `json:"after,omitempty"`
		Undo      string          `json:"undo,omitempty"`
		Undoes    string          `json:"undoes,omitempty"`
	}{e.Target, e.SessionID, e.Reason, e.Before, e.After, e.Undo, e.Undoes})
}

func hashEntry(e *agent.AuditEntry) string {
	return hashOf("recurgentd audit entry 1\n"+e.PrevHash+"\n", struct {
		Seq       int64  `json:"seq"`
		ID        string `json:"id"`
		Timestamp string `json:"timestamp"`
		Principal string `json:"principal"`
		Action    string `json:"action"`
		Digest    string `json:"digest"`
	}{e.Seq, e.ID, e.Timestamp, e.Principal, e.Action, e.Digest})
}

func hashOf(kind string, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		// Its raw members were parsed as JSON before.
		panic(fmt.Sprintf("audit chain: %v", err))
	}
	sum := sha256.Sum256(append([]byte(kind), text...))
	return hex.EncodeToString(sum[:])
}

// Line returns the entry as a trail's file has it, without the line's end.
func Line(e *agent.AuditEntry) ([]byte, error) { return json.Marshal(e) }

// Package chain links the entries of an audit trail, so that altering, removing, inserting or swapping entries is
// detected.
//
// Each entry holds the hash of the one before it, as in the audit logs of Schneier and Kelsey ("Secure Audit Logs to
// Support Computer Forensics", ACM TISSEC 2(2), 1999). Whoever can write the whole file can compute a new chain. That
// is detected only by comparison with a later head noted elsewhere: a head commits to everything before it (Crosby and
// Wallach, "Efficient Data Structures for Tamper-Evident Logging", USENIX Security 2009). There is no key, so anyone
// with the entries can verify them.
//
// A hash covers a digest of the entry's body, not the body itself. The body can thus be erased while the chain stays
// valid. The digest is salted with 128 random bits, which are erased with the body, so that the body cannot be guessed
// from the digest. Each kind of hash has its own prefix, so that none can stand for another kind (RFC 9162, section
// 2.1.1, uses a byte for this).
//
//	start  = SHA-256("recurgentd audit start 1\n" + JSON of {namespace, earlier_entries, earlier_sha256})
//	digest = SHA-256("recurgentd audit body 1\n" + salt + "\n" + JSON of
//	         {target, session_id, reason, before, after, undo, undoes})
//	hash   = SHA-256("recurgentd audit entry 1\n" + prev_hash + "\n" + JSON of
//	         {seq, id, timestamp, principal, action, digest})
//
// All hashes and salts are lower-case hexadecimal. The JSON is that of encoding/json: members in this order, empty
// members of a body omitted, no white space.
//
// The package does no I/O and knows nothing of files.
package chain

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Head is the end of a chain: the last entry's number and hash. The zero value is the head of a chain that has not
// begun.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Begun reports whether the chain has a start.
func (h Head) Begun() bool { return h.Hash != "" }

// Start returns the head of a chain without entries. Entries of an earlier version precede the chain unlinked: earlier
// is their number, and sum the SHA-256 of their lines, "" if there are none.
func Start(name agent.Namespace, earlier int64, sum string) Head {
	return Head{0, hashOf("recurgentd audit start 1\n", struct {
		Namespace agent.Namespace `json:"namespace"`
		Earlier   int64           `json:"earlier_entries"`
		Sum       string          `json:"earlier_sha256"`
	}{name, earlier, sum})}
}

// Link appends e to the chain after h and returns the new head. It normalizes e to the form that its line decodes to,
// so that an entry read back has the same hash.
func Link(h Head, e *agent.AuditEntry) (Head, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails (crypto/rand)
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

// principalOf returns the entry's principal. Callers set either Principal or Actor.
func principalOf(e *agent.AuditEntry) string {
	if e.Principal != "" {
		return e.Principal
	}
	return e.Actor
}

// aboutSessions are the actions whose entries may name a session. Their bodies are erased with that session. No other
// entry is ever erased, so an entry of another action without a body was altered.
var aboutSessions = map[string]bool{"call.cancel": true, "context.patch": true, "verdict.put": true,
	"verdict.delete": true, "file.delete": true}

// AboutSessions reports whether entries of the action may name a session.
func AboutSessions(action string) bool { return aboutSessions[action] }

// Erase returns a linked entry without its body. Its position in the chain, time, principal, action and digest stay.
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
		// Unreachable: raw members were parsed as JSON before.
		panic(fmt.Sprintf("audit chain: %v", err))
	}
	sum := sha256.Sum256(append([]byte(kind), text...))
	return hex.EncodeToString(sum[:])
}

// Line returns the entry as a line of the trail's file, without the newline.
func Line(e *agent.AuditEntry) ([]byte, error) { return json.Marshal(e) }

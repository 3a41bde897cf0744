package agent

import (
	"bytes"
	"encoding/json"
	"time"
)

// File describes stored bytes, which a client uploaded or a program made. The bytes themselves travel as streams.
type File struct {
	ID        string    `json:"id"`             // file_, or part_ where Internal, and 26 characters
	Name      string    `json:"name,omitempty"` // what its maker called it: text for people, never a path
	MediaType string    `json:"media_type"`
	Bytes     int64     `json:"bytes"`
	SHA256    string    `json:"sha256"`               // 64 hexadecimal digits
	Owner     string    `json:"owner"`                // as Session.Owner
	SessionID string    `json:"session_id,omitempty"` // that it is erased with
	CallID    string    `json:"call_id,omitempty"`    // of the call that made it
	Internal  bool      `json:"internal,omitempty"`   // a large part of that call
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
}

// Expired reports whether its time is over.
func (f *File) Expired(now time.Time) bool { return !f.ExpiresAt.IsZero() && !now.Before(f.ExpiresAt) }

// FileKey is the one member of the object that refers to a file: {"$file": "file_..."}.
const FileKey = "$file"

// FileRef returns the reference to a file.
func FileRef(id string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{FileKey: id}) // two strings
	return raw
}

// FileRefs returns the ids that references in a JSON value name, each once. What does not parse has none.
func FileRefs(value json.RawMessage) []string {
	if !bytes.Contains(value, []byte(FileKey)) {
		return nil
	}
	var v any
	if json.Unmarshal(value, &v) != nil {
		return nil
	}
	var ids []string
	seen := map[string]bool{}
	walkFileRefs(v, func(id string) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	})
	return ids
}

func walkFileRefs(v any, found func(id string)) {
	switch v := v.(type) {
	case map[string]any:
		if id, ok := v[FileKey].(string); ok && len(v) == 1 {
			found(id)
			return
		}
		for _, member := range v {
			walkFileRefs(member, found)
		}
	case []any:
		for _, item := range v {
			walkFileRefs(item, found)
		}
	}
}

package agent

import (
	"bytes"
	"encoding/json"
	"time"
)

// File describes stored bytes that a client uploaded or a program made. The bytes themselves are streamed.
type File struct {
	// ID is file_, or part_ if Internal, and 26 characters.
	ID string `json:"id"`
	// Name was chosen by its maker. It is text for people, never a path.
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"` // 64 hexadecimal digits
	Owner     string `json:"owner"`  // as Session.Owner
	// SessionID is the session whose erasure also erases the file.
	SessionID string    `json:"session_id,omitempty"`
	CallID    string    `json:"call_id,omitempty"`  // of the call that made it
	Internal  bool      `json:"internal,omitempty"` // a large part of that call's record
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero means never
}

// Expired reports whether the file's lifetime is over at now.
func (f *File) Expired(now time.Time) bool { return !f.ExpiresAt.IsZero() && !now.Before(f.ExpiresAt) }

// FileKey is the only member of an object that refers to a file: {"$file": "file_..."}.
const FileKey = "$file"

// FileRef returns the reference to the file with that id.
func FileRef(id string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{FileKey: id}) // two strings
	return raw
}

// FileRefs returns the ids of the files referenced in a JSON value, each once. Invalid JSON has none.
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

// walkFileRefs calls found for each reference to a file in a decoded JSON value.
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

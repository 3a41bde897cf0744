package eject

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/cli/eject/local"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
)

// Bounds of the stored files that a module includes.
const (
	maxFile  = 1 << 20  // bytes of one file
	maxFiles = 32 << 20 // bytes of all files of a module
)

// A File is a stored file that cases of a program read. Data is nil if the file does not fit.
type File struct {
	agent.File
	Data []byte
}

// Fits reports whether a module that already has others bytes of files may include the file.
func (f *File) Fits(others int64) bool { return f.Bytes <= maxFile && f.Bytes <= maxFiles-others }

// Reads returns the sorted ids of the stored files that the cases of a program need, each once.
func (x *Program) Reads() []string {
	ids := map[string]bool{}
	note := func(raw json.RawMessage) {
		var all effects
		_ = json.Unmarshal(raw, &all) // unreadable effects are left out later
		for i := range all.Asks {
			if id := all.Asks[i].reads(); id != "" {
				ids[id] = true
			}
		}
	}
	for _, e := range x.Examples {
		note(x.Effects[e.ID])
		for _, raw := range append([]json.RawMessage{e.Kwargs}, e.Args...) {
			for _, id := range agent.FileRefs(raw) {
				ids[id] = true
			}
		}
	}
	for _, f := range x.Fixtures {
		note(f.Effects)
	}
	return slices.Sorted(maps.Keys(ids))
}

// A fileAnswer is the recorded answer to opening or fetching a file.
type fileAnswer struct {
	File      string `json:"file"`
	SHA256    string `json:"sha256"`
	MediaType string `json:"media_type"`
	Body      string `json:"body"`
	Raw       []byte `json:"raw"`
	LeftOut   bool   `json:"left_out"`
}

// reads returns the id of the stored file whose bytes a test needs, or "".
func (a *ask) reads() string {
	var f fileAnswer
	switch {
	case a.Error != nil || a.Same || a.Op != "open" && a.Op != "fetch_file" || json.Unmarshal(a.Result, &f) != nil:
		return ""
	case a.Op == "open" || f.LeftOut:
		return f.File
	}
	return ""
}

// readsText reports whether the file is, or may later be, read as text.
func (a *ask) readsText() bool {
	var q struct {
		Text bool `json:"text"`
	}
	return a.Op != "open" || json.Unmarshal(a.Params, &q) != nil || q.Text
}

// reads notes the stored file that a recorded answer needs. It returns the reason if a test cannot have it, otherwise
// "".
func (p *playback) reads(x *Program, a *ask, rules *mask.Rules) (reason string) {
	if a.Error != nil || a.Same || a.Op != "open" && a.Op != "fetch_file" {
		return ""
	}
	var f fileAnswer
	if json.Unmarshal(a.Result, &f) != nil {
		return unreadable
	}
	if id := a.reads(); id != "" {
		if reason := p.file(x, id, f.SHA256, rules); reason != "" || !a.readsText() {
			return reason
		}
		return foreign("it reads", x.Files[id].Data, x.Files[id].MediaType)
	}
	content := append([]byte(f.Body), f.Raw...) // one of them is empty
	if reason := searched(content, rules); reason != "" {
		return reason
	}
	return foreign("it fetches", content, f.MediaType)
}

// given notes the files in the arguments of a case without recorded effects. It returns the reason if a test cannot
// have one, otherwise "".
func (p *playback) given(x *Program, rules *mask.Rules, args []json.RawMessage) (reason string) {
	for _, raw := range args {
		for _, id := range agent.FileRefs(raw) {
			reason := p.file(x, id, "", rules)
			if reason == "" {
				reason = foreign("it reads", x.Files[id].Data, x.Files[id].MediaType)
			}
			if reason != "" {
				return reason
			}
		}
	}
	return ""
}

// file notes a stored file whose bytes a test needs. sum is their expected digest, or "" if it is not known. It returns
// the reason if a test cannot have the file, otherwise "".
func (p *playback) file(x *Program, id, sum string, rules *mask.Rules) (reason string) {
	f, ok := x.Files[id]
	switch {
	case !ok:
		return "it reads a file that is gone, " + id
	case f.Data == nil && f.Bytes > maxFile:
		return fmt.Sprintf("it reads a file of %d bytes; a module takes files of up to %d", f.Bytes, maxFile)
	case f.Data == nil && f.Bytes > 0:
		return fmt.Sprintf("it reads a file of %d bytes, and the module's files would exceed %d bytes",
			f.Bytes, maxFiles)
	}
	if is := sha256.Sum256(f.Data); sum != "" && hex.EncodeToString(is[:]) != sum {
		return "it reads a file that has changed, " + id
	}
	if secret(rules, agent.Encoded(f.Name)) {
		return secretReason
	}
	if reason := searched(f.Data, rules); reason != "" {
		return reason
	}
	p.files = append(p.files, id)
	return ""
}

// decodes returns the reason if the module would decode a text differently from the daemon, otherwise "".
func (a *ask) decodes() (reason string) {
	var text struct {
		Charset string `json:"charset"`
		Marked  bool   `json:"marked"`
	}
	if a.Op != "decode" {
		return ""
	}
	if json.Unmarshal(a.Result, &text) != nil {
		return unreadable
	}
	if text.Marked || text.Charset == local.Latin {
		return ""
	}
	return "it decodes text in " + text.Charset + ", which the module does not read"
}

// foreign returns the reason if the module would read a text differently from the daemon, otherwise "".
func foreign(does string, text []byte, mediaType string) (reason string) {
	if name, err := charsets.Guess(bytes.NewReader(text),
		mediaType); err == nil && name != "" && name != local.Charset(text) {
		return does + " text in " + name + ", which the module does not read"
	}
	return ""
}

var extension = regexp.MustCompile(`^\.[a-z0-9]{1,8}$`)

// carry adds files to those of a method. It derives their names from their bytes, because the original names are only
// for people.
func (x *Program) carry(ids []string, recorded *recordedFile, contents map[string]string) {
	for _, id := range ids {
		f := x.Files[id]
		sum := sha256.Sum256(f.Data)
		name := "testdata/" + hex.EncodeToString(sum[:8])
		if ext := strings.ToLower(path.Ext(f.Name)); extension.MatchString(ext) {
			name += ext
		}
		contents[name] = string(f.Data)
		recorded.Files[id] = local.HeldFile{Name: f.Name, MediaType: f.MediaType, Path: name}
	}
}

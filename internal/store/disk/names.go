package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Ids and names in documents and entries become file names. An archive may contain anything. Names that no store gives
// are refused when they are read, so that no other file below the directory is opened or removed.

// checkNames returns an error if the entry names a file that a store would not.
func (e *entry) checkNames() error {
	if e.Session != "" && !validID(e.Session) {
		return badID(e.Session)
	}
	if e.Create != nil && !validID(e.Create.Session.ID) {
		return badID(e.Create.Session.ID)
	}
	for _, list := range [...][]string{e.Delete, e.FilesGone} {
		for _, id := range list {
			if !validID(id) {
				return badID(id)
			}
		}
	}
	for i := range e.Files {
		if !validID(e.Files[i].ID) {
			return badID(e.Files[i].ID)
		}
	}
	for _, name := range [...]agent.Namespace{e.Make, e.Erase} {
		if name == "" {
			continue
		}
		if err := name.Validate(); err != nil {
			return err
		}
	}
	if e.Move == nil {
		return nil
	}
	if strings.Contains(e.Move.Stamp, "/") {
		return fmt.Errorf("%.80q is not a valid stamp", e.Move.Stamp)
	}
	return checkArchived(e.Move.Files)
}

func badID(id string) error { return fmt.Errorf("%.80q is not a valid id", id) }

// checkArchived returns an error if a name is not that of a file in the archive.
func checkArchived(names []string) error {
	for _, name := range names {
		if !fs.ValidPath(name) || !strings.HasPrefix(name, archiveDir+"/") {
			return fmt.Errorf("%.80q is not a file of the archive", name)
		}
	}
	return nil
}

// checkFiles returns an error if an id in the document cannot be a file name.
func checkFiles(doc *filesDoc) error {
	for i := range doc.Files {
		if !validID(doc.Files[i].ID) {
			return badID(doc.Files[i].ID)
		}
	}
	return nil
}

// slug returns the name of the file or directory for a role or method. A plain name stands for itself; any other
// becomes a readable form of it and eight digits of its hash. Two names share a slug only if their hashes collide. The
// file holds the true name, which readers compare.
func slug(name string) string {
	if plain(name) {
		return name
	}
	const readable = 40
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if b.Len() == readable {
			break
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && s[len(s)-1] != '-' {
			b.WriteByte('-')
		}
	}
	sum := sha256.Sum256([]byte(name))
	return strings.Trim(b.String(), "-") + "-" + hex.EncodeToString(sum[:4])
}

// plain reports whether a name can be its own slug. It must be lower case, because some file systems ignore case; it
// must not be a name with another meaning in the same directory; and it must not look like a slug of another name.
func plain(name string) bool {
	const longest, digits = 64, 8
	if name == "" || len(name) > longest || name == "archive" || name[0] == '-' || name[0] == '_' {
		return false
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	i := strings.LastIndexByte(name, '-')
	return i < 0 || len(name)-i-1 != digits || strings.Trim(name[i+1:], "0123456789abcdef") != ""
}

// validID reports whether an id can be the name of a file or directory.
func validID(id string) bool {
	const longest = 128
	if id == "" || len(id) > longest {
		return false
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

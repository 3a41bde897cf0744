package disk

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/lazy"
	"github.com/recurgentd/recurgentd/internal/store"
)

// archiveFile returns the file name of an archived artifact, or of a tool if the target has no method.
func archiveFile(t store.Target, stamp string) string { return archivePlace(t) + "." + stamp + ".json" }

// archivePlace returns the start of the file names of everything archived for a target. It has no dot.
func archivePlace(t store.Target) string {
	if t.Method == "" {
		return archiveRegistryDir + "/" + slug(t.Role)
	}
	return archiveDir + "/" + slug(t.Role) + "/" + slug(t.Method)
}

// stampOf returns the end of the names of an operation's files. It is unique and sorts by age.
func stampOf(at time.Time, number uint64, deleted bool, auditID string) string {
	mark := ""
	if deleted {
		mark = deletedMark
	}
	return fmt.Sprintf("%s-%010d%s-%s", at.UTC().Format(stampFormat), number, mark, slug(auditID))
}

// deletedMark is the part of a stamp that marks a file of something deleted.
const deletedMark = ".deleted"

// A stamp is the decoded end of an archive file's name. The zero value stands for an unknown format.
type stamp struct {
	at      time.Time
	deleted bool   // the file is removed store.DeletedLife after at
	by      string // the slug of the operation's audit id; "" in files of earlier versions
}

var stampParts = lazy.Regexp(`^([0-9T]+\.[0-9]+Z)-[0-9]+(\.deleted)?(?:-(.*))?$`)

// readStamp decodes the stamp in the name of an archive file.
func readStamp(name string) (s stamp) {
	_, text, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), ".")
	of := stampParts().FindStringSubmatch(text)
	if of == nil {
		return s
	}
	at, err := time.Parse(stampFormat, of[1])
	if err != nil {
		return s
	}
	return stamp{at, of[2] != "", of[3]}
}

// pastRestore reports whether the file's content can no longer be restored.
func pastRestore(name string, now time.Time) bool {
	s := readStamp(name)
	return store.Ended(s.deleted, s.at, now)
}

// movedBy reports whether the operation with that audit id moved the file to the archive. Files of earlier versions do
// not have the id in their names and are matched by time.
func movedBy(name, auditID string) bool {
	s := readStamp(name)
	if s.by != "" || s.at.IsZero() {
		return s.by == slug(auditID)
	}
	const longest = 10 * time.Second // of a commit, from the operation's id to its stamp
	took := s.at.Sub(ids.Time(auditID).Truncate(time.Millisecond))
	return took >= 0 && took < longest
}

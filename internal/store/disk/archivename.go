package disk

import (
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

// archiveFile is the path of an archived artifact, or of a tool when the method is empty.
func archiveFile(t store.Target, stamp string) string { return archivePlace(t) + "." + stamp + ".json" }

// archivePlace begins the paths of all that is archived of a target, and has no dot.
func archivePlace(t store.Target) string {
	if t.Method == "" {
		return archiveRegistryDir + "/" + slug(t.Role)
	}
	return archiveDir + "/" + slug(t.Role) + "/" + slug(t.Method)
}

// movedBy reports whether the operation with that audit id moved the file to the archive. The names of files of earlier
// versions do not have the operation's id: they are matched by time.
func movedBy(name, auditID string) bool {
	_, stamp, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), ".")
	if of := stampParts.FindStringSubmatch(stamp); of != nil && of[2] == "" {
		const longest = 10 * time.Second // of a commit, between the operation's id and the stamp
		at, err := time.Parse(stampFormat, of[1])
		took := at.Sub(ids.Time(auditID).Truncate(time.Millisecond))
		return err == nil && took >= 0 && took < longest
	}
	return strings.HasSuffix(stamp, "-"+slug(auditID))
}

// stampParts returns the time of a stamp and the id of the operation, "" in files of earlier versions.
var stampParts = regexp.MustCompile(`^([0-9T]+\.[0-9]+Z)-[0-9]+(-.*)?$`)
